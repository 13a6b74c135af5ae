"""Worker processes in the interpreter of a stack."""

import contextlib
import os
import signal
import subprocess
from contextlib import ExitStack
from multiprocessing import connection
from pathlib import Path

from pufferlib.errors import WorkerError
from pufferlib.isolated.host import READY
from pufferlib.isolated.stacks import bootstrap
from pufferlib.vector.multiprocessing.process import WorkerProcess

__all__ = ["start_worker_in"]

START_S = 60.0  # time for the imports of a worker on a busy machine


class _Subprocess:
    """Adapter from ``subprocess.Popen`` to the interface of ``multiprocessing.Process``.

    Args:
        popen: Process to adapt.
        sentinel: File descriptor that becomes readable when the process has exited.
        lifeline: File descriptor that the process watches to detect the end of this process.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]", sentinel: int, lifeline: int) -> None:
        self._popen, self._lifeline = popen, lifeline
        self.pid, self.sentinel = popen.pid, sentinel
        self.terminate, self.kill = popen.terminate, popen.kill

    @property
    def exitcode(self) -> int | None:
        """Exit code (negative for a signal), or None while the process runs."""
        return self._popen.poll()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has exited, at most ``timeout`` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)

    def close(self) -> None:
        """Close the file descriptors."""
        os.close(self.sentinel)
        os.close(self._lifeline)


def start_worker_in(python: Path, name: str, timeout_s: float | None) -> WorkerProcess:
    """Start a worker process in the interpreter ``python``. The worker then waits for its ``Setup``.

    Args:
        python: Python of a virtual environment, with the same version as this one.
        name: Name of the environment, for error messages.
        timeout_s: Timeout of a message, or None for no limit. The timeout of the start is at least ``START_S``.

    Raises:
        WorkerError: The process exited or was not ready in time.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        conn, worker_conn = connection.Pipe()
        stacks, stack_writer = connection.Pipe(duplex=False)
        parent_fd, lifeline = os.pipe()
        sentinel, held = os.pipe()  # nothing is written to it; it closes when the process exits
        for side, kept in ((ours, (conn, stacks)), (theirs, (worker_conn, stack_writer))):
            for end in kept:
                side.callback(end.close)
        for side, fds in ((ours, (lifeline, sentinel)), (theirs, (parent_fd, held))):
            for fd in fds:
                side.callback(os.close, fd)
        arguments = worker_conn.fileno(), stack_writer.fileno(), os.getpid(), parent_fd
        process = _Subprocess(_spawn(python, arguments, (*arguments[:2], parent_fd, held)), sentinel, lifeline)
        theirs.close()
        worker = WorkerProcess(process, conn, stacks)
        ours.pop_all()
    try:
        worker.set_timeout(timeout_s)
        _await_start(worker, python, name, None if timeout_s is None else max(timeout_s, START_S))
    except BaseException:
        process.kill()
        worker.end(0.0)
        raise
    return worker


def _spawn(python: Path, arguments: tuple[int, ...], fds: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the worker ignores it
    try:
        # With -I, neither the working folder nor PYTHONPATH affects the imports of the stack.
        command = [str(python), "-I", "-c", bootstrap(), *map(str, arguments)]
        # Send its output to standard error, because it is not output of this program.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=fds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _await_start(worker: WorkerProcess, python: Path, name: str, limit_s: float | None) -> None:
    if not worker.wait(limit_s):
        raise WorkerError(
            f"{name}: the interpreter {python} was not ready within {limit_s:g} seconds (timeout_s, or {START_S:g} if "
            "that is longer); check whether it can import numpy, or pass timeout_s=None for no limit"
        )
    with contextlib.suppress(EOFError, ConnectionError):
        if worker.conn.recv_bytes() == READY:
            return
    worker.process.join(1.0)
    raise WorkerError(
        f"{name}: the interpreter {python} exited with code {worker.process.exitcode} before it was ready; "
        "see its output on stderr, and install its stack again"
    )
