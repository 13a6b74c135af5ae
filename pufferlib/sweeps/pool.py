"""Processes that train trials, seen from the search."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pufferlib.machine.children import python_code

__all__ = ["TrialProcess", "end_all", "shares_of_cores", "wait_for_messages"]

_MAIN = "from pufferlib.sweeps.worker import main; main(*map(int, sys.argv[1:]))"
_SAVE_S = 20.0  # time to save a checkpoint, once it is told to end


def shares_of_cores(workers: int, usable: int) -> list[list[int]]:
    """The cores of each worker: equal shares, and one each, in turns, where there are fewer cores than workers."""
    allowed = sorted(os.sched_getaffinity(0))[:usable] if usable else []
    each = max(1, len(allowed) // workers)
    return [[allowed[(worker * each + i) % len(allowed)] for i in range(each)] for worker in range(workers)]


class TrialProcess:
    """A process that trains one trial after another.

    Args:
        cores: Those that it may use.
        surrounding: Its first message, as bytes.
        log: File that takes what it prints, and its stack when it crashes.
    """

    def __init__(self, cores: Sequence[int], surrounding: bytes, log: Path) -> None:
        ours, theirs = connection.Pipe()
        parent_fd, self._lifeline = os.pipe()  # nobody writes into it: it ends with this process
        arguments = [theirs.fileno(), os.getpid(), parent_fd, *cores]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until it ignores Ctrl-C
        try:
            with log.open("ab") as output:
                self._popen = subprocess.Popen(
                    python_code(_MAIN, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(), parent_fd),
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
            os.close(parent_fd)
        self.log, self.conn, self.pid = log, ours, self._popen.pid
        with contextlib.suppress(OSError):  # it ended already; that is seen later
            self.conn.send_bytes(surrounding)

    def send(self, message: Any) -> None:
        """Send it a message; one that has ended hears none."""
        with contextlib.suppress(OSError):
            self.conn.send(message)

    def receive(self) -> Any:
        """The next message; None where it has ended."""
        try:
            return self.conn.recv()
        except (EOFError, OSError):
            return None

    def ending(self) -> str:
        """Name of the signal that ended it, or its exit code as text; waits for the end."""
        code = self._popen.wait()
        self.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def ask_to_end(self) -> None:
        """Let it save a checkpoint, and end."""
        if self._popen.poll() is None:
            self._popen.terminate()

    def close(self, deadline: float | None = None) -> None:
        """End it: at once, or by force at ``deadline``."""
        if self.conn.closed:
            return
        if deadline is None:
            self._popen.kill()
        try:
            self._popen.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self.conn.close()
        os.close(self._lifeline)


def wait_for_messages(processes: Sequence[TrialProcess], limit_s: float) -> list[TrialProcess]:
    """The processes that have sent something or have ended, after ``limit_s`` at the latest."""
    by_conn: dict[Any, TrialProcess] = {process.conn: process for process in processes}
    ready: list[Connection] = connection.wait(list(by_conn), limit_s)  # type: ignore[assignment]
    return [by_conn[conn] for conn in ready]


def end_all(processes: Sequence[TrialProcess]) -> None:
    """End them; trainings in progress save a checkpoint first."""
    for process in processes:
        process.ask_to_end()
    deadline = time.monotonic() + _SAVE_S
    for process in processes:
        process.close(deadline)
