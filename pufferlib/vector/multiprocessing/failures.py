"""What to tell the user about a worker that failed: what, where, with what actions, and what to do."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pufferlib.buffers import Array
from pufferlib.errors import PufferError, WorkerError
from pufferlib.vector.multiprocessing.process import WorkerProcess
from pufferlib.vector.protocol import Failed

__all__ = ["FailureContext", "envs_text", "error_of", "late_error", "stalled_error", "vanished_error"]

WHERE = "vector.Multiprocessing"
DEATH_S = 1.0  # for the system to tell how a process ended


@dataclass(frozen=True)
class FailureContext:
    """What a worker was doing, in which of its environments.

    Attributes:
        worker: Its number.
        index: Of the environment, in the whole batch.
        seed: Last one that the environment was given.
        phase: "build", "reset", "step" or "close".
        actions: Last ones that the environment was given, if it was given any.
    """

    worker: int
    index: int
    seed: int
    phase: str
    actions: Array | None

    @property
    def text(self) -> str:
        """The environment, its worker, seed and actions."""
        return envs_text(self.worker, self.index, [self.seed], self.actions)


def envs_text(worker: int | None, first: int, seeds: Sequence[int], actions: Array | None) -> str:
    """Environments of a worker, None without one: from ``first`` on as many as there are seeds; seeds, actions."""
    many = len(seeds) > 1
    text = f"environments {first} to {first + len(seeds) - 1}" if many else f"environment {first}"
    text += f" ({'' if worker is None else f'worker {worker}, '}seed{'s' * many} {', '.join(map(str, seeds))}"
    if actions is not None:
        text += f", last actions {np.array2string(actions, threshold=32, separator=', ')}"
    return f"{text})"


def error_of(report: Failed, place: str, worker: int | None, where: str = WHERE) -> PufferError:
    """What to raise for a failure that a worker of the backend ``where`` reports, or that came without one."""
    if report.kind is WorkerError:
        return WorkerError(f"{where}: {report.message}, in {report.phase} of {place}.\n\n{report.traceback}")
    error = report.kind(report.message)
    error.add_note(f"In {'this process' if worker is None else f'worker {worker}'}:\n{report.traceback}")
    return error


def vanished_error(handle: WorkerProcess, place: FailureContext) -> WorkerError:
    """What to raise for a worker whose process ended without a report."""
    process = handle.process
    process.join(DEATH_S)
    code = process.exitcode
    cause = f"exit code {code}" if code is None or code >= 0 else f"signal {_signal_name(-code)}"
    return WorkerError(
        f"{WHERE}: worker {place.worker} (process {process.pid}) ended with {cause}, in {place.phase} of "
        f"{place.text}. If the machine ran out of memory (see dmesg), use fewer environments or workers; "
        f"otherwise run it with backend=Serial to see what ends the process.{_paragraph(handle.read_stack())}"
    )


def late_error(handle: WorkerProcess, place: FailureContext, timeout_s: float) -> WorkerError:
    """What to raise for an environment that takes longer than it may."""
    return WorkerError(
        f"{WHERE}: one {place.phase} of an environment may take timeout_s={timeout_s:g} seconds, got more in "
        f"{place.text}; raise timeout_s, or pass timeout_s=None to wait for ever. "
        f"Its worker was ended.{_paragraph(handle.ask_stack()) or ' It did not say where it was.'}"
    )


def stalled_error(handle: WorkerProcess, place: FailureContext, timeout_s: float) -> WorkerError:
    """What to raise for a worker that neither ends nor goes on in the middle of a message."""
    return WorkerError(
        f"{WHERE}: worker {place.worker} (process {handle.process.pid}) must go on with a message within "
        f"timeout_s={timeout_s:g} seconds, got no more of it, in {place.phase} of {place.text}; see whether somebody "
        "stopped the process (SIGSTOP, a debugger), raise timeout_s, or pass timeout_s=None to wait for ever. "
        "The worker was ended."
    )


def _paragraph(stack: str) -> str:
    return f"\n\n{stack}" if stack else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return str(number)
