"""Resolver of scripts/lock, and helpers that its modules share."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / "docker" / "wheels" / "cpu"
UV_LOCK = ROOT / "docker" / "locks" / "uv.txt"
PYTHON_VERSION = "3.11"
PLATFORM = "x86_64-manylinux_2_28"


class LockError(Exception):
    """Error with a one-line message: the problem, and how to fix it."""


def package_name(requirement: str) -> str:
    """Return the normalized package name of a requirement or of a line in a lock."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise LockError(f"cannot read the requirement {requirement!r}; expected name==version")
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def locked_versions(lock: str) -> dict[str, str]:
    """Return the packages of a lock as a dict from name to version."""
    return dict(re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", lock))


def find_uv() -> str:
    """Return the path of uv. If it is not installed, install the locked version into ``build/uv``.

    Raises:
        LockError: pip could not install it.
    """
    own, venv = ROOT / "build" / "uv", ROOT / ".venv" / "bin"
    folders = f"{venv}:{Path(sys.executable).parent}:{own / 'bin'}"
    if uv := shutil.which("uv", path=folders) or shutil.which("uv"):
        return uv
    python = venv / "python" if (venv / "python").exists() else sys.executable
    command = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--target", own, "-r", UV_LOCK]
    print("lock: installing uv into build/uv", file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LockError(f"uv could not be installed; check the network and pip's settings:\n{done.stderr.rstrip()}")
    return str(own / "bin" / "uv")


def resolve(wanted: list[str], *options: str | Path, cuda: bool = False, build: bool = False) -> str:
    """Run the resolver and return its pins.

    A CPU wheel of torch in the wheel folder is used if there is one. Otherwise the resolver uses torch's own index of
    CPU wheels.

    Args:
        wanted: Requirements to resolve.
        options: Additional arguments for uv.
        cuda: Whether to use the CUDA builds of torch.
        build: Whether to run the setup.py of packages that have no static metadata.
    """
    pin = next((found[1] for each in wanted if (found := re.match(r"torch==([^\s;]+)", each))), "")
    local = any(WHEELS.glob(f"torch-{pin}*.whl"))
    torch = [] if cuda else ["--find-links", WHEELS] if local else ["--torch-backend", "cpu"]
    command = [find_uv(), "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate"]
    command += ["--python-version", PYTHON_VERSION, "--python-platform", PLATFORM, *torch, *options]
    command += [] if build else ["--no-build"]
    done = subprocess.run(command, input="\n".join(wanted), text=True, capture_output=True)
    if done.returncode:
        hint = ""
        if not (cuda or local) and "/whl/cpu" in done.stderr:
            hint = "docker/fill-wheels downloads the CPU wheel of torch with pip's settings; run it and try again\n"
        raise LockError(
            f"uv could not resolve the requirements; check the network and the versions:\n{hint}{done.stderr}"
        )
    return done.stdout
