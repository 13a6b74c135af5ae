"""Plan, commands and checks of ``puffer install``."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pufferlib import registry
from pufferlib.errors import PufferError, UnknownNameError
from pufferlib.installation import doctor, extras
from pufferlib.isolated.stacks import find_interpreter, user_folder
from pufferlib.machine.commands import as_typed, in_image
from pufferlib.registry.facts import Facts

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
    """Error: a binding or an extra could not be installed, or does not work after the installation."""


@dataclass(frozen=True)
class Plan:
    """Commands that install one binding or extra, and the resulting changes.

    Attributes:
        name: Name of the binding or extra.
        about: Human-readable description.
        image: Name of the smallest image that contains it.
        example: Environment to play after the installation, or "" for an extra.
        python: Interpreter that receives the packages: this one, or the interpreter of an isolated stack.
        changes: Tuples of package, installed version ("" for none) and locked version, where these differ.
        commands: Commands to run in order. Empty if there are no changes, and always in an image.
        libraries: Debian packages that it needs at run time and that are missing.
    """

    name: str
    about: str
    image: str
    example: str
    python: Path
    changes: tuple[tuple[str, str, str], ...]
    commands: tuple[tuple[str, ...], ...]
    libraries: tuple[str, ...]


def plan(name: str, folder: Path | None = None, python: Path | None = None) -> Plan:
    """Plan the installation of ``name``, without changing anything.

    Args:
        name: Name of a binding or an extra. A binding is installed from its lock file.
        folder: Folder with the lock file, by default the folder of the binding.
        python: Interpreter that receives the packages. By default this depends on the binding.

    Raises:
        UnknownNameError: There is no such binding or extra. The message suggests similar names.
        InstallError: No package index has it, there is no lock file, or a compiler is missing. The message includes
            what to do.
    """
    facts = registry.binding_facts().get(name.replace("-", "_"))
    if facts is None:
        return _plan_of_extra(name)
    if facts.unavailable:
        raise InstallError(f"puffer install {name}: {facts.unavailable}")
    folder = folder or registry.folder(facts.name)
    lock = folder / "lock.txt"
    if not lock.is_file():
        raise InstallError(f"puffer install {name}: the lock file {lock} is missing; run: scripts/lock")
    compilers = absent_debian_packages(facts.apt_build)
    if compilers:
        raise InstallError(
            f"puffer install {name}: compiling it needs {', '.join(compilers)}, not found on this machine; "
            f"run: sudo apt-get install {' '.join(compilers)}"
        )
    target = python or _interpreter(facts)
    changes = tuple(_changes(lock.read_text("utf-8"), target))
    commands = tuple(_commands(facts, folder, target)) if changes and not in_image() else ()
    return Plan(
        name=facts.name,
        about=f"{facts.title} ({facts.licence})",
        image=facts.image,
        example=f"{facts.name}/{facts.example}",
        python=target,
        changes=changes,
        commands=commands,
        libraries=tuple(absent_debian_packages(facts.apt)),
    )


def _plan_of_extra(name: str) -> Plan:
    """Plan the installation of the packages that an extra requires, but never of this package itself."""
    if name not in extras.names():
        raise UnknownNameError.of(
            "puffer install", "binding or extra", name, {*registry.binding_facts(), *extras.names()}
        )
    python = Path(sys.executable)
    wanted, have = extras.required(name), _installed(python)
    versions = {requirement: have.get(canonicalize_name(requirement.name), "") for requirement in wanted}
    changes = tuple(
        (requirement.name, version, extras.pin_of(requirement))
        for requirement, version in versions.items()
        if not version or not requirement.specifier.contains(version, prereleases=True)
    )
    commands: tuple[tuple[str, ...], ...] = ()
    if changes and not in_image():
        setup, pip = _pip(name, python)
        # Also name the requirements of this package itself, so that pip does not change them to other versions.
        commands = (*setup, (*pip, *map(str, [*wanted, *extras.required()])))
    common = [facts for facts in registry.binding_facts().values() if facts.common and name == extras.COMMON]
    libraries = dict.fromkeys(package for facts in common for package in facts.apt)
    return Plan(
        name=name,
        about=f"the extra {name}",
        image="tank",
        example="",
        python=python,
        changes=changes,
        commands=commands,
        libraries=tuple(absent_debian_packages(tuple(libraries))),
    )


def install(planned: Plan) -> None:
    """Run the commands of a plan. The output of pip is shown.

    Raises:
        InstallError: A command failed, or this process runs in an image.
    """
    if planned.changes and not planned.commands:
        outside = f"docker compose run --rm {planned.image}" + (f" train {planned.example}" if planned.example else "")
        raise InstallError(
            f"puffer install {planned.name}: nothing can be installed in an image; {planned.image} has it, "
            f"run outside: {outside}"
        )
    for command in planned.commands:
        if subprocess.run(command, check=False).returncode:
            raise InstallError(
                f"puffer install {planned.name}: a command failed, see above: {' '.join(command)}; "
                f"without a network, use the image {planned.image}, which has it"
            )


def smoke_test(planned: Plan) -> str:
    """Play ten steps of a binding's example, or import the packages of an extra, in a new process.

    Returns:
        Description of the test.

    Raises:
        InstallError: The test failed.
    """
    if not planned.example:
        finding = doctor.extra(planned.name)
        if finding.level != "ok":
            raise InstallError(f"puffer install: {planned.name} is installed but does not work: {finding.value}")
        return "its packages were imported"
    _play(planned.example)
    return f"{planned.example} was played for 10 steps"


def _play(name: str) -> None:
    with tempfile.TemporaryDirectory() as elsewhere:
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", _SMOKE, name],
                capture_output=True,
                text=True,
                timeout=SMOKE_TIMEOUT_S,
                cwd=elsewhere,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InstallError(
                f"puffer install: {name} did not play 10 steps within {SMOKE_TIMEOUT_S} s; "
                f"run: {as_typed('puffer doctor')}"
            ) from error
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InstallError(f"puffer install: {name} is installed but does not work: {last}")


def state(facts: Facts) -> str:
    """Return "installed" if the binding's packages are installed, with versions that differ from the pins, or ""."""
    pins = {canonicalize_name(wanted.name): extras.pin_of(wanted) for wanted in map(Requirement, facts.requires)}
    if facts.isolated:
        python = find_interpreter(facts.isolated)
        have = _installed(python) if python else {}
    else:
        have = {name: version for name in pins if (version := extras.version_of(name))}
    if facts.unavailable or not pins.keys() <= have.keys():
        return ""
    others = [f"{name} {have[name]}, tested: {pin}" for name, pin in pins.items() if have[name] != pin]
    return f"installed ({'; '.join(others)})" if others else "installed"


