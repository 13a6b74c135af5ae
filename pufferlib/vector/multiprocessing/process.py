"""Start worker processes, and end them.

They start from a small server that has numpy and gymnasium loaded, never from the caller's memory. They end when they
are asked to, or else by force.
"""

import contextlib
import errno
import functools
import io
import math
import multiprocessing
import os
import pickle
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection, forkserver, popen_forkserver, reduction, resource_tracker, spawn, util
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess, set_spawning_popen
from typing import Any, Protocol

from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.machine.children import children_have_safe_paths
from pufferlib.vector.failures import Failed
from pufferlib.vector.multiprocessing import worker
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch

__all__ = [
    "Process",
    "WorkerProcess",
    "WorkerResources",
    "explain_file_limit",
    "forget_server",
    "shut_down",
    "start_worker",
]

PRELOAD = "pufferlib.vector.multiprocessing.preload"
STACK_S = 5.0  # time for a stuck worker to tell its stack
PART_S = 0.1  # between the parts of one text
FORCE_S = 1.0
KILL_S = 10.0  # a large process on a busy machine takes seconds to be gone
CLOSE_S = 5.0  # time for all environments to close, before their workers are ended by force
LONGEST_TEMP_DIR = 107 - len("/listener-12345678")  # bytes; Linux allows 107 in a socket's address
SERVER_S = 60.0  # time for the server to load what it must, on a busy machine

_lock = threading.Lock()


class Process(Protocol):
    """Process as multiprocessing shows it to the parent, however it was started."""

    @property
    def pid(self) -> int | None:
        """Its number."""

    @property
    def sentinel(self) -> int:
        """File that can be read once it has ended."""

    @property
    def exitcode(self) -> int | None:
        """Exit code; that of a signal is negative. None while it runs."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, ``timeout`` seconds at most."""

    def terminate(self) -> None:
        """Send it SIGTERM."""

    def kill(self) -> None:
        """Send it SIGKILL."""

    def close(self) -> None:
        """Let go of the files that belong to it."""


