"""State of a run, for those who look at its folder while it is trained and afterwards."""

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
        state: "running" in this moment, "finished" with its result in the folder, "stopped" before that by a person, a
            batch system or a kill, or "failed" by an error.
        reason: The error; empty where there is none.
    """

    state: State
    reason: str = ""


@contextlib.contextmanager
def in_training(run: Run) -> Iterator[None]:
    """Mark ``run`` as running while this holds, and as stopped or failed if it ends so.

    Raises:
        APIUsageError: Another process trains it.
    """
    descriptor = os.open(run.status, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # goes with the process, however that ends
        except BlockingIOError:
            told = _read(run)
            raise APIUsageError(
                f"{run.folder}: is being trained by process {told.get('pid')} on {told.get('host')}; wait for it, or "
                "stop it first"
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
        run.status.unlink(missing_ok=True)  # its summary says the rest


def status_of(run: Run) -> Status:
    """The state of a run, by its folder."""
    told = _read(run)
    match told.get("state"):
        case "running" if _is_locked(run):
            return Status("running")
        case "failed":
            return Status("failed", str(told.get("reason", "")))
        case None if run.summary.is_file():
            return Status("finished")
    return Status("stopped")


def _reason(error: BaseException) -> str:
    """First line of an error; where it is none of ours, with its class and its notes, which say whose it is."""
    text = str(error).partition("\n")[0]
    if isinstance(error, PufferError) and text:
        return text
    return " ".join([f"{type(error).__name__}{': ' if text else ''}{text}", *getattr(error, "__notes__", [])])


def _write(file: Any, told: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a full disk has a message of its own
        file.seek(0)
        file.truncate()
        file.write(json.dumps(told) + "\n")
        file.flush()


def _read(run: Run) -> dict[str, Any]:
    try:
        told = json.loads(run.status.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _is_locked(run: Run) -> bool:
    try:
        with run.status.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
