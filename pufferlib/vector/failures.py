"""Failures of workers: the report, the error, and its text: what, where, with what actions, and what to do."""

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
    """Worker to parent: an environment raised; the worker is about to end.

    Attributes:
        phase: "build", "reset", "step" or "close", in which it raised.
        position: Of the environment among the worker's.
        message: The exception in one line; its text alone unless ``kind`` is WorkerError.
        traceback: The whole of it, with notes.
        kind: Class to raise in the parent: WorkerError, or another where it is no failure of the environment: it
            breaks the contract, or its package is not installed.
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


class WorkerFailed(Exception):  # noqa: N818 - never reaches the caller
    """A worker failed; ``error`` is what to raise because of it."""

    def __init__(self, worker: int, error: PufferError) -> None:
        super().__init__(worker, error)
        self.worker, self.error = worker, error


@dataclass(frozen=True)
class FailureContext:
    """Circumstances in which a worker failed.

    Attributes:
        where: The backend.
        worker: Its number.
        phase: "build", "reset", "step" or "close".
        text: Its environments, their seeds and last actions, in words.
        envs: Those of them that may have failed, with the seeds of their last resets.
        actions: Their last ones, one after the other; None before the first reset.
        starts_with_seed: True if nothing has happened since they were built, or reset with these seeds.
    """

    where: str
    worker: int
    phase: str
    text: str
    envs: tuple[EnvSpec, ...] = ()
    actions: Array | None = None
    starts_with_seed: bool = False


def envs_text(worker: int | None, first: int, seeds: Sequence[int], actions: Array | None) -> str:
    """Environments of a worker, None without one: from ``first`` on as many as there are seeds; seeds, actions."""
    many = len(seeds) > 1
    text = f"environments {first} to {first + len(seeds) - 1}" if many else f"environment {first}"
    text += f" ({'' if worker is None else f'worker {worker}, '}seed{'s' * many} {', '.join(map(str, seeds))}"
    if actions is not None:
        text += f", last actions {np.array2string(actions, threshold=32, separator=', ')}"
    return f"{text})"


def error_of(report: Failed, place: str, worker: int | None, where: str) -> PufferError:
    """Error to raise for a failure that a worker of the backend ``where`` reports, or that came without one."""
    if report.kind is WorkerError:
        return WorkerError(f"{where}: {report.message}, in {report.phase} of {place}.\n\n{report.traceback}")
    error = report.kind(report.message)
    error.add_note(f"In {'this process' if worker is None else f'worker {worker}'}:\n{report.traceback}")
    return error


def vanished_error(
    context: FailureContext, pid: int | None, exitcode: int | None, advice: str, stack: str
) -> WorkerError:
    """Error to raise for a worker whose process ended without a report; ``advice`` for one short of memory first."""
    cause = f"exit code {exitcode}" if exitcode is None or exitcode >= 0 else f"signal {_signal_name(-exitcode)}"
    return WorkerError(
        f"{context.where}: worker {context.worker} (process {pid}) ended with {cause}, in {context.phase} of "
        f"{context.text}. If the machine ran out of memory (see dmesg), {advice}.{_paragraph(stack)}"
    )


def late_error(context: FailureContext, timeout_s: float, stack: str | None = None) -> WorkerError:
    """Error to raise for an environment that takes longer than it may; ``stack`` if the worker was asked for it."""
    silence = " It did not say where it was." if stack == "" else ""
    return WorkerError(
        f"{context.where}: one {context.phase} of an environment may take timeout_s={timeout_s:g} seconds, got more in "
        f"{context.text}; raise timeout_s, or pass timeout_s=None to wait for ever. Its worker was ended."
        f"{silence}{_paragraph(stack)}"
    )


def stalled_error(context: FailureContext, pid: int | None, timeout_s: float) -> WorkerError:
    """Error to raise for a worker that neither ends nor goes on in the middle of a message."""
    return WorkerError(
        f"{context.where}: worker {context.worker} (process {pid}) must go on with a message within "
        f"timeout_s={timeout_s:g} seconds, got no more of it, in {context.phase} of {context.text}; see whether "
        "somebody stopped the process (SIGSTOP, a debugger), raise timeout_s, or pass timeout_s=None to wait for "
        "ever. The worker was ended."
    )


def _paragraph(stack: str | None) -> str:
    return f"\n\n{stack}" if stack else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return str(number)
