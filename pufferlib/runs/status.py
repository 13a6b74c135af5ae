"""State of a run, readable from its folder during the training and afterwards."""

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.runs.folder import Run

__all__ = ["State", "Status", "in_training", "status_of"]


State = Literal["running", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class Status:
    """State of a run.

    Attributes:
        state: "running" now, "finished" with a result in the folder, "stopped" early by a user, a batch system or a
            kill, or "failed" with an error.
        reason: Error, or an empty text.
    """

    state: State
    reason: str = ""


@contextlib.contextmanager
def in_training(run: Run) -> Iterator[None]:
    """Return a context that marks ``run`` as running. Afterwards the mark is removed, or is "stopped" or "failed".

    Raises:
        APIUsageError: Another process is training the run.
    """
    descriptor = os.open(run.status, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends, however it ends
        except BlockingIOError:
            status = _read(run)
            raise APIUsageError(
                f"{run.folder}: is being trained by process {status.get('pid')} on {status.get('host')}; wait for it, "
                "or stop it first"
            ) from None
        _write(file, {"state": "running", "pid": os.getpid(), "host": platform.node()})
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            _write(file, {"state": "stopped"})
            raise
        except BaseException as error:
            _write(file, {"state": "failed", "reason": _reason(error)})
            raise
        run.status.unlink(missing_ok=True)  # the summary marks the run as finished


def status_of(run: Run) -> Status:
    """Return the state of a run from its folder."""
    status = _read(run)
    match status.get("state"):
        case "running" if run.is_locked:
            return Status("running")
        case "failed":
            return Status("failed", str(status.get("reason", "")))
        case None if run.summary.is_file():
            return Status("finished")
    return Status("stopped")


def _reason(error: BaseException) -> str:
    """Return the first line of an error. Errors of other packages include their class and notes."""
    text = str(error).partition("\n")[0]
    if isinstance(error, PufferError) and text:
        return text
    return " ".join([f"{type(error).__name__}{': ' if text else ''}{text}", *getattr(error, "__notes__", [])])


def _write(file: Any, status: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a full disk is reported elsewhere
        file.seek(0)
        file.truncate()
        file.write(json.dumps(status) + "\n")
        file.flush()


def _read(run: Run) -> dict[str, Any]:
    try:
        status = json.loads(run.status.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}
