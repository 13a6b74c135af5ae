"""Versions of all that a trained agent depends on, and a report of those that differ where it is loaded."""

import hashlib
import inspect
import platform
import subprocess
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

import pufferlib
from pufferlib import ocean, registry
from pufferlib.ocean.files import compile_file
from pufferlib.ocean.state import code_of

__all__ = ["versions_of", "warn_of_differences", "warn_of_edits"]


COMMIT = "git commit"
CODE = "C code"
PYTHON_CODE = "code of the environment"
ALWAYS = ("torch", "numpy", "gymnasium")


def versions_of(env_name: str) -> dict[str, str]:
    """Versions by name: Python, pufferlib, torch, numpy, gymnasium, and those of the environment.

    These are its packages, a hash of its code (in C, or of its own file in Python), and the git commit of its source
    file or of our checkout. What is not there, as the packages of an environment that runs in a Python of its own, is
    left out.
    """
    versions = {"Python": platform.python_version(), "pufferlib": pufferlib.__version__}
    for name in (*ALWAYS, *_packages(env_name)):
        try:
            versions[name] = metadata.version(name).partition("+")[0]  # torch of the CPU is no other torch
        except metadata.PackageNotFoundError:
            continue
    if code := _code(env_name):
        versions[CODE] = code
    if code := _python_code(env_name):
        versions[PYTHON_CODE] = code
    folder = _folder(env_name)
    if folder and (commit := _commit(folder)):
        versions[COMMIT] = commit
    return versions


def warn_of_differences(where: object, saved: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Name, in one warning, the versions that are not those of a checkpoint, and what that may mean."""
    differing = {name: (saved[name], here[name]) for name in saved if name in here and saved[name] != here[name]}
    if not differing:
        return
    changes = ", ".join(f"{name} {now} (was {before})" for name, (before, now) in differing.items())
    numbers = differing.keys() <= {"Python", *ALWAYS} - {"gymnasium"}
    meaning = "the last digits of numbers may be others" if numbers else "the environment may play by other rules"
    warnings.warn(
        f"{where}: other versions than when it was saved: {changes}; {meaning}, so scores may differ, and a resumed "
        "run will not repeat the uninterrupted one",
        stacklevel=3,
    )


def warn_of_edits(env_name: str, trained: Mapping[str, str]) -> None:
    """Warn if the code of an environment was edited while it was trained, since it is evaluated as it is now."""
    here = versions_of(env_name)
    if any(trained.get(name) != here.get(name) for name in (CODE, PYTHON_CODE)):
        warnings.warn(
            f"{env_name} was edited during the training: the agent learned the code of before, and its evaluation "
            "plays that of now",
            stacklevel=3,
        )


def _packages(env_name: str) -> list[str]:
    """Distributions behind an environment."""
    facts = registry.binding_facts().get(env_name.partition("/")[0])
    if registry.is_inside(env_name):
        return [Requirement(text).name for text in facts.requires] if facts else []
    module = env_name.partition(":")[0]
    return [module.partition(".")[0]] if module.replace(".", "").isidentifier() else []


def _code(env_name: str) -> str:
    """Short hash of the C code of an environment; empty for those in Python."""
    if source := registry.c_file(env_name):
        return code_of(compile_file(source))
    return code_of(env_name)[:12] if env_name in ocean.names() else ""


def _python_code(env_name: str) -> str:
    """Short hash of the file of an environment in Python that is not in this repository, or of a class in a script."""
    if registry.is_inside(env_name):
        return ""
    if (file := registry.source_file(env_name)) is not None:
        text = file.read_bytes()
    elif env_name in registry.registrations():
        try:
            text = inspect.getsource(registry.registrations()[env_name].creator).encode()  # type: ignore[arg-type]
        except (OSError, TypeError):  # of a notebook's cell that is gone, or a name
            return ""
    else:
        return ""
    return hashlib.sha256(text).hexdigest()[:12]


def _folder(env_name: str) -> Path | None:
    """The folder of its source file, or our checkout; not a repository that we are only installed in."""
    file, checkout = Path(env_name.partition(":")[0]), Path(pufferlib.__file__).parents[1]
    if file.suffix in (".py", ".c"):
        return file.parent
    return checkout if (checkout / ".git").exists() else None


def _commit(folder: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", folder, "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
