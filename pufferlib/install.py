"""Bringing bindings into this environment: what ``puffer install`` plans, does and checks."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.errors import PufferError, UnknownNameError
from pufferlib.isolated.stacks import find_interpreter, in_image, user_folder

__all__ = ["InstallError", "Plan", "absent_debian_packages", "install", "plan", "smoke_test", "state"]

SMOKE_TIMEOUT_S = 600
_SMOKE = """
import sys, warnings
warnings.simplefilter("ignore")
import pufferlib.vector
with pufferlib.vector.make(pufferlib.env_creator(sys.argv[1]), num_envs=1, backend="Serial", seed=0) as envs:
    envs.reset()
    for _ in range(10):
        envs.step(envs.action_space.sample())
"""


class InstallError(PufferError, RuntimeError):
    """A binding could not be installed, or does not work as it is installed."""


@dataclass(frozen=True)
class Plan:
    """What installing one binding does.

    Attributes:
        facts: Of the binding.
        python: The interpreter that gets the packages: this one, or that of an isolated stack.
        changes: Package, version that is there ("" for none), locked version; of those that differ.
        commands: To run, in turn; none where there are no changes, or in an image, where none are made.
        libraries: Debian packages that it needs to run and that are not here.
    """

    facts: Any
    python: Path
    changes: tuple[tuple[str, str, str], ...]
    commands: tuple[tuple[str, ...], ...]
    libraries: tuple[str, ...]


def plan(name: str, folder: Path | None = None, python: Path | None = None) -> Plan:
    """Find out what installing the binding ``name`` takes; nothing is changed.

    Args:
        name: Of a binding.
        folder: Where its lock lies; None is the binding's own.
        python: Another interpreter that gets the packages; None decides by the binding.

    Raises:
        UnknownNameError: There is no such binding; the nearest are suggested.
        InstallError: No package index has it, it has no lock, or a compiler is missing; the message says
            what to do.
    """
    known = registry.facts()
    if name not in known:
        raise UnknownNameError.of("puffer install", "binding", name, known)
    facts = known[name]
    if facts.unavailable:
        raise InstallError(f"puffer install {name}: {facts.unavailable}")
    folder = folder or registry.folder(name)
    lock = folder / "lock.txt"
    if not lock.is_file():
        raise InstallError(f"puffer install {name}: expected its lock at {lock}, which is not there; run: scripts/lock")
    compilers = absent_debian_packages(facts.apt_build)
    if compilers:
        raise InstallError(
            f"puffer install {name}: compiling it needs {', '.join(compilers)}, which this machine lacks; "
            f"run: sudo apt-get install {' '.join(compilers)}"
        )
    target = python or _interpreter(facts)
    changes = tuple(_changes(lock.read_text("utf-8"), target))
    commands = tuple(_commands(facts, folder, target)) if changes and not in_image() else ()
    return Plan(facts, target, changes, commands, tuple(absent_debian_packages(facts.apt)))


def install(planned: Plan) -> None:
    """Carry out a plan; pip's output goes where this process' does.

    Raises:
        InstallError: A command failed, or this is an image.
    """
    facts = planned.facts
    if planned.changes and not planned.commands:
        raise InstallError(
            f"puffer install {facts.name}: an image stays as it was built; {facts.image} has it, run outside: "
            f"docker compose run --rm {facts.image} train {facts.name}/{facts.example}"
        )
    for command in planned.commands:
        if subprocess.run(command, check=False).returncode:
            raise InstallError(
                f"puffer install {facts.name}: this failed, see above: {' '.join(command)}; "
                f"without a network, use the image {facts.image}, which has it"
            )


def smoke_test(planned: Plan) -> None:
    """Make the binding's example in a fresh process and play ten steps.

    Raises:
        InstallError: It does not work.
    """
    name = f"{planned.facts.name}/{planned.facts.example}"
    with tempfile.TemporaryDirectory() as elsewhere:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _SMOKE, name],
                capture_output=True,
                text=True,
                timeout=SMOKE_TIMEOUT_S,
                cwd=elsewhere,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InstallError(
                f"puffer install: {name} did not play ten steps in {SMOKE_TIMEOUT_S} s; run: puffer doctor"
            ) from error
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InstallError(f"puffer install: {name} is installed but does not work: {last}")


def state(facts: Any) -> str:
    """Whether it is here: "installed" if the binding's pinned packages are, with other versions if so, else ""."""
    python = find_interpreter(facts.isolated) if facts.isolated else Path(sys.executable)
    have = _installed(python) if python else {}
    pins = {_normal(name.partition("[")[0]): pin for name, pin in (pin.split("==") for pin in facts.requires)}
    if facts.unavailable or not pins.keys() <= have.keys():
        return ""
    others = [f"{name} {have[name]}, known good: {pin}" for name, pin in pins.items() if have[name] != pin]
    return f"installed ({'; '.join(others)})" if others else "installed"


