"""Checks of ``puffer doctor``: the state of this machine and advice on what is missing."""

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

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pufferlib.errors import PufferError
from pufferlib.installation import extras
from pufferlib.machine.cgroups import control_groups, words_of
from pufferlib.machine.commands import DISTRIBUTION, as_typed, in_image
from pufferlib.machine.cpus import allowed_cpus, usable_cpus
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

# Oldest NVIDIA driver for each major version of CUDA that torch is built for.
OLDEST_DRIVER = {"12": 525, "13": 580}

SOFTWARE_RENDERERS = ("llvmpipe", "softpipe", "SWR")

Level = Literal["ok", "absent", "advice", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        name: Name of the checked property.
        value: Result as text.
        level: Severity: "ok", "absent" if an optional part is not installed, "advice" if something could be better, or
            "problem" if the package cannot work.
        advice: What to do, or "" if nothing needs to be done.
        data: Values behind ``value``, for programs.
    """

    name: str
    value: str
    level: Level = "ok"
    advice: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def examine(runs: Path = Path("runs"), root: Path = Path("/")) -> list[Finding]:
    """Run all checks of the machine and of the installed packages.

    This starts a few short processes and changes nothing.

    Args:
        runs: Folder for runs. It need not exist yet.
        root: Folder with /proc, /sys and /dev, for tests.
    """
    checks: list[Callable[[], list[Finding]]] = [
        lambda: [python_version(), native_extension(), c_compiler()],
        lambda: [cores(), memory(root), shared_memory(root), disk(runs)],
        lambda: docker(root),
        lambda: [gpu()],
        packages,
    ]
    # Each check mostly waits for a process, so in threads all of them take as long as the slowest one.
    with ThreadPoolExecutor(len(checks)) as pool:
        return [finding for findings in pool.map(lambda check: check(), checks) for finding in findings]


def usable(findings: list[Finding]) -> bool:
    """Return True if no finding is a problem."""
    return not any(finding.level == "problem" for finding in findings)


def python_version() -> Finding:
    """Check the Python version against the range in the metadata of this package, if it is installed."""
    version = platform.python_version()
    supported = SpecifierSet(extras.python_range())
    if not supported.contains(version, prereleases=True):
        advice = f"use Python {supported}, or the image: docker compose run --rm tank"
        return Finding("python", version, "problem", advice)
    return Finding("python", f"{version} at {sys.executable}", data={"version": version})


def native_extension() -> Finding:
    """Check that the compiled modules can be imported, in another process."""
    error = _import_error("pufferlib.ocean._ocean")
    if error:
        advice = "rebuild it: pip install --force-reinstall --no-deps . (needs a C compiler: apt install gcc)"
        return Finding("native extension", error, "problem", advice)
    return Finding("native extension", "loads")


def c_compiler() -> Finding:
    """Check for a C compiler, which is needed for environments in C files."""
    try:
        program = find_compiler("doctor").command[0]
    except PufferError as error:
        found = f"CC={os.environ['CC']!r} is not a compiler" if os.environ.get("CC") else "none"
        _, _, advice = str(error).partition("; ")
        return Finding("C compiler", found, "absent", f"for your own environments in C files: {advice or error}")
    return Finding("C compiler", shutil.which(program) or program)


def cores() -> Finding:
    """Count the cores that this process can use, by affinity and quota, and the cores of the machine."""
    count, machine = usable_cpus(), os.cpu_count() or 1
    allowed = len(allowed_cpus())
    value = f"{count} usable of {machine}"
    if count < machine:
        value += f" (affinity allows {allowed}" + (", a container quota fewer)" if count < allowed else ")")
    data = {"usable": count, "affinity": allowed, "machine": machine}
    return Finding("cores", value, data=data)


def memory(root: Path = Path("/")) -> Finding:
    """Check the total and free memory of the machine, and the limit of the container."""
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
    """Check the size of /dev/shm, which other libraries use to share memory between processes."""
    try:
        total = shutil.disk_usage(root / "dev/shm").total
    except OSError:
        return Finding("/dev/shm", "missing", "advice", "mount a tmpfs at /dev/shm: some libraries need it")
    data = {"total_bytes": total}
    if total < LOW_SHM_BYTES:
        advice = "enough for pufferlib; for other libraries start the container with --shm-size=1g"
        return Finding("/dev/shm", _gib(total), "advice", advice, data)
    return Finding("/dev/shm", _gib(total), data=data)


def disk(runs: Path) -> Finding:
    """Check the free space in the folder for runs, and whether it is writable."""
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    value, data = f"{_gib(free)} free at {folder}", {"free_bytes": free, "folder": str(folder)}
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "runs cannot be saved: choose a writable folder with --runs"
        return Finding("runs folder", f"{folder}: {error.strerror}", "problem", advice, data)
    if free < LOW_DISK_BYTES:
        return Finding("runs folder", value, "advice", "a run takes up to 50 MiB: free some space, or use --runs", data)
    return Finding("runs folder", value, data=data)


def docker(root: Path = Path("/")) -> list[Finding]:
    """Check that the Docker engine is installed, running and permitted, and that Compose is installed."""
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
            return [Finding("docker", "engine is running, but you have no permission", "advice", advice)]
        advice = "start it: sudo systemctl start docker (or sudo dockerd &); or use --local"
        return [Finding("docker", "installed, but the engine does not respond", "advice", advice)]
    engine = Finding("docker", f"engine {output}", data={"version": output})
    code, output = _run("docker", "compose", "version", "--short")
    if code:
        advice = "in a checkout: sudo scripts/docker-engine; with packages of Docker: apt install docker-compose-plugin"
        return [engine, Finding("docker compose", "missing", "advice", advice)]
    return [engine, Finding("docker compose", output, data={"version": output})]


def gpu() -> Finding:
    """Check the NVIDIA GPUs and their driver, and whether the installed torch can use them."""
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
            "with Docker, set TANK_DEVICE=cuda to use the image for GPUs (docs/images.md); elsewhere run "
            "pip install --force-reinstall torch, which installs the build for CUDA from PyPI"
        )
        return Finding("GPU", f"{value}; torch is built for CPUs", "advice", advice, data)
    if not available:
        return Finding("GPU", f"{value}; torch cannot use it", "advice", _way_to_cuda(build, driver), data)
    if card < oldest:
        advice = (
            f"its compute capability is {card:g}, and torch for CUDA {build} needs at least {oldest:g}: "
            "use a newer card, install another build of torch, or train with --train.device cpu"
        )
        return Finding("GPU", f"{value}; torch has no code for it", "advice", advice, data)
    failures = [line for line in _python(KERNEL_PROBE)[1].splitlines() if line.startswith("cuda:")]
    if failures:
        advice = "run nvidia-smi: another process may use all its memory. Set CUDA_VISIBLE_DEVICES to exclude this GPU"
        data["usable"] = False
        return Finding("GPU", f"{value}; a kernel fails on {'; '.join(failures)}", "advice", advice, data)
    return Finding("GPU", f"{value}; torch uses it with CUDA {build}", data=data)


def rendering() -> Finding:
    """Check whether an image can be drawn with EGL, which environments such as those of MuJoCo need for images."""
    code, output = _run(sys.executable, "-P", "-W", "ignore", "-m", "pufferlib.installation.egl")
    found = [] if code else output.splitlines()
    data = {"renderers": found}
    if not found:
        lines = output.splitlines() or ["no device draws"]
        advice = "only environments that draw with EGL need it: apt-get install libegl1"
        if in_image():
            advice = "only environments that draw with EGL need it: the images tank and tank-full have it"
        return Finding("EGL", f"no image: {lines[-1]}", "absent", advice, data)
    value = f"drew an image with {', '.join(found)}"
    if shutil.which("nvidia-smi") and all(name.startswith(SOFTWARE_RENDERERS) for name in found):
        advice = (
            "images are drawn on the CPU: install the driver's library for EGL (Debian: libegl-nvidia0, Ubuntu: "
            "libnvidia-gl). A container needs NVIDIA_DRIVER_CAPABILITIES with graphics, as in the CUDA images"
        )
        return Finding("EGL", value, "advice", advice, data)
    return Finding("EGL", value, data=data)


def packages() -> list[Finding]:
    """Check the required packages, then each installed extra, then the extras that are not installed."""
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
    """Check that the packages of an extra are installed in the pinned versions and can be imported.

    Args:
        name: Name of the extra.
        modules: Module to import for each distribution. By default they are looked up.
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
    """Return one finding for all extras that are not installed."""
    if not found:
        return []
    value = f"{len(found)} not installed: {', '.join(found)}"
    advice = f"{as_typed('puffer install NAME')} installs one; add --dry-run to only show what it would do"
    if in_image():
        advice = "the images tank and tank-full have more"
    return [Finding("extras", value, "absent", advice, {name: finding.data for name, finding in found.items()})]


def _memory_limits(root: Path) -> Iterator[int]:
    """Yield the memory limit in bytes of each control group of this process that has one."""
    for group in control_groups("memory", root):
        words = words_of(group.folder / ("memory.limit_in_bytes" if group.version == 1 else "memory.max"))
        if words and words[0] != "max" and int(words[0]) < NO_LIMIT_BYTES:
            yield int(words[0])


def _way_to_cuda(build: str, driver: str) -> str:
    """Return advice for a GPU with a driver that torch, built for CUDA ``build``, cannot use."""
    needed = OLDEST_DRIVER.get(build.partition(".")[0])
    if needed and int(driver.partition(".")[0]) < needed:
        return f"CUDA {build} needs driver {needed} or newer: update the driver (with Docker, on the host)"
    return f"torch is built for CUDA {build}; run nvidia-smi, and check whether CUDA_VISIBLE_DEVICES hides the GPU"


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
    """Return torch's CUDA version, whether it finds a GPU, and two compute capabilities.

    The version is "" for a build without CUDA, and None if torch is not installed. The compute capabilities are the
    one of the GPU and the oldest that torch supports. Both are 0 if there is no GPU.
    """
    code, output = _python(_CUDA_PROBE)
    if code:
        return None, False, 0.0, 0.0
    build, available, card, oldest = output.splitlines()[-1].split()
    return ("" if build == "-" else build), available == "True", float(card), float(oldest)


def _import_error(*modules: str) -> str:
    """Import ``modules`` in another process and return the last line of the error, or "" if there is none."""
    code, output = _python("".join(f"import {module}\n" for module in modules))
    return (output.splitlines() or [f"import ended with exit code {code}"])[-1] if code else ""


def _modules_by_distribution() -> dict[str, str]:
    """Return one importable module of each installed distribution, if possible the one with the same name."""
    found: dict[str, list[str]] = {}
    for module, distributions in importlib.metadata.packages_distributions().items():
        if module.isidentifier() and not module.startswith("_"):
            for distribution in filter(None, distributions):  # a broken installation has no name
                found.setdefault(canonicalize_name(distribution), []).append(module)
    return {
        name: min(modules, key=lambda module: (canonicalize_name(module) != name, module))
        for name, modules in found.items()
    }


def _python(code: str) -> tuple[int, str]:
    return _run(sys.executable, "-P", "-W", "ignore", "-c", code, timeout_s=IMPORT_TIMEOUT_S)


def _run(*command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> tuple[int, str]:
    """Return the exit code and output of a command, or an error message if it cannot start or times out."""
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
