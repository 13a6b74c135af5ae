"""Bundle: one file with everything that an environment needs to be stepped again to the same end."""

import functools
import json
import os
import pickle
import platform
import re
import sys
import tempfile
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import gymnasium
import numpy as np

import pufferlib
from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.vector.specs import Autoreset, EnvSpec

__all__ = ["Bundle", "cause", "digest", "free_path", "versions"]

DIGESTED = ("observations", "rewards", "terminals", "truncations")
FORMAT = 1
LARGEST = 64 << 20  # bytes of a creator and its arguments; one that holds a data set is to be named instead


def versions() -> dict[str, str]:
    """Versions that decide how an environment plays."""
    packages = {package.__name__: package.__version__ for package in (pufferlib, np, gymnasium)}
    return {"python": platform.python_version(), **packages}


def _own_path() -> tuple[str, ...]:
    """Folders on the path of this process that are none of Python's own or of installed packages."""
    folders = (os.path.abspath(entry) for entry in sys.path if isinstance(entry, str))
    inside = tuple(os.path.abspath(each) for each in (sys.prefix, sys.base_prefix))
    return tuple(dict.fromkeys(folder for folder in folders if not folder.startswith(inside)))


@dataclass(frozen=True)
class Bundle:
    """Recording of one environment since its last reset with a seed.

    Attributes:
        env: The environment and its arguments, in words.
        index: Of the environment in its batch.
        seed: That it was reset with.
        autoreset: What followed its episodes; None where it failed before that was known.
        actions: ``(steps, num_agents, *action_shape)``, from the first step on; the last step's if it is not complete.
        is_complete: True if ``actions`` has all steps since the reset.
        phase: "build", "reset" or "step": what came last.
        error: Exception that ended it, in one line; "" if it was none.
        resets: Numbers of steps before which it was reset without a seed.
        ends: Numbers of the steps in which episodes ended, from 1.
        digest: Of the rows after the last step; None where they were not known.
        pickled: Creator and arguments; empty if they cannot be pickled.
        versions: Of the packages that recorded it.
        path: Folders with the user's modules: those on the path of the process that recorded it.
    """

    env: str
    index: int
    seed: int
    autoreset: Autoreset | None
    actions: Array
    is_complete: bool
    phase: str = "step"
    error: str = ""
    resets: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    digest: int | None = None
    pickled: bytes = b""
    versions: Mapping[str, str] = field(default_factory=versions)
    path: tuple[str, ...] = field(default_factory=_own_path)

    @classmethod
    def of(cls, spec: EnvSpec, actions: Array, **others: Any) -> Self:
        """The bundle of an environment that was made from ``spec``, whose seed it was reset with."""
        env = _described(functools.partial(spec.creator, *spec.args, **spec.kwargs))
        pickled = b""
        with suppress(Exception):  # of a creator that holds a lock, a socket: the rest of the bundle is worth having
            pickled = pickle_by_value((spec.creator, tuple(spec.args), dict(spec.kwargs)))
        if len(pickled) > LARGEST:
            pickled = b""
        return cls(env=env, index=spec.index, seed=spec.seed, actions=actions, pickled=pickled, **others)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, all at once or not at all: a zip of arrays, which ``numpy.load`` reads."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = {name: value for name, value in vars(self).items() if name not in ("actions", "pickled")}
        arrays = {
            "facts": np.array(json.dumps({"format": FORMAT, **facts})),
            "actions": self.actions,
            "pickled": np.frombuffer(self.pickled, np.uint8),
        }
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")  # readable by the user alone
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file. Nothing in it is run before ``creator`` is asked for.

        Raises:
            APIUsageError: It is no bundle.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                facts = json.loads(str(arrays["facts"]))
                actions, pickled = arrays["actions"], arrays["pickled"].tobytes()
            if facts.pop("format") != FORMAT:
                raise ValueError("another format")
            for name in ("resets", "ends", "path"):
                facts[name] = tuple(facts.get(name, ()))
            return cls(actions=actions, pickled=pickled, **facts)
        except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error):
            raise APIUsageError(
                f"Bundle.load: {path} must be a bundle of this version of pufferlib, got another file; "
                "take one that a WorkerError names, or that vector.make(record=...) left"
            ) from None

    def creator(self) -> Callable[..., Any]:
        """Restore what makes the environment, with its arguments. This runs code of the file: trust its author.

        Raises:
            APIUsageError: It was not pickled, or its modules cannot be imported here.
        """
        if not self.pickled:
            raise APIUsageError(
                f"Bundle.creator: {self.env} must be something that can be pickled, and was not; "
                "name the environment: puffer replay BUNDLE --env NAME"
            )
        sys.path += [folder for folder in self.path if folder not in sys.path and os.path.isdir(folder)]
        try:
            creator, args, kwargs = pickle.loads(self.pickled)
        except Exception as error:
            raise APIUsageError(
                f"Bundle.creator: {self.env} must be importable, got {type(error).__name__}: {error}; run where its "
                "modules are, or name it: puffer replay BUNDLE --env NAME"
            ) from error
        return functools.partial(creator, *args, **kwargs)

    def differences(self) -> list[str]:
        """Tell which versions are other ones here."""
        here = versions()
        return [f"{name} {old}, here {here[name]}" for name, old in self.versions.items() if here.get(name) != old]


def free_path(folder: Path, name: str) -> Path:
    """Path of a file of this name that does not exist, with a number if it must be: ``name-2.npz``."""
    path, count = folder / f"{name}.npz", 1
    while path.exists():
        count += 1
        path = folder / f"{name}-{count}.npz"
    return path


def digest(arrays: Mapping[str, Array], rows: slice) -> int:
    """Digest of ``rows`` of what a step shows, 32 bits."""
    found = 0
    for name in DIGESTED:
        found = zlib.crc32(np.ascontiguousarray(arrays[name][rows]).reshape(-1).view(np.uint8).data, found)
    return found


def cause(error: BaseException) -> str:
    """Reduce an error to one line that says why, the same in a worker and without one."""
    if not isinstance(error, pufferlib.WorkerError):
        return traceback.format_exception_only(error)[0].strip().partition("\n")[0]
    text = str(error).partition("\n")[0].partition(": ")[2]
    text = re.sub(r"^worker \d+ \(.*?\) ", "the worker ", text)
    return re.split(r", in (?:build|reset|step|close) of |, got more in ", text)[0]


def _described(value: Any) -> str:
    """A creator with its arguments as a person would write it."""
    if isinstance(value, functools.partial):
        return f"{_described(value.func)}({', '.join(_arguments(value.args, value.keywords))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _arguments(args: Iterable[Any], keywords: Mapping[str, Any]) -> Iterable[str]:
    yield from map(_described, args)
    yield from (f"{name}={_described(value)}" for name, value in keywords.items())
