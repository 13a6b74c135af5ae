"""Commands that work on one study, here and on other machines: which trial is whose, and who is still there."""

import contextlib
import fcntl
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from optuna.study import Study

__all__ = ["BEAT_S", "Owner"]

#: How often a command tells others that it is there.
BEAT_S = 20.0
_GONE_S = 180.0  # without a beat, a command of another machine is taken for dead: many beats, and clocks that differ
_PREFIX = "owner:"


class Owner:
    """This command, as the owner of the trials that it trains.

    One of this machine that was killed is known at once to be gone, by its process; one of another machine when it has
    given no sign for three minutes.

    Args:
        study: What it works on.
        folder: Of the sweep; commands that share it claim trials one after another.
    """

    def __init__(self, study: "Study", folder: Path) -> None:
        self.id = uuid.uuid4().hex[:12]
        self._study, self._lock = study, folder / "claim.lock"
        self._beat_s = float("-inf")
        self.beat()

    def beat(self) -> None:
        """Tell others, now and then, that it is there; cheap enough to be called in a loop."""
        if time.monotonic() - self._beat_s < BEAT_S:
            return
        self._study.set_user_attr(_PREFIX + self.id, {**_identity(os.getpid()), "beat": time.time()})
        self._beat_s = time.monotonic()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While this holds, no other command that shares the folder claims a trial; a kill ends it too."""
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_gone(self, owner: str | None) -> bool:
        """True if the command of that id has ended."""
        if owner == self.id:
            return False
        facts = self._study.user_attrs.get(f"{_PREFIX}{owner}")
        return facts is None or not _is_alive(facts)

    def host_of(self, owner: str | None) -> str:
        """The machine on which the command of that id runs."""
        facts = self._study.user_attrs.get(f"{_PREFIX}{owner}")
        return str(facts["host"]).partition(" ")[0] if facts else "another machine"


def _identity(pid: int) -> dict[str, Any]:
    """A process, so that no other one of this or another machine is taken for it."""
    return {"host": _host(), "pid": pid, "started": psutil.Process(pid).create_time()}


def _host() -> str:
    """This machine, or container, since it was started: numbers of processes are its own."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"


def _is_alive(facts: dict[str, Any]) -> bool:
    if facts["host"] != _host():
        return bool(time.time() - facts["beat"] < _GONE_S)
    try:
        process = psutil.Process(facts["pid"])
        is_same = abs(process.create_time() - float(facts["started"])) < 1.0
        return is_same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
