"""Start and stop of worker processes.

Workers are forked from a small server that has numpy and gymnasium loaded, never from the caller's process. They stop
when asked to, or by force.
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
STACK_S = 5.0  # time for a stuck worker to write its stack
PART_S = 0.1  # longest pause between parts of one stack
KILL_S = 10.0  # killing a large process takes seconds on a busy machine
CLOSE_S = 5.0  # time for all environments to close, before workers are stopped by force
LONGEST_TEMP_DIR = 107 - len("/listener-12345678")  # bytes: Linux allows 107 in a socket's address
SERVER_S = 60.0  # time for the server to load its modules, on a busy machine

_lock = threading.Lock()


class Process(Protocol):
    """Interface of a process object as in multiprocessing."""

    @property
    def pid(self) -> int | None:
        """Process id."""

    @property
    def sentinel(self) -> int:
        """File that becomes readable when the process has ended."""

    @property
    def exitcode(self) -> int | None:
        """Exit code, negative for a signal. None while the process runs."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended, up to ``timeout`` seconds."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def close(self) -> None:
        """Release the files of the process."""


@dataclass(frozen=True)
class WorkerProcess:
    """Worker process, as seen from its parent.

    Attributes:
        process: Process object.
        conn: Connection for messages in both directions.
        stacks: Connection from which the worker's Python stack can be read after a crash or ``ask_stack``.
    """

    process: Process
    conn: Connection
    stacks: Connection

    @functools.cached_property
    def _poller(self) -> "select.poll":
        poller = select.poll()
        for file in (self.conn.fileno(), self.process.sentinel):
            poller.register(file, select.POLLIN)
        return poller

    def wait(self, limit_s: float | None) -> list[int]:
        """Wait for a message or the end of the process, up to ``limit_s`` seconds. None waits forever.

        Returns:
            Files that are readable, of ``conn`` and of the sentinel.
        """
        return [file for file, _ in self._poller.poll(None if limit_s is None else math.ceil(1e3 * limit_s))]

    def set_timeout(self, limit_s: float | None) -> None:
        """Raise ``BlockingIOError`` from now on if a message stalls for ``limit_s`` seconds. None waits forever."""
        # The option takes a pair of long integers. All zeros disable the timeout.
        seconds, part = divmod(max(0.001, limit_s), 1.0) if limit_s is not None else (0, 0)
        time_value = struct.pack("@ll", int(seconds), int(part * 1e6))
        with socket.socket(fileno=os.dup(self.conn.fileno())) as pipe:
            pipe.setblocking(True)  # regardless of socket.setdefaulttimeout
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_value)
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time_value)

    def ask_stack(self) -> str:
        """Request the worker's current Python stack. Return an empty string if it does not reply."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, worker.STACK_SIGNAL)
        return self.read_stack(STACK_S)

    def read_stack(self, limit_s: float = 0.0) -> str:
        """Return the stack that the worker has written, or writes within ``limit_s``."""
        text = b""
        while connection.wait([self.stacks], limit_s):
            part = os.read(self.stacks.fileno(), 1 << 16)
            if not part:
                break
            text, limit_s = text + part, PART_S
        return text.decode(errors="replace").strip()

    def end(self, deadline: float) -> None:
        """Wait for the process until ``deadline``, then stop it by force, and release its files."""
        self.process.join(max(0.0, deadline - time.monotonic()))
        if self.process.exitcode is None:  # workers ignore SIGTERM
            self.process.kill()
            self.process.join(KILL_S)
        self.conn.close()
        self.stacks.close()
        if self.process.exitcode is not None:
            self.process.close()


def start_worker(index: int, timeout_s: float | None) -> WorkerProcess:
    """Start a worker process that waits for its ``Setup`` at the other end of the connection.

    Raises:
        APIUsageError: This process is daemonic and may not have children.
        WorkerError: The server started none within ``timeout_s``, or ``SERVER_S`` if that is longer. Also raised if
            this process has reached its limit of open files.
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
    """Process that does not run the caller's script, unlike other processes of multiprocessing.

    Running the script would load everything that it imports into every worker (torch takes seconds and 140 MiB), and
    start workers of workers if it has no ``if __name__ == "__main__"``. Creators defined in the script are pickled by
    value instead.
    """

    # Environments that start processes use the caller's start method, as they would without workers. Processes of a
    # server could not import what the script defines.
    _start_method = None  # type: ignore[assignment]  # multiprocessing then keeps the default

    @staticmethod
    def _Popen(process_obj: Any) -> "_Popen":  # noqa: N802
        return _Popen(process_obj)


class _Popen(popen_forkserver.Popen):
    """Start of a process as in the base class, with preparation data that leaves out the caller's script."""

    def _launch(self, process_obj: Any) -> None:
        prepared = spawn.get_preparation_data(process_obj.name)
        data = io.BytesIO()
        set_spawning_popen(self)
        try:
            for message in ({k: v for k, v in prepared.items() if not k.startswith("init_main")}, process_obj):
                reduction.dump(message, data)
        finally:
            set_spawning_popen(None)
        self._send_to_server(data.getbuffer())
        self.pid = forkserver.read_signed(self.sentinel)

    def _send_to_server(self, data: memoryview) -> None:
        """Request a process from the server and send it all of ``data``, even if Ctrl-C arrives meanwhile.

        A process that gets only a part of it would print a traceback. Python raises KeyboardInterrupt only in the main
        thread, so another thread sends the data. It never waits for the server to load modules.
        """
        errors: list[BaseException] = []
        done = threading.Event()

        def send() -> None:
            try:
                self.sentinel, pipe = forkserver.connect_to_new_process(self._fds)  # type: ignore[attr-defined]
                lifeline = os.dup(pipe)  # when this is closed, the worker assumes that its parent is gone
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
            done.wait(timeout=5)  # wait again after Ctrl-C, because the caller closes the files being sent
        if errors:
            raise errors[0]


