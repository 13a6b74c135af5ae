"""Bundle files, which contain everything that is needed to repeat the steps of one environment."""

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
from pufferlib.vector.specs import AutoresetMode, EnvSpec

__all__ = ["DIGESTED", "Bundle", "cause", "digest", "free_path", "versions"]

DIGESTED = ("observations", "rewards", "terminals", "truncations")
FORMAT = 1
LARGEST = 64 << 20  # maximum bytes of a creator and its arguments; larger ones are not stored


def versions() -> dict[str, str]:
    """Return the versions that affect the behavior of an environment."""
    packages = {package.__name__: package.__version__ for package in (pufferlib, np, gymnasium)}
    return {"python": platform.python_version(), **packages}


def _own_path() -> tuple[str, ...]:
    """Return the folders in ``sys.path`` outside of the Python installation and its packages."""
    folders = (os.path.abspath(entry) for entry in sys.path if isinstance(entry, str))
    inside = tuple(os.path.abspath(each) for each in (sys.prefix, sys.base_prefix))
    return tuple(dict.fromkeys(folder for folder in folders if not folder.startswith(inside)))


@dataclass(frozen=True)
class Bundle:
    """Recording of one environment since its last reset with a seed.

    Attributes:
        env: Description of the environment and its arguments.
        index: Index of the environment in its batch.
        seed: Seed of the reset.
        autoreset: Autoreset mode, or None if the environment failed before it was known.
        actions: Actions of the steps, shape ``(steps, num_agents, *action_shape)``.
        is_complete: True if the bundle contains everything since the reset. False if it contains only the last step, or
            lacks changes between steps, such as a reset of single environments or a call of a method.
        phase: Last phase: "build", "reset" or "step".
        error: Exception that was raised, in one line, or "".
        resets: Numbers of steps before which the environment was reset without a seed.
        ends: Numbers of the steps in which episodes ended, starting at 1.
        digest: Digest of the rows after the last step, or None if they are not known.
        pickled: Pickled creator and arguments, empty if they cannot be pickled.
        versions: Versions of the packages during the recording.
        path: Folders with the user's modules, from ``sys.path`` of the recording process.
    """

    env: str
    index: int
    seed: int
    autoreset: AutoresetMode | None
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
        """Return the bundle of an environment that was made from ``spec`` and reset with ``spec.seed``."""
        env = _describe(functools.partial(spec.creator, *spec.args, **spec.kwargs))
        pickled = b""
        with suppress(Exception):  # such as a creator with a lock or a socket; the rest of the bundle is still useful
            pickled = pickle_by_value((spec.creator, tuple(spec.args), dict(spec.kwargs)))
        if len(pickled) > LARGEST:
            pickled = b""
        return cls(env=env, index=spec.index, seed=spec.seed, actions=actions, pickled=pickled, **others)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically. It is a zip of arrays that ``numpy.load`` can read."""
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
        """Read a file. Code in it only runs when ``creator`` is called.

        Raises:
            APIUsageError: The file is not a bundle of this version of pufferlib.
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
                "use a file named by a WorkerError, or written by vector.make(record=...)"
            ) from None

    def creator(self) -> Callable[..., Any]:
        """Return the creator of the environment, with its arguments. Only use this on files from a trusted source.

        Unpickling runs code from the file.

        Raises:
            APIUsageError: The creator was not pickled, or its modules cannot be imported here.
        """
        if not self.pickled:
            raise APIUsageError(
                f"Bundle.creator: {self.env} could not be pickled, so the bundle does not contain it; "
                "name the environment: puffer replay BUNDLE --env NAME"
            )
        sys.path += [folder for folder in self.path if folder not in sys.path and os.path.isdir(folder)]
        try:
            creator, args, kwargs = pickle.loads(self.pickled)
        except Exception as error:
            raise APIUsageError(
                f"Bundle.creator: {self.env} must be importable, got {type(error).__name__}: {error}; run in the "
                "folder with its modules, or name the environment: puffer replay BUNDLE --env NAME"
            ) from error
        return functools.partial(creator, *args, **kwargs)

    def differences(self) -> list[str]:
        """Describe the versions that differ from this process."""
        here = versions()
        return [f"{name} {old}, here {here[name]}" for name, old in self.versions.items() if here.get(name) != old]


def free_path(folder: Path, name: str) -> Path:
    """Return the path of a new file with this name. If it exists, a number is added: ``name-2.npz``."""
    path, count = folder / f"{name}.npz", 1
    while path.exists():
        count += 1
        path = folder / f"{name}-{count}.npz"
    return path


def digest(arrays: Mapping[str, Array], rows: slice) -> int:
    """Return a 32-bit digest of ``rows`` of the outcome of a step."""
    found = 0
    for name in DIGESTED:
        found = zlib.crc32(np.ascontiguousarray(arrays[name][rows]).reshape(-1).view(np.uint8).data, found)
    return found


def cause(error: BaseException) -> str:
    """Reduce an error to one line with its cause, which is equal with and without a worker."""
    if not isinstance(error, pufferlib.WorkerError):
        return traceback.format_exception_only(error)[0].strip().partition("\n")[0]
    text = str(error).partition("\n")[0].partition(": ")[2]
    text = re.sub(r"^worker \d+ \(.*?\) ", "the worker ", text)
    return re.split(r", in (?:build|reset|step|close) of |, got more in ", text)[0]


def _describe(value: Any) -> str:
    """Return a creator and its arguments in Python notation."""
    if isinstance(value, functools.partial):
        return f"{_describe(value.func)}({', '.join(_arguments(value.args, value.keywords))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _arguments(args: Iterable[Any], keywords: Mapping[str, Any]) -> Iterable[str]:
    yield from map(_describe, args)
    yield from (f"{name}={_describe(value)}" for name, value in keywords.items())
