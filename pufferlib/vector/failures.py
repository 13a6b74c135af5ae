"""Failures of workers: reports, errors with their messages, and the actions that replay a failure."""

import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError, BindingMissing, PufferError, WorkerError
from pufferlib.vector.specs import EnvSpec

__all__ = [
    "Failed",
    "FailureContext",
    "WorkerFailed",
    "envs_text",
    "error_of",
    "late_error",
    "stalled_error",
    "vanished_error",
]


@dataclass(frozen=True)
class Failed:
    """Message from worker to parent: an environment raised, and the worker is about to stop.

    Attributes:
        phase: Phase in which it raised: "build", "reset", "step" or "close".
        position: Index of the environment within the worker.
        message: Exception in one line. Without its class name unless ``kind`` is WorkerError.
        traceback: Full traceback with notes.
        kind: Class to raise in the parent. WorkerError, or another class if the cause is an API error or a missing
            package.
    """

    phase: str
    position: int
    message: str
    traceback: str
    kind: type[PufferError]

    @classmethod
    def of(cls, phase: str, position: int, error: BaseException) -> "Failed":
        """Return the report for ``error``."""
        kinds = (APIUsageError, BindingMissing) if phase == "build" else ()
        kind = next((kind for kind in kinds if isinstance(error, kind)), WorkerError)
        message = traceback.format_exception_only(error)[0].strip() if kind is WorkerError else str(error)
        return cls(phase, position, message, "".join(traceback.format_exception(error)).rstrip(), kind)


class WorkerFailed(Exception):  # noqa: N818 - never reaches the caller
    """Failure of a worker. ``error`` is the exception to raise for it."""

    def __init__(self, worker: int, error: PufferError) -> None:
        super().__init__(worker, error)
        self.worker, self.error = worker, error


@dataclass(frozen=True)
class FailureContext:
    """Circumstances of a worker failure.

    Attributes:
        where: Name of the backend.
        worker: Index of the worker.
        phase: Phase of the failure: "build", "reset", "step" or "close".
        text: Description of the environments, their seeds and last actions.
        envs: Specs of the environments that may have failed, with the seeds of their last resets.
        actions: Last actions of these environments, concatenated. None unless they are stepping.
        starts_with_seed: Whether nothing has happened since they were built, or reset with these seeds.
    """

    where: str
    worker: int
    phase: str
    text: str
    envs: tuple[EnvSpec, ...] = ()
    actions: Array | None = None
    starts_with_seed: bool = False


def envs_text(worker: int | None, first: int, seeds: Sequence[int], actions: Array | None) -> str:
    """Describe consecutive environments, with the first index ``first``, one for each seed, for a message."""
    many = len(seeds) > 1
    text = f"environments {first} to {first + len(seeds) - 1}" if many else f"environment {first}"
    text += f" ({'' if worker is None else f'worker {worker}, '}seed{'s' * many} {', '.join(map(str, seeds))}"
    if actions is not None:
        text += f", last actions {np.array2string(actions, threshold=32, separator=', ')}"
    return f"{text})"


def error_of(report: Failed, place: str, worker: int | None, where: str) -> PufferError:
    """Return the error for a report. ``where`` is the backend, and ``worker`` is None for this process."""
    if report.kind is WorkerError:
        return WorkerError(f"{where}: {report.message}, in {report.phase} of {place}.\n\n{report.traceback}")
    error = report.kind(report.message)
    error.add_note(f"In {'this process' if worker is None else f'worker {worker}'}:\n{report.traceback}")
    return error


def vanished_error(
    context: FailureContext, pid: int | None, exitcode: int | None, advice: str, stack: str
) -> WorkerError:
    """Return the error for a process that ended without a report. ``advice`` helps if memory ran out."""
    cause = f"exit code {exitcode}" if exitcode is None or exitcode >= 0 else f"signal {_signal_name(-exitcode)}"
    return WorkerError(
        f"{context.where}: worker {context.worker} (process {pid}) ended with {cause}, in {context.phase} of "
        f"{context.text}. If the machine ran out of memory (see dmesg), {advice}.{_paragraph(stack)}"
    )


def late_error(context: FailureContext, timeout_s: float, advice: str, stack: str | None = None) -> WorkerError:
    """Return the error for a timeout.

    Args:
        context: Circumstances of the failure.
        timeout_s: Timeout in seconds.
        advice: What to do if it is too short.
        stack: Stack of the worker, empty if it did not reply. None if it was not asked.
    """
    silence = " It did not report its stack." if stack == "" else ""
    return WorkerError(
        f"{context.where}: one {context.phase} of an environment may take {timeout_s:g} seconds, got more in "
        f"{context.text}; {advice}. Its worker was stopped."
        f"{silence}{_paragraph(stack)}"
    )


def stalled_error(context: FailureContext, pid: int | None, timeout_s: float, advice: str) -> WorkerError:
    """Return the error for a worker that stalls in the middle of a message. ``advice`` is as in ``late_error``."""
    return WorkerError(
        f"{context.where}: worker {context.worker} (process {pid}) must continue a message within "
        f"{timeout_s:g} seconds, but sent no more of it, in {context.phase} of {context.text}; check whether the "
        f"process is stopped (SIGSTOP, a debugger); otherwise {advice}. The worker was stopped."
    )


def _paragraph(stack: str | None) -> str:
    return f"\n\n{stack}" if stack else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return str(number)