@contextmanager
def explain_file_limit(index: int) -> Iterator[None]:
    """Raise a helpful error if the limit on open files is too low for worker ``index``.

    Raises:
        WorkerError: No file was left.
    """
    try:
        for end in os.pipe():  # probe, because code that runs out of files may raise a different error
            os.close(end)
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise WorkerError(
            f"vector.make: worker {index} needs more open files than this process may have, {limit}; "
            f"raise that limit (ulimit -n {max(4096, 2 * limit)}), or use fewer workers"
        ) from error


def _start_server() -> None:
    """Start the process that all workers are forked from, unless it is running.

    Modules that others asked it to preload are kept, except for the caller's script. It starts with Ctrl-C blocked,
    because multiprocessing makes it ignore Ctrl-C only after everything is loaded.
    """
    _shorten_temp_dir()
    server: Any = forkserver._forkserver
    asked = [name for name in server._preload_modules if name not in ("__main__", PRELOAD)]
    server.set_forkserver_preload([*asked, PRELOAD])
    with children_have_safe_paths():
        resource_tracker.ensure_running()  # otherwise the server would start it and unblock the signal
    before, path = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]), sys.path
    if not all(isinstance(entry, str) for entry in path):  # imports skip them, but the server would crash
        sys.path = [entry for entry in path if isinstance(entry, str)]
    try:
        with children_have_safe_paths():
            try:
                server.ensure_running()
            except ChildProcessError:  # the server belongs to the process that this one was forked from
                forget_server()
                server.ensure_running()
    finally:
        sys.path = path
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _shorten_temp_dir() -> None:
    """Make multiprocessing keep its sockets in /tmp if ``TMPDIR`` is too long for a socket address.

    An abstract address, which has no file, has no such limit. But it has no owner either, so anyone on the machine
    could connect.
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
    util.Finalize(None, shutil.rmtree, (short, True), exitpriority=-100)  # after everything that uses it
    multiprocessing.current_process()._config["tempdir"] = short  # type: ignore[attr-defined]


@contextmanager
def _server_deadline(timeout_s: float | None) -> Iterator[None]:
    """Kill the server if it does not reply in time, as when a preloaded module never finishes loading.

    The deadline is at least ``SERVER_S``, because the server loads modules once for all workers.
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
                f"vector.make: the process that workers are forked from (process {pid}) ended before it started one; "
                "see its output on stderr, and check whether the machine ran out of memory"
            ) from error
        if not expired.is_set():
            raise
        os.waitpid(pid, 0)
        forget_server()
        modules = ", ".join(name for name in server._preload_modules if name != PRELOAD)
        raise WorkerError(
            f"vector.make: the process that workers are forked from must answer within {limit_s:g} seconds "
            f"(timeout_s, or {SERVER_S:g} if that is longer), got nothing; it was killed. It was asked to load "
            f"{modules or 'nothing of yours'} (multiprocessing.set_forkserver_preload): do not load modules that block"
        ) from error
    finally:
        timer.cancel()


def forget_server() -> None:
    """Start a new server next time. After ``os.fork`` the old one belongs to the parent, or it may have ended."""
    server: Any = forkserver._forkserver
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None


@dataclass
class WorkerResources:
    """Resources to release even if the owning ``WorkerProcesses`` is never closed.

    Attributes:
        workers: Worker processes.
        channel: Channel whose ``command_one`` asks a worker to close. None before it exists.
        memory: Memory shared with the workers.
        waits: Whether to wait for workers to close their environments.
    """

    workers: list[WorkerProcess] = field(default_factory=list)
    channel: Any = None
    memory: SharedBatch | None = None
    waits: bool = True


def shut_down(resources: WorkerResources) -> list[tuple[int, Failed]]:
    """Ask all workers to close their environments and stop. Return their failure reports by worker index."""
    deadline = time.monotonic() + (CLOSE_S if resources.waits else 0.0)
    reports = []
    try:
        for index, handle in enumerate(resources.workers):
            if resources.channel is not None:
                resources.channel.command_one(index, worker.CLOSE)
            _close_our_end(handle)
        for index, handle in enumerate(resources.workers):
            reports += [(index, report) for report in _final_messages(handle, deadline)]
    except BaseException:  # Ctrl-C: stop immediately
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
    # OSError: the worker has already ended.
    with (
        socket.fromfd(handle.conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as pipe,
        contextlib.suppress(OSError),
    ):
        pipe.shutdown(socket.SHUT_WR)


def _final_messages(handle: WorkerProcess, deadline: float) -> Iterator[Failed]:
    """Yield the failures among the remaining messages. Other messages are dropped."""
    while handle.conn.fileno() in handle.wait(max(0.0, deadline - time.monotonic())):
        handle.set_timeout(max(0.0, deadline - time.monotonic()))
        try:
            data = handle.conn.recv_bytes()
        except (EOFError, OSError):  # also in the middle of a message
            return
        message = None
        with contextlib.suppress(Exception):  # infos that cannot be unpickled are not needed anymore
            message = pickle.loads(data)
        if isinstance(message, Failed) and message.phase == "close":
            yield message
