"""Every exception that pufferlib raises on purpose.

A message has four parts: where it happened, what was expected, what was given, and what to do::

    PufferError
    ├── APIUsageError        (also a ValueError and a RuntimeError: a call that breaks the contract)
    │   └── UnknownNameError (also a KeyError: a name that nothing answers to)
    ├── InvalidAgentError    (also a ValueError: an agent that the environment does not have)
    ├── WorkerError          (also a RuntimeError: an environment failed in another process)
    └── BindingMissing       (also an ImportError: an optional package is not installed)
"""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "APIUsageError",
    "BindingMissing",
    "InvalidAgentError",
    "PufferError",
    "UnknownNameError",
    "UsageError",
    "WorkerError",
    "nearest",
]


_LISTED = 12  # as many names as a message can show and stay a message


class PufferError(Exception):
    """The base of all errors of this package: ``except pufferlib.PufferError`` catches each of them.

    Raised itself where the machine or the numbers are at fault, not the call: no display for a window, a
    loss that is not finite. ``str(error)`` is the message; but for ``ContractError.line`` and ``WorkerError.bundles``
    there are no attributes. Where there are several environments or agents a note of the exception says which one
    it was.
    """


class APIUsageError(PufferError, ValueError, RuntimeError):
    """A call that breaks the contract: a wrong argument, or a right one at the wrong time.

    Also an environment that does not do what its spaces and ``PufferEnv`` promise. The message says what to
    change. Being a ValueError and a RuntimeError too, it is caught by code that was written for other libraries.
    """


class UnknownNameError(APIUsageError, KeyError):
    """A name of an environment, option or backend that does not exist; the message suggests the nearest."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes

    @classmethod
    def of(
        cls, where: str, kind: str, name: object, known: Iterable[str], close: Sequence[str] = ()
    ) -> "UnknownNameError":
        """The error for ``name``, which is none of ``known``; suggests ``close``, or else the nearest ones."""
        known = sorted(known)
        close = close or nearest(str(name), known)
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        else:
            more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
            hint = f"known: {', '.join(known[:_LISTED])}{more}"
        return cls(f"{where}: unknown {kind} {name!r}; {hint}")


class InvalidAgentError(PufferError, ValueError):
    """An agent that the environment does not have.

    Raised when a caller or the environment itself names an agent that is none of ``possible_agents`` of a
    ``PettingZooPufferEnv``, which the message lists.
    """


class UsageError(APIUsageError):
    """A command that was not understood, or a value that a setting cannot have; exit code 2."""


class WorkerError(PufferError, RuntimeError):
    """An environment raised, took longer than ``timeout_s``, or its process died, in a worker.

    Raised by ``vector.make``, ``reset``, ``step`` or ``recv`` of ``Multiprocessing`` and ``Ray``, and by
    environments in a process of their own. The message has the traceback from that process and, where there are
    several, the index, seed and last actions of the environment. All workers have ended by then: make new ones.

    Attributes:
        bundles: Files from which ``puffer replay`` steps the environments again that may have failed; mostly one.
    """

    bundles: "tuple[Path, ...]" = ()


class BindingMissing(PufferError, ImportError):  # noqa: N818 - a name that users already know
    """An optional package is needed; the message names the command that installs it.

    Raised when the environment, backend or window that needs it is made, never by ``import pufferlib``.
    """


def nearest(name: str, known: Iterable[str], count: int = 2, cutoff: float = 0.6) -> list[str]:
    """The ``count`` entries of ``known`` closest to ``name``, best first; empty when none is as close as ``cutoff``."""
    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)
