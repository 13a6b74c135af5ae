"""Findings behind ``puffer doctor``: what this machine has, and what to do where something is missing."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from packaging.utils import canonicalize_name

from pufferlib.errors import PufferError
from pufferlib.installation import extras
from pufferlib.machine.cgroups import control_groups, words_of
from pufferlib.machine.commands import DISTRIBUTION, as_typed, in_image
from pufferlib.machine.cpus import usable_cpus
from pufferlib.native.compiler import find_compiler

__all__ = ["Finding", "examine", "extra", "usable"]

GIB = 2**30
LOW_MEMORY_BYTES = 2 * GIB
LOW_SHM_BYTES = GIB // 4
LOW_DISK_BYTES = 1 * GIB
# cgroup v1 writes "no limit" as a huge number.
NO_LIMIT_BYTES = 2**60

IMPORT_TIMEOUT_S = 60
COMMAND_TIMEOUT_S = 10

# NVIDIA's drivers, by the major version of CUDA that torch is built for.
OLDEST_DRIVER = {"12": 525, "13": 580}

Level = Literal["ok", "absent", "advice", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        name: What was looked at.
        value: What was found, for people.
        level: "ok"; "absent" where something optional is not installed; "advice" where something could be better;
            "problem" where nothing works without it.
        advice: What to do; empty when all is well.
        data: The bare figures behind ``value``, for programs.
    """

    name: str
    value: str
    level: Level = "ok"
    advice: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def examine(runs: Path = Path("runs"), root: Path = Path("/")) -> list[Finding]:
    """Look at the machine and at what is installed; starts a few short processes and changes nothing.

    Args:
        runs: The folder that runs are kept in; it need not exist yet.
        root: Where /proc, /sys and /dev are; tests pass a folder of their own.
    """
    checks: list[Callable[[], list[Finding]]] = [
        lambda: [python_version(), native_extension(), c_compiler()],
        lambda: [cores(), memory(root), shared_memory(root), disk(runs)],
        lambda: docker(root),
        lambda: [gpu()],
        packages,
    ]
    # Each check mostly waits for a process, so that together they take as long as the slowest.
    with ThreadPoolExecutor(len(checks)) as pool:
        return [finding for findings in pool.map(lambda check: check(), checks) for finding in findings]


def usable(findings: list[Finding]) -> bool:
    """Return True where nothing stands in the way of using the package."""
    return not any(finding.level == "problem" for finding in findings)


def python_version() -> Finding:
    """Look at the interpreter; the compiled extension exists for 3.11 only."""
    version = platform.python_version()
    if sys.version_info[:2] != (3, 11):
        return Finding("python", version, "problem", "use Python 3.11, or the image: docker compose run --rm tank")
    return Finding("python", f"{version} at {sys.executable}", data={"version": version})


def native_extension() -> Finding:
    """Load the compiled modules, in another process."""
    error = _import_error("pufferlib.ocean._ocean")
    if error:
        advice = "build it again: pip install --force-reinstall --no-deps . (needs a C compiler: apt install gcc)"
        return Finding("native extension", error, "problem", advice)
    return Finding("native extension", "loads")


def c_compiler() -> Finding:
    """Look for the compiler of environments in C files."""
    try:
        program = find_compiler("doctor").command[0]
    except PufferError as error:
        found = f"CC={os.environ['CC']!r} is none" if os.environ.get("CC") else "none"
        _, _, advice = str(error).partition("; ")
        return Finding("C compiler", found, "absent", f"for environments in C files of your own: {advice or error}")
    return Finding("C compiler", shutil.which(program) or program)


def cores() -> Finding:
    """Count the cores that this process can keep busy, by affinity and quota, and those of the machine."""
    count, machine = usable_cpus(), os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0))
    value = f"{count} usable of {machine}"
    if count < machine:
        value += f" (affinity allows {allowed}" + (", a container quota fewer)" if count < allowed else ")")
    data = {"usable": count, "affinity": allowed, "machine": machine}
    return Finding("cores", value, data=data)


def memory(root: Path = Path("/")) -> Finding:
    """Look at the memory of the machine, what is free of it, and the container's limit."""
    lines = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
    kib = {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1}
    total, available = kib["MemTotal"] * 1024, kib["MemAvailable"] * 1024
    limit = min(_memory_limits(root), default=None)
    if limit is not None and limit >= total:
        limit = None
    value = f"{_gib(available)} free of {_gib(total)}" + (f", limited to {_gib(limit)}" if limit else "")
    data = {"total_bytes": total, "available_bytes": available, "limit_bytes": limit}
    if min(available, limit or available) < LOW_MEMORY_BYTES:
        advice = "training needs about 1 GiB: close other programs, or raise the container's limit"
        return Finding("memory", value, "advice", advice, data)
    return Finding("memory", value, data=data)


def shared_memory(root: Path = Path("/")) -> Finding:
    """Look at the size of /dev/shm, which other libraries use between processes."""
    try:
        total = shutil.disk_usage(root / "dev/shm").total
    except OSError:
        return Finding("/dev/shm", "missing", "advice", "mount a tmpfs there: some libraries need it")
    data = {"total_bytes": total}
    if total < LOW_SHM_BYTES:
        advice = "fine for pufferlib; for other libraries start the container with --shm-size=1g"
        return Finding("/dev/shm", _gib(total), "advice", advice, data)
    return Finding("/dev/shm", _gib(total), data=data)