def absent_debian_packages(packages: Iterable[str]) -> list[str]:
    """Return the Debian packages that are not installed. Without dpkg, only missing commands are known."""
    return [package for package in packages if not _has_package(package)]


def _has_package(package: str) -> bool:
    if package == "python3-dev" and Path(sysconfig.get_path("include"), "Python.h").exists():
        return True
    if shutil.which(package):
        return True
    dpkg = shutil.which("dpkg-query")
    if dpkg is None:
        return package not in ("gcc", "g++", "make", "cmake", "git")
    if package.startswith("openjdk") and shutil.which("java"):  # another release of Debian has another version
        return True
    # A package may be installed for several architectures. Since Debian 13, some names end with t64.
    command = [dpkg, "-W", "-f=${db:Status-Status}\n", package, f"{package}t64"]
    return "installed" in subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def _interpreter(facts: Facts) -> Path:
    return user_folder() / facts.isolated / "bin" / "python" if facts.isolated else Path(sys.executable)


def _has_module(module: str) -> bool:
    # Use only the path finder: the finder of setuptools, when asked for pip, permanently restores the old distutils.
    return PathFinder.find_spec(module) is not None


def _commands(facts: Facts, folder: Path, python: Path) -> Iterator[tuple[str, ...]]:
    if not python.exists():
        yield (sys.executable, "-P", "-m", "venv", "--without-pip", str(python.parents[1]))
    setup, pip = _pip(facts.name, python)
    yield from setup
    # The lock files are complete. The packages' own metadata may be outdated, so pip must not read it.
    locked = (*pip, "--no-deps", "--require-hashes", "--ignore-requires-python")
    if facts.build:
        yield (*locked, "--only-binary", ":all:", "-r", str(folder / "build.txt"))
    compiling = ("--no-build-isolation",) if facts.build else ("--only-binary", ":all:")
    yield (*locked, *compiling, "-r", str(folder / "lock.txt"))


def _pip(name: str, python: Path) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the commands that set up pip, if it is missing, and the pip command that installs into ``python``."""
    setup: tuple[tuple[str, ...], ...] = ()
    helper = Path(sys.executable)
    if not _has_module("pip"):
        if not _has_module("ensurepip"):
            raise InstallError(
                f"puffer install {name}: needs pip, and neither pip nor ensurepip is installed; "
                "run: sudo apt-get install python3-venv"
            )
        helper = user_folder() / "pip" / "bin" / "python"
        if not helper.exists():
            setup = ((sys.executable, "-P", "-m", "venv", str(helper.parents[1])),)
    return setup, (
        str(helper),
        "-P",
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--disable-pip-version-check",
        "--no-input",
    )


def _changes(lock: str, python: Path) -> Iterator[tuple[str, str, str]]:
    have = _installed(python)
    for name, version in re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)", lock):
        if have.get(name) != version:
            yield name, have.get(name, ""), version


def _installed(python: Path) -> dict[str, str]:
    """Return the installed packages of an interpreter, with their versions."""
    own = python == Path(sys.executable)
    paths = sys.path if own else [str(path) for path in python.parents[1].glob("lib/python3*/site-packages")]
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=paths):
        found.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution.version)
    return found
