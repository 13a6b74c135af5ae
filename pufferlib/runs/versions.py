"""Versions of everything that a trained agent depends on, and warnings about differences when it is loaded."""

import contextlib
import functools
import hashlib
import inspect
import platform
import subprocess
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import pufferlib
from pufferlib import ocean, registry
from pufferlib.ocean.files import compile_file
from pufferlib.ocean.state import code_of

__all__ = ["versions_of", "warn_of_differences", "warn_of_edits", "warn_of_missing"]


COMMIT = "git commit"
CODE = "C code"
PYTHON_CODE = "code of the environment"
ENV_CLASS = "class of the environment"
ALWAYS = ("torch", "numpy", "gymnasium")


def versions_of(env_name: str) -> dict[str, str]:
    """Return versions by name: Python, pufferlib, torch, numpy, gymnasium, and versions of the environment.

    These are the packages of the environment, a hash of its code (in C, or in a Python file outside this package), its
    class if the name of its file stands for it, and the git commit of its source file or of this checkout. Packages
    that are not installed are left out, for example those of an environment that runs in a separate Python.
    """
    versions = {"Python": platform.python_version(), "pufferlib": pufferlib.__version__}
    for name in (*ALWAYS, *_packages(env_name)):
        if version := _installed(name):
            versions[name] = version
    if code := _code(env_name):
        versions[CODE] = code
    if code := _python_code(env_name):
        versions[PYTHON_CODE] = code
    if not registry.split_name(env_name)[1] and (only := registry.name_in_file(env_name)):
        versions[ENV_CLASS] = only
    folder = _folder(env_name)
    if folder and (commit := _commit(folder)):
        versions[COMMIT] = commit
    return versions


def warn_of_differences(where: object, saved: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Warn about versions that differ from the versions of a checkpoint, and about the consequences."""
    differing = {name: (saved[name], here[name]) for name in saved if name in here and saved[name] != here[name]}
    if not differing:
        return
    changes = ", ".join(f"{name} {now} (was {before})" for name, (before, now) in differing.items())
    numbers = differing.keys() <= {"Python", *ALWAYS} - {"gymnasium"}
    meaning = "numbers may differ in the last digits" if numbers else "the environment may behave differently"
    warnings.warn(
        f"{where}: versions have changed since it was saved: {changes}; {meaning}, so scores may differ, and a resumed "
        "run will not repeat the uninterrupted one",
        stacklevel=3,
    )


def warn_of_missing(where: object, before: Sequence[str], now: Sequence[str]) -> None:
    """Warn about the loss and callbacks of a checkpoint that a resumed training does not have."""
    missing = [*(Counter(before) - Counter(now))]
    if missing:
        warnings.warn(
            f"{where}: was trained with {' and '.join(missing)}, which this training does not have, so it may not "
            "continue as before; a run does not store losses and callbacks, so pass them again",
            stacklevel=3,
        )


def warn_of_edits(env_name: str, trained: Mapping[str, str]) -> None:
    """Warn if the code of an environment was edited during the training, because the evaluation uses the new code."""
    here = versions_of(env_name)
    if any(trained.get(name) != here.get(name) for name in (CODE, PYTHON_CODE)):
        warnings.warn(
            f"{env_name} was edited during the training: the agent was trained with the old code, and is evaluated "
            "with the new code",
            stacklevel=3,
        )


@functools.cache  # what is imported stays the same, and checkpoints ask often
def _installed(name: str) -> str:
    """Return the version of a package, or "" if it is not installed. CPU and CUDA builds of torch count as equal."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def _packages(env_name: str) -> list[str]:
    """Return the names of the distributions that an environment needs."""
    facts = registry.binding_facts().get(env_name.partition("/")[0])
    if registry.is_inside(env_name):
        return [Requirement(text).name for text in facts.requires] if facts else []
    module, _ = registry.split_name(env_name)
    return [module.partition(".")[0]] if module.replace(".", "").isidentifier() else []


def _code(env_name: str) -> str:
    """Return a short hash of the C code of an environment, or "" for an environment in Python."""
    if source := registry.c_file(env_name):
        return code_of(compile_file(source))
    return code_of(env_name)[:12] if env_name in ocean.names() else ""


def _python_code(env_name: str) -> str:
    """Return a short hash of a Python environment's code that is outside this package, or "".

    The code is the file of the environment, or the source of a registered class.
    """
    if registry.is_inside(env_name):
        return ""
    if (file := registry.source_file(env_name)) is not None:
        text = file.read_bytes()
    elif env_name in registry.registrations():
        text = _source_of(registry.registrations()[env_name].creator).encode()
    else:
        return ""
    return hashlib.sha256(text).hexdigest()[:12] if text else ""


def _source_of(creator: Any) -> str:
    """Return the source of a class or function, or "" if it is unknown, as in a deleted notebook cell.

    Python 3.11 does not find a class of a notebook, but its functions.
    """
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(creator)
    members = vars(creator).values() if inspect.isclass(creator) else ()
    functions = (getattr(each, "__func__", getattr(each, "fget", each)) for each in members)  # static, or a property
    with contextlib.suppress(OSError, TypeError):
        return "".join(inspect.getsource(each) for each in functions if inspect.isfunction(each))
    return ""


def _folder(env_name: str) -> Path | None:
    """Return the folder of the environment's source file, or this checkout if it is a git repository."""
    file, checkout = Path(registry.split_name(env_name)[0]), Path(pufferlib.__file__).parents[1]
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