def disk(runs: Path) -> Finding:
    """Look at the free space where runs are kept, and whether they can be written."""
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    value, data = f"{_gib(free)} free at {folder}", {"free_bytes": free, "folder": str(folder)}
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "nothing could be kept: choose a folder that you may write to with --runs"
        return Finding("runs folder", f"{folder}: {error.strerror}", "problem", advice, data)
    if free < LOW_DISK_BYTES:
        return Finding("runs folder", value, "advice", "a run takes up to 50 MiB: make room, or use --runs", data)
    return Finding("runs folder", value, data=data)


def docker(root: Path = Path("/")) -> list[Finding]:
    """Ask the Docker engine: present, running, permitted; and Compose."""
    if not shutil.which("docker"):
        if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
            return [Finding("docker", "not needed: this is a container")]
        return [
            Finding("docker", "not installed", "absent", "optional; in a checkout, scripts/docker-engine installs it")
        ]
    code, output = _run("docker", "version", "--format", "{{.Server.Version}}")
    if code:
        if "permission denied" in output.lower():
            advice = "sudo usermod -aG docker $USER, then log in again; or use --local"
            return [Finding("docker", "engine answers, but not to you", "advice", advice)]
        advice = "start it: sudo systemctl start docker (or sudo dockerd &); or use --local"
        return [Finding("docker", "installed, but no engine answers", "advice", advice)]
    engine = Finding("docker", f"engine {output}", data={"version": output})
    code, output = _run("docker", "compose", "version", "--short")
    if code:
        advice = "apt install docker-compose-plugin or, from Debian, docker-compose"
        return [engine, Finding("docker compose", "missing", "advice", advice)]
    return [engine, Finding("docker compose", output, data={"version": output})]


def gpu() -> Finding:
    """Look at the NVIDIA GPUs and their driver, and whether the installed torch can use them."""
    query = "--query-gpu=name,driver_version,memory.total"
    code, output = _run("nvidia-smi", query, "--format=csv,noheader") if shutil.which("nvidia-smi") else (1, "")
    if code or not output:
        return Finding("GPU", "none found; training uses the CPU", data={"gpus": []})
    names = output.splitlines()
    driver = names[0].split(", ")[1]
    build, available, card, oldest = _torch_cuda()
    data = {"gpus": names, "driver": driver, "torch_cuda": build, "usable": available and card >= oldest}
    value = f"{len(names)} x {names[0].split(', ')[0]}, driver {driver}"
    if build is None:
        return Finding("GPU", f"{value}; torch is not installed", "advice", as_typed("puffer install train"), data)
    if not build:
        advice = (
            "with Docker, TANK_DEVICE=cuda chooses the image for the GPU (docs/images.md); elsewhere "
            "pip install --force-reinstall torch, from PyPI, replaces it by the build for CUDA"
        )
        return Finding("GPU", f"{value}; torch is built for CPUs", "advice", advice, data)
    if not available:
        return Finding("GPU", f"{value}; torch cannot use it", "advice", _way_to_cuda(build, driver), data)
    if card < oldest:
        advice = (
            f"its compute capability is {card:g}, and torch's code for CUDA {build} begins at {oldest:g}: "
            "choose a newer card, install another build of torch, or train with --train.device cpu"
        )
        return Finding("GPU", f"{value}; torch has no code for it", "advice", advice, data)
    failures = [line for line in _python(KERNEL_PROBE)[1].splitlines() if line.startswith("cuda:")]
    if failures:
        advice = "see what nvidia-smi shows: another process may fill it. CUDA_VISIBLE_DEVICES can leave it out"
        data["usable"] = False
        return Finding("GPU", f"{value}; a kernel fails on {'; '.join(failures)}", "advice", advice, data)
    return Finding("GPU", f"{value}; torch uses it with CUDA {build}", data=data)


def packages() -> list[Finding]:
    """Look at what the package always needs, then each extra that is installed, then those that are not."""
    try:
        always = extras.required()
    except importlib.metadata.PackageNotFoundError:
        return [Finding(DISTRIBUTION, "not installed", "problem", "install it: pip install -e . in its checkout")]
    version = extras.version_of(DISTRIBUTION)
    modules = _modules_by_distribution()
    found = {name: extra(name, modules) for name in extras.names() if name != extras.COMMON}
    return [
        Finding(DISTRIBUTION, version, data={"version": version}),
        *(_base_package(requirement.name) for requirement in always),
        *(finding for finding in found.values() if finding.level != "absent"),
        *_absent({name: finding for name, finding in found.items() if finding.level == "absent"}),
    ]


