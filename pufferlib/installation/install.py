"""Installation of bindings and extras into this environment: plan, commands and check of ``puffer install``."""

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
    """A binding or an extra could not be installed, or does not work as it is installed."""


@dataclass(frozen=True)
class Plan:
    """Commands that install one binding or extra, and what they change.

    Attributes:
        name: Of the binding or extra.
        about: What it is, for people.
        image: The smallest image that has it.
        example: The environment that is played afterwards; "" for an extra.
        python: The interpreter that gets the packages: this one, or that of an isolated stack.
        changes: Package, version that is there ("" for none), locked version; of those that differ.
        commands: To run, in turn; none where there are no changes, or in an image, where none are made.
        libraries: Debian packages that it needs to run and that are not here.
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
    """Find out what installing ``name`` takes; nothing is changed.

    Args:
        name: Of a binding or an extra; a binding is installed from its lock.
        folder: Where its lock lies; None is the binding's own.
        python: Another interpreter that gets the packages; None decides by the binding.

    Raises:
        UnknownNameError: There is neither; the nearest are suggested.
        InstallError: No package index has it, it has no lock, or a compiler is missing; the message says
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
    """Plan what this package's metadata say that the extra requires; never this package itself, which is here."""
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
        # What this package always requires stands there too, so that pip keeps it as it must be.
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
    """Carry out a plan; pip's output goes where this process' does.

    Raises:
        InstallError: A command failed, or this is an image.
    """
    if planned.changes and not planned.commands:
        outside = f"docker compose run --rm {planned.image}" + (f" train {planned.example}" if planned.example else "")
        raise InstallError(
            f"puffer install {planned.name}: an image stays as it was built; {planned.image} has it, "
            f"run outside: {outside}"
        )
    for command in planned.commands:
        if subprocess.run(command, check=False).returncode:
            raise InstallError(
                f"puffer install {planned.name}: this failed, see above: {' '.join(command)}; "
                f"without a network, use the image {planned.image}, which has it"
            )


def smoke_test(planned: Plan) -> str:
    """Play ten steps of a binding's example, or import the packages of an extra, in a fresh process.

    Returns:
        What was done, in words.

    Raises:
        InstallError: It does not work.
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
                f"puffer install: {name} did not play ten steps in {SMOKE_TIMEOUT_S} s; "
                f"run: {as_typed('puffer doctor')}"
            ) from error
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InstallError(f"puffer install: {name} is installed but does not work: {last}")


def state(facts: Facts) -> str:
    """Return "installed" if the binding's pinned packages are here, with other versions if so, else ""."""
    pins = {canonicalize_name(wanted.name): extras.pin_of(wanted) for wanted in map(Requirement, facts.requires)}
    if facts.isolated:
        python = find_interpreter(facts.isolated)
        have = _installed(python) if python else {}
    else:
        have = {name: version for name in pins if (version := extras.version_of(name))}
    if facts.unavailable or not pins.keys() <= have.keys():
        return ""
    others = [f"{name} {have[name]}, known good: {pin}" for name, pin in pins.items() if have[name] != pin]
    return f"installed ({'; '.join(others)})" if others else "installed"


def absent_debian_packages(packages: Iterable[str]) -> list[str]:
    """Return those of ``packages`` that this machine lacks; where there is no dpkg, the commands that it lacks."""
    return [package for package in packages if not _has_package(package)]


def _has_package(package: str) -> bool:
    if package == "python3-dev" and Path(sysconfig.get_path("include"), "Python.h").exists():
        return True
    if shutil.which(package):
        return True
    dpkg = shutil.which("dpkg-query")
    if dpkg is None:
        return package not in ("gcc", "g++", "make", "cmake", "git")
    shown = subprocess.run([dpkg, "-W", "-f=${db:Status-Status}", package], capture_output=True, text=True, check=False)
    return shown.stdout == "installed"


def _interpreter(facts: Facts) -> Path:
    return user_folder() / facts.isolated / "bin" / "python" if facts.isolated else Path(sys.executable)


def _has_module(module: str) -> bool:
    # By the path alone: setuptools' own finder, when asked for pip, puts the old distutils back for good.
    return PathFinder.find_spec(module) is not None


def _commands(facts: Facts, folder: Path, python: Path) -> Iterator[tuple[str, ...]]:
    if not python.exists():
        yield (sys.executable, "-P", "-m", "venv", "--without-pip", str(python.parents[1]))
    setup, pip = _pip(facts.name, python)
    yield from setup
    # The locks say all that is needed. What packages say of themselves may be stale, and is not asked.
    locked = (*pip, "--no-deps", "--require-hashes", "--ignore-requires-python")
    if facts.build:
        yield (*locked, "--only-binary", ":all:", "-r", str(folder / "build.txt"))
    compiling = ("--no-build-isolation",) if facts.build else ("--only-binary", ":all:")
    yield (*locked, *compiling, "-r", str(folder / "lock.txt"))


def _pip(name: str, python: Path) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the commands that bring pip where there is none, and pip's own, which installs for ``python``."""
    setup: tuple[tuple[str, ...], ...] = ()
    helper = Path(sys.executable)
    if not _has_module("pip"):
        if not _has_module("ensurepip"):
            raise InstallError(
                f"puffer install {name}: needs pip, and neither pip nor ensurepip is here; "
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
    """Return the packages that an interpreter has, with their versions."""
    own = python == Path(sys.executable)
    paths = sys.path if own else [str(path) for path in python.parents[1].glob("lib/python3*/site-packages")]
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=paths):
        found.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution.version)
    return found