@dataclass(frozen=True)
class WorkerProcess:
    """A worker process, seen from its parent.

    Attributes:
        process: The process itself.
        conn: Carries messages both ways.
        stacks: Brings the worker's Python stack as text when it crashes or is asked for it.
    """

    process: Process
    conn: Connection
    stacks: Connection

    @functools.cached_property
    def _signs(self) -> "select.poll":
        signs = select.poll()
        for file in (self.conn.fileno(), self.process.sentinel):
            signs.register(file, select.POLLIN)
        return signs

    def wait(self, limit_s: float | None) -> list[int]:
        """Wait for a message, or the end of the process, ``limit_s`` at most; None is for ever.

        Returns:
            Files of which something can be read: that of ``conn``, the sentinel.
        """
        return [file for file, _ in self._signs.poll(None if limit_s is None else math.ceil(1e3 * limit_s))]

    def set_timeout(self, limit_s: float | None) -> None:
        """From now on, a message that does not go on for so long raises ``BlockingIOError``; None: wait for ever."""
        # Times are pairs of long integers here; all zeros mean for ever.
        seconds, part = divmod(max(0.001, limit_s), 1.0) if limit_s is not None else (0, 0)
        time_value = struct.pack("@ll", int(seconds), int(part * 1e6))
        with socket.socket(fileno=os.dup(self.conn.fileno())) as pipe:
            pipe.setblocking(True)  # whatever socket.setdefaulttimeout says
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_value)
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time_value)

    def ask_stack(self) -> str:
        """Ask the worker for its Python stack of this moment; empty if it does not answer."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, worker.STACK_SIGNAL)
        return self.read_stack(STACK_S)

    def read_stack(self, limit_s: float = 0.0) -> str:
        """The text that the worker has left, or leaves within ``limit_s``."""
        text = b""
        while connection.wait([self.stacks], limit_s):
            part = os.read(self.stacks.fileno(), 1 << 16)
            if not part:
                break
            text, limit_s = text + part, PART_S
        return text.decode(errors="replace").strip()

    def end(self, deadline: float) -> None:
        """Wait for the process until ``deadline``, then end it by force, and let go of it."""
        self.process.join(max(0.0, deadline - time.monotonic()))
        for force, limit_s in ((self.process.terminate, FORCE_S), (self.process.kill, KILL_S)):
            if self.process.exitcode is None:
                force()
                self.process.join(limit_s)
        self.conn.close()
        self.stacks.close()
        if self.process.exitcode is not None:
            self.process.close()


def start_worker(index: int, timeout_s: float | None) -> WorkerProcess:
    """A new worker process, which waits for its ``Setup`` at the other end of the connection.

    Raises:
        APIUsageError: This process is a daemonic one, which may have no children.
        WorkerError: The server did not make one in ``timeout_s``, or ``SERVER_S`` if that is longer; or this process
            has as many files open as it may.
    """
    if multiprocessing.current_process().daemon:
        raise APIUsageError(
            "vector.make: workers must be started by a process that may have children, got a daemonic one (of a "
            "multiprocessing.Pool, or with daemon=True); start it with daemon=False, or use backend=Serial"
        )
    context = multiprocessing.get_context("forkserver")
    with _lock, explain_file_limit(index):
        _start_server()
        ours, theirs = context.Pipe()
        stacks, stack_writer = context.Pipe(duplex=False)
        process = _Process(target=worker.main, args=(theirs, stack_writer), name=f"pufferlib-worker-{index}")
        try:
            with _server_deadline(timeout_s):
                process.start()
        except BaseException:
            ours.close()
            stacks.close()
            raise
        finally:
            theirs.close()
            stack_writer.close()
    worker_process = WorkerProcess(process, ours, stacks)
    worker_process.set_timeout(timeout_s)
    return worker_process


class _Process(ForkServerProcess):
    """A process that does not run the caller's script, as multiprocessing would in every worker.

    That would load whatever the script imports (torch: seconds and 140 MiB in each worker), and start
    workers of workers where it has no ``if __name__ == "__main__"``. Creators that the script defines
    are sent by value instead.
    """

    # Environments that start processes of their own do so by the caller's start method, as without workers. Those of
    # a server could not import what the script defines.
    _start_method = None  # type: ignore[assignment]  # multiprocessing then sets no other

    @staticmethod
    def _Popen(process_obj: Any) -> "_Popen":  # noqa: N802
        return _Popen(process_obj)


class _Popen(popen_forkserver.Popen):
    """Starts a process as its base does, with everything but the script in what it is prepared with."""

    def _launch(self, process_obj: Any) -> None:
        prepared = spawn.get_preparation_data(process_obj.name)
        data = io.BytesIO()
        set_spawning_popen(self)
        try:
            for message in ({k: v for k, v in prepared.items() if not k.startswith("init_main")}, process_obj):
                reduction.dump(message, data)
        finally:
            set_spawning_popen(None)
        self._hand_over(data.getbuffer())
        self.pid = forkserver.read_signed(self.sentinel)

    def _hand_over(self, data: memoryview) -> None:
        """Ask the server for a process and send it ``data``, completely even if Ctrl-C arrives meanwhile.

        A process that gets only a part prints a traceback. Python raises KeyboardInterrupt in the main thread alone,
        so another thread does this. It never waits for the server to load modules.
        """
        errors: list[BaseException] = []
        done = threading.Event()

        def send() -> None:
            try:
                self.sentinel, pipe = forkserver.connect_to_new_process(self._fds)  # type: ignore[attr-defined]
                lifeline = os.dup(pipe)  # the worker takes us for gone when this is closed
                self.finalizer = util.Finalize(self, util.close_fds, (lifeline, self.sentinel))  # type: ignore[attr-defined]
                with open(pipe, "wb") as file:
                    file.write(data)
            except BaseException as error:
                errors.append(error)
            finally:
                done.set()

        try:
            threading.Thread(target=send, daemon=True).start()
            done.wait()
        finally:
            done.wait(timeout=5)  # again after Ctrl-C, since the caller closes what is being sent
        if errors:
            raise errors[0]


@contextmanager
def explain_file_limit(index: int) -> Iterator[None]:
    """Say what to do where the limit on open files is too low for worker ``index``: every one takes some.

    Raises:
        WorkerError: There was none left.
    """
    try:
        for end in os.pipe():  # what fails for the lack of a file need not say so
            os.close(end)
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise WorkerError(
            f"vector.make: worker {index} needs some more open files than this process may have, {limit}; "
            f"raise that limit (ulimit -n {max(4096, 2 * limit)}), or take fewer workers"
        ) from error


def _start_server() -> None:
    """Start the process that all workers are forked from, unless it runs.

    What others asked it to load is kept, all but the caller's script. It begins with Ctrl-C blocked,
    since multiprocessing lets it ignore Ctrl-C only after everything is loaded.
    """
    _shorten_temp_dir()
    server: Any = forkserver._forkserver
    asked = [name for name in server._preload_modules if name not in ("__main__", PRELOAD)]
    server.set_forkserver_preload([*asked, PRELOAD])
    with children_have_safe_paths():
        resource_tracker.ensure_running()  # else the server starts it, and unblocks the signal
    before, path = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]), sys.path
    if not all(isinstance(entry, str) for entry in path):  # imports skip them, the server would end of them
        sys.path = [entry for entry in path if isinstance(entry, str)]
    try:
        with children_have_safe_paths():
            try:
                server.ensure_running()
            except ChildProcessError:  # it belongs to the process that this one was forked from
                forget_server()
                server.ensure_running()
    finally:
        sys.path = path
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _shorten_temp_dir() -> None:
    """Let multiprocessing keep its sockets in /tmp if ``TMPDIR`` is too long for the address of one.

    An address without a file would have no such limit, but also no owner: anybody on the machine could connect.
    """
    folder = util.get_temp_dir()
    if len(os.fsencode(folder)) <= LONGEST_TEMP_DIR:
        return
    try:
        short = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
    except OSError as error:
        raise APIUsageError(
            f"vector.make: the folder for temporary files must have a name of at most {LONGEST_TEMP_DIR} bytes, "
            f"got {folder}, and /tmp cannot be used instead ({error}); set TMPDIR to a shorter one"
        ) from error
    util.Finalize(None, shutil.rmtree, (short, True), exitpriority=-100)  # after whoever uses it
    multiprocessing.current_process()._config["tempdir"] = short  # type: ignore[attr-defined]


@contextmanager
def _server_deadline(timeout_s: float | None) -> Iterator[None]:
    """End the server when it does not answer, as when a module that somebody asked it to load never ends.

    It loads modules once for all workers, however little time these are given.
    """
    server: Any = forkserver._forkserver
    pid, expired = server._forkserver_pid, threading.Event()

    def expire() -> None:
        expired.set()
        os.kill(pid, signal.SIGKILL)

    limit_s = max(timeout_s or 0.0, SERVER_S)
    timer = threading.Timer(limit_s, expire)
    timer.daemon = True
    if timeout_s is not None:
        timer.start()
    try:
        yield
    except (EOFError, OSError) as error:
        if not expired.is_set() and isinstance(error, EOFError | ConnectionError):
            raise WorkerError(
                f"vector.make: the process that workers are forked from (process {pid}) ended before it made one; "
                "see what it wrote to stderr, and whether the machine ran out of memory"
            ) from error
        if not expired.is_set():
            raise
        os.waitpid(pid, 0)
        forget_server()
        modules = ", ".join(name for name in server._preload_modules if name != PRELOAD)
        raise WorkerError(
            f"vector.make: the process that workers are forked from must answer within {limit_s:g} seconds "
            f"(timeout_s, or {SERVER_S:g} if that is longer), got nothing; it was ended. It was asked to load "
            f"{modules or 'nothing of yours'} (multiprocessing.set_forkserver_preload): do not load what never ends"
        ) from error
    finally:
        timer.cancel()


def forget_server() -> None:
    """Start another server next time: after ``os.fork`` it is the parent's, and it may have been ended."""
    server: Any = forkserver._forkserver
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None


@dataclass
class WorkerResources:
    """Everything that must be let go of, even when the ``WorkerProcesses`` that have it is forgotten.

    Attributes:
        workers: The processes.
        channel: Tells them to end, by ``command_one``; None before there is any.
        memory: Shared with them.
        waits: Whether they are given time to close their environments.
    """

    workers: list[WorkerProcess] = field(default_factory=list)
    channel: Any = None
    memory: SharedBatch | None = None
    waits: bool = True


def shut_down(resources: WorkerResources) -> list[tuple[int, Failed]]:
    """Let the workers close their environments and end; what they report of it."""
    deadline = time.monotonic() + (CLOSE_S if resources.waits else 0.0)
    reports = []
    try:
        for index, handle in enumerate(resources.workers):
            if resources.channel is not None:
                resources.channel.command_one(index, worker.CLOSE)
            _close_our_end(handle)
        for index, handle in enumerate(resources.workers):
            reports += [(index, report) for report in _final_messages(handle, deadline)]
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


def _final_messages(handle: WorkerProcess, deadline: float) -> Iterator[Failed]:
    """Failures among the messages that are still to come; the others are dropped."""
    while handle.conn.fileno() in handle.wait(max(0.0, deadline - time.monotonic())):
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