def extra(name: str, modules: dict[str, str] | None = None) -> Finding:
    """Look whether what the extra requires is installed, in the pinned versions, and imports.

    Args:
        name: Of the extra.
        modules: A module to import of each distribution; found out where they are not given.
    """
    own, title, install = extras.required(name), f"extra [{name}]", as_typed(f"puffer install {name}")
    versions = {requirement.name: extras.version_of(requirement.name) for requirement in own}
    data = {"versions": versions}
    missing = [package for package, version in versions.items() if not version]
    if missing:
        return Finding(title, f"not installed: {', '.join(missing)}", "absent", install, data)
    modules = _modules_by_distribution() if modules is None else modules
    error = _import_error(*(modules[name] for name in map(canonicalize_name, versions) if name in modules))
    if error:
        exact = " ".join(map(str, own))
        return Finding(title, error, "advice", f"pip install --force-reinstall {exact}", data)
    found = ", ".join(f"{package} {version}" for package, version in versions.items())
    moved = [r for r in own if not r.specifier.contains(versions[r.name], prereleases=True)]
    if moved:
        wanted = " and ".join(f"{r.name} {extras.pin_of(r)}" for r in moved)
        return Finding(title, found, "advice", f"tested with {wanted}: {install}", data)
    return Finding(title, found, data=data)


def _base_package(name: str) -> Finding:
    version = extras.version_of(name)
    if not version:
        return Finding(name, "not installed", "problem", f"pip install {name}")
    return Finding(name, version, data={"version": version})


def _absent(found: dict[str, Finding]) -> list[Finding]:
    """Return one line for all extras that are not installed."""
    if not found:
        return []
    value = f"{len(found)} not installed: {', '.join(found)}"
    advice = f"{as_typed('puffer install NAME')} brings one; with --dry-run it only shows what that is"
    if in_image():
        advice = "the images tank and tank-full have more"
    return [Finding("extras", value, "absent", advice, {name: finding.data for name, finding in found.items()})]


def _memory_limits(root: Path) -> Iterator[int]:
    """Yield the memory limit of every control group of this process, in bytes."""
    for group in control_groups("memory", root):
        words = words_of(group.folder / ("memory.limit_in_bytes" if group.version == 1 else "memory.max"))
        if words and words[0] != "max" and int(words[0]) < NO_LIMIT_BYTES:
            yield int(words[0])


def _way_to_cuda(build: str, driver: str) -> str:
    """Return what to do where the driver is there and torch's build for CUDA ``build`` does not find the GPU."""
    needed = OLDEST_DRIVER.get(build.partition(".")[0])
    if needed and int(driver.partition(".")[0]) < needed:
        return f"CUDA {build} needs driver {needed} or newer: update it, with Docker on the host"
    return f"torch is built for CUDA {build}; see what nvidia-smi says, and whether CUDA_VISIBLE_DEVICES hides the GPU"


_CUDA_PROBE = """
import torch
works = torch.cuda.is_available()
card = torch.cuda.get_device_capability() if works else (0, 0)
code = [name.removeprefix("sm_").rstrip("af") for name in torch.cuda.get_arch_list() if name.startswith("sm_")]
print(torch.version.cuda or "-", works, card[0] + card[1] / 10, min(map(int, code), default=0) / 10)"""

# Prints a line for each GPU that a kernel fails on.
KERNEL_PROBE = """
import torch
for index in range(torch.cuda.device_count()):
    try:
        assert (torch.ones(8, device=f"cuda:{index}") * 2).sum().item() == 16, "wrong result"
    except Exception as error:
        print(f"cuda:{index}: {str(error).strip().splitlines()[0]}")"""


def _torch_cuda() -> tuple[str | None, bool, float, float]:
    """Return the CUDA version of torch (empty: none; None: no torch), whether it finds a GPU, and two more versions.

    Those are compute capabilities: of the GPU, and the oldest that torch has code for; both 0 where none is found.
    """
    code, output = _python(_CUDA_PROBE)
    if code:
        return None, False, 0.0, 0.0
    build, available, card, oldest = output.splitlines()[-1].split()
    return ("" if build == "-" else build), available == "True", float(card), float(oldest)


def _import_error(*modules: str) -> str:
    """Import ``modules`` in a process of its own; return why one of them fails, empty when none does."""
    code, output = _python("".join(f"import {module}\n" for module in modules))
    return (output.splitlines() or [f"import ended with exit code {code}"])[-1] if code else ""


def _modules_by_distribution() -> dict[str, str]:
    """Return one importable module of each installed distribution, the one named like it where there is one."""
    found: dict[str, list[str]] = {}
    for module, distributions in importlib.metadata.packages_distributions().items():
        if module.isidentifier() and not module.startswith("_"):
            for distribution in filter(None, distributions):  # without a name: half of an installation
                found.setdefault(canonicalize_name(distribution), []).append(module)
    return {
        name: min(modules, key=lambda module: (canonicalize_name(module) != name, module))
        for name, modules in found.items()
    }


def _python(code: str) -> tuple[int, str]:
    return _run(sys.executable, "-P", "-W", "ignore", "-c", code, timeout_s=IMPORT_TIMEOUT_S)


def _run(*command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> tuple[int, str]:
    """Return the exit code and output of a command; a command that cannot start or never ends fails with a sentence."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]} did not answer within {timeout_s:g} s"
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    return done.returncode, (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
