"""How worker processes end: asked first, then by force, and whoever forgets to ask."""

import contextlib
import pickle
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import connection

from pufferlib.vector.failures import Failed
from pufferlib.vector.multiprocessing._channel import WorkerChannel
from pufferlib.vector.multiprocessing.process import WorkerProcess
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.multiprocessing.worker import CLOSE

__all__ = ["WorkerResources", "shut_down"]

CLOSE_S = 5.0  # time for all environments to close, before their workers are ended by force


@dataclass
class WorkerResources:
    """Everything that must be let go of, even when the pool that has it is forgotten.

    Attributes:
        workers: The processes.
        channel: Tells them to end; None before there is any.
        memory: Shared with them.
        waits: Whether they are given time to close their environments.
    """

    workers: list[WorkerProcess] = field(default_factory=list)
    channel: WorkerChannel | None = None
    memory: SharedBatch | None = None
    waits: bool = True


def shut_down(resources: WorkerResources) -> list[tuple[int, Failed]]:
    """Let the workers close their environments and end; what they report of it."""
    deadline = time.monotonic() + (CLOSE_S if resources.waits else 0.0)
    reports = []
    try:
        for worker, handle in enumerate(resources.workers):
            if resources.channel is not None:
                resources.channel.command_one(worker, CLOSE)
            _close_our_end(handle)
        for worker, handle in enumerate(resources.workers):
            reports += [(worker, report) for report in _last_words(handle, deadline)]
    except BaseException:  # Ctrl-C: not another second
        for handle in resources.workers:
            handle.process.kill()
        raise
    finally:
        for handle in resources.workers:
            handle.end(deadline)
        resources.workers.clear()
        if resources.memory is not None:
            resources.memory.close_fd()
    return reports


def _close_our_end(handle: WorkerProcess) -> None:
    # OSError: the worker has ended already.
    with (
        socket.fromfd(handle.conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as pipe,
        contextlib.suppress(OSError),
    ):
        pipe.shutdown(socket.SHUT_WR)


def _last_words(handle: WorkerProcess, deadline: float) -> Iterator[Failed]:
    """Failures among the messages that are still to come; the others are dropped."""
    while handle.conn in connection.wait([handle.conn, handle.process.sentinel], max(0.0, deadline - time.monotonic())):
        handle.set_timeout(max(0.0, deadline - time.monotonic()))
        try:
            data = handle.conn.recv_bytes()
        except (EOFError, ConnectionError, BlockingIOError):
            return
        message = None
        with contextlib.suppress(Exception):  # infos that cannot be restored, of which nobody will hear
            message = pickle.loads(data)
        if isinstance(message, Failed) and message.phase == "close":
            yield message
