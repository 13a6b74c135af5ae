"""Exceptions raised by pufferlib.

A message has up to four parts: where it happened, what was expected, what was given, and how to fix it::

    PufferError
    ├── APIUsageError        (also a ValueError and a RuntimeError: a wrong call or argument)
    │   └── UnknownNameError (also a KeyError: a name that does not exist)
    │       └── UnknownKeywordError (also a TypeError: a keyword argument that does not exist)
    ├── InvalidAgentError    (also a ValueError: an agent that the environment does not have)
    ├── WorkerError          (also a RuntimeError: an environment failed in another process)
    └── BindingMissing       (also an ImportError: an optional package is not installed)
"""

import difflib
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

__all__ = [
    "APIUsageError",
    "BindingMissing",
    "InvalidAgentError",
    "PufferError",
    "UnknownKeywordError",
    "UnknownNameError",
    "UsageError",
    "WorkerError",
    "nearest",
    "place_of",
]


_LISTED = 12  # largest number of names listed in a message


class PufferError(Exception):
    """Base class of all errors of this package: ``except pufferlib.PufferError`` catches each of them.

    It is raised directly if not the call but the machine or the data is the cause, for example if there is no display
    for a window, or a loss is not finite. ``str(error)`` is the message. The only attributes are ``ContractError.line``
    and ``WorkerError.bundles``. If there are several environments or agents, a note of the exception names the one.
    """


class APIUsageError(PufferError, ValueError, RuntimeError):
    """Wrong use of the API: a wrong argument, or a call at the wrong time.

    Also raised if an environment does not follow its spaces or the ``PufferEnv`` interface. The message says what to
    change. It is also a ValueError and a RuntimeError, so code written for other libraries catches it.
    """


class UnknownNameError(APIUsageError, KeyError):
    """Name of an environment, option or backend that does not exist. The message suggests the closest matches."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes
    _adjective = "unknown"

    @classmethod
    def of(cls, where: str, kind: str, name: object, known: Iterable[str], close: Sequence[str] = ()) -> Self:
        """Return the error for ``name``, which is not in ``known``. Suggest ``close``, or else the closest matches."""
        known = sorted(known)
        close = close or nearest(str(name), known)
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        else:
            more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
            hint = f"known: {', '.join(known[:_LISTED])}{more}" if known else "there are none"
        return cls(f"{where}: {cls._adjective} {kind} {name!r}; {hint}")


class UnknownKeywordError(UnknownNameError, TypeError):
    """Keyword argument that does not exist, in the words of Python's own error.

    Other libraries look for them. TorchRL's ``GymEnv`` leaves out ``frameskip`` if an environment does not have it.
    """

    _adjective = "unexpected"


class InvalidAgentError(PufferError, ValueError):
    """Agent that the environment does not have.

    Raised if a caller or the environment itself names an agent that is not in ``possible_agents`` of a
    ``PettingZooPufferEnv``. The message lists the possible agents.
    """


class UsageError(APIUsageError):
    """Invalid command line, or invalid value of a setting. The exit code is 2."""


class WorkerError(PufferError, RuntimeError):
    """Failure of an environment in a worker: it raised, exceeded ``timeout_s``, or its process died.

    Raised by ``vector.make``, ``reset``, ``step`` or ``recv`` of ``Multiprocessing`` and ``Ray``, and by environments
    in a separate process. The message has the traceback from that process and, if there are several environments,
    the index, seed and last actions of the one that failed. All workers have been stopped, so create new environments.

    Attributes:
        bundles: Recordings of the environments that may have failed, for ``puffer replay``. Usually one file.
    """

    bundles: "tuple[Path, ...]" = ()


class BindingMissing(PufferError, ImportError):  # noqa: N818 - established public name
    """Missing optional package. The message names the command that installs it.

    Raised when the environment, backend or window that needs the package is created, never by ``import pufferlib``.
    """


def place_of(error: BaseException) -> str:
    """Return file and line of the innermost call outside Python's standard library, such as ``env.py, line 7``.

    ``pufferlib.imports``, which raises the errors for old module names, is left out too.
    """
    calls = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if (module := str(frame.f_globals.get("__name__"))) != "pufferlib.imports"
        and module.partition(".")[0] not in sys.stdlib_module_names
    ]
    return calls[-1]


def nearest(name: str, known: Iterable[str], count: int = 2, cutoff: float = 0.6) -> list[str]:
    """Return up to ``count`` entries of ``known`` that are most similar to ``name``, best first.

    Entries with a similarity below ``cutoff`` are left out.
    """
    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)
