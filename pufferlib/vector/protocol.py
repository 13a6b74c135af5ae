"""What parent and worker tell each other through their pipe; everything else goes through shared memory."""

import contextlib
import functools
import io
import os
import pickle
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, BindingMissing, PufferError, WorkerError
from pufferlib.vector.specs import Autoreset, EnvDescription, RowSpec

__all__ = [
    "CLOSE",
    "FAILURE",
    "INFOS",
    "PHASES",
    "RESET",
    "STEP",
    "Failed",
    "InfosMessage",
    "NeedMemory",
    "Ready",
    "Setup",
    "named",
    "pickled",
]

# Operations: the low bits of a command.
RESET, STEP, CLOSE = 1, 2, 3
PHASES = {RESET: "reset", STEP: "step"}

# Outcomes of a command: which message follows through the pipe. 0: none.
INFOS, FAILURE = 1, 2


@dataclass(frozen=True)
class Setup:
    """Parent to worker: what to build.

    Attributes:
        row_spec: What one environment needs; None for the worker that is to find it out.
        last_command: The last one that was not for this process; 0 unless it replaces another.
        fits: Whether each worker and the parent has a core of its own.
    """

    worker: int
    num_workers: int
    num_envs: int
    envs: bytes  # tuple[EnvSpec, ...], pickled by cloudpickle
    autoreset: Autoreset | None
    row_spec: RowSpec | None
    sys_path: list[str]
    last_command: int
    fits: bool
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class NeedMemory:
    """Worker to parent: this is what my first environment needs; answered with the shared memory."""

    row_spec: RowSpec


@dataclass(frozen=True)
class Ready:
    """Worker to parent: the environments are built."""

    row_spec: RowSpec
    description: EnvDescription


@dataclass(frozen=True)
class InfosMessage:
    """Worker to parent: infos of the last command, which were not empty."""

    infos: Infos


@dataclass(frozen=True)
class Failed:
    """Worker to parent: an environment raised; the worker is about to end.

    Attributes:
        phase: What it was doing: "build", "reset", "step" or "close".
        position: Which of the worker's environments.
        message: The exception in one line; its text alone unless ``kind`` is WorkerError.
        traceback: The whole of it, with notes.
        kind: What to raise in the parent: WorkerError, or what is no failure of the environment: it breaks the
            contract, or its package is not installed.
    """

    phase: str
    position: int
    message: str
    traceback: str
    kind: type[PufferError]

    @classmethod
    def of(cls, phase: str, position: int, error: BaseException) -> "Failed":
        """The report about ``error``."""
        kinds = (APIUsageError, BindingMissing) if phase == "build" else ()
        kind = next((kind for kind in kinds if isinstance(error, kind)), WorkerError)
        message = traceback.format_exception_only(error)[0].strip() if kind is WorkerError else str(error)
        return cls(phase, position, message, "".join(traceback.format_exception(error)).rstrip(), kind)


def pickled(message: object) -> bytes:
    """``message`` as the bytes that a worker sends.

    Not as multiprocessing does it: a tensor of torch would take an open file of the parent.
    """
    with contextlib.suppress(Exception):  # twice as fast as what follows
        return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(message)
    return data.getvalue()


class _Pickler(pickle.Pickler):
    """Sends classes of the caller's script, which came by value, by name: there they are what they were."""

    def reducer_override(self, value: object) -> Any:
        """How to restore ``value``; NotImplemented: as usual."""
        if not isinstance(value, type) or "<locals>" in value.__qualname__:
            return NotImplemented
        name = value.__module__, value.__qualname__
        with contextlib.suppress(KeyError, AttributeError):
            if named(*name) is value:
                return NotImplemented
        return named, name


def named(module: str, name: str) -> Any:
    """What is called so in this process."""
    return functools.reduce(getattr, name.split("."), sys.modules[module])