def absent_debian_packages(packages: Sequence[str]) -> list[str]:
    """Those of ``packages`` that this machine lacks; where there is no dpkg, the commands that it lacks."""
    return [package for package in packages if not _is_here(package)]


def _is_here(package: str) -> bool:
    if package == "python3-dev" and Path(sysconfig.get_path("include"), "Python.h").exists():
        return True
    if shutil.which(package):
        return True
    dpkg = shutil.which("dpkg-query")
    if dpkg is None:
        return package not in ("gcc", "g++", "make", "cmake", "git")
    shown = subprocess.run([dpkg, "-W", "-f=${db:Status-Status}", package], capture_output=True, text=True, check=False)
    return shown.stdout == "installed"


def _interpreter(facts: Any) -> Path:
    return user_folder() / facts.isolated / "bin" / "python" if facts.isolated else Path(sys.executable)


def _has_module(module: str) -> bool:
    # By the path alone: setuptools' own finder, when asked for pip, puts the old distutils back for good.
    return PathFinder.find_spec(module) is not None


def _commands(facts: Any, folder: Path, python: Path) -> Iterator[tuple[str, ...]]:
    if not python.exists():
        yield (sys.executable, "-m", "venv", "--without-pip", str(python.parents[1]))
    helper = Path(sys.executable)
    if not _has_module("pip"):
        if not _has_module("ensurepip"):
            raise InstallError(
                f"puffer install {facts.name}: needs pip, and neither pip nor ensurepip is here; "
                "run: sudo apt-get install python3-venv"
            )
        helper = user_folder() / "pip" / "bin" / "python"
        if not helper.exists():
            yield (sys.executable, "-m", "venv", str(helper.parents[1]))
    pip = (str(helper), "-m", "pip", "--python", str(python), "install", "--disable-pip-version-check", "--no-input")
    # The locks say all that is needed. What packages say of themselves may be stale, and is not asked.
    locked = (*pip, "--no-deps", "--require-hashes", "--ignore-requires-python")
    if facts.build:
        yield (*locked, "--only-binary", ":all:", "-r", str(folder / "build.txt"))
    compiling = ("--no-build-isolation",) if facts.build else ("--only-binary", ":all:")
    yield (*locked, *compiling, "-r", str(folder / "lock.txt"))


def _changes(lock: str, python: Path) -> Iterator[tuple[str, str, str]]:
    have = _installed(python)
    for name, version in re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", lock):
        if have.get(name) != version:
            yield name, have.get(name, ""), version


def _installed(python: Path) -> dict[str, str]:
    """The packages that an interpreter has, with their versions."""
    own = python == Path(sys.executable)
    paths = sys.path if own else [str(path) for path in python.parents[1].glob("lib/python3*/site-packages")]
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=paths):
        found.setdefault(_normal(distribution.metadata["Name"]), distribution.version)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
