"""Start worker processes: from a small server that has numpy and gymnasium loaded, never from the caller's memory."""

import contextlib
import errno
import functools
import importlib.machinery
import multiprocessing
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.vector.plan import EnvPlan
from pufferlib.vector.processes import worker

__all__ = ["WorkerProcess", "forget_server", "pickle_envs", "start_worker"]

PRELOAD = "pufferlib.vector.processes.preload"
STACK_S = 5.0  # time for a stuck worker to tell its stack
PART_S = 0.1  # between the parts of one text
FORCE_S = 1.0
SERVER_S = 60.0  # time for the server to load what it must, on a busy machine

_lock = threading.Lock()


@dataclass(frozen=True)
class WorkerProcess:
    """A worker process, seen from its parent.

    Attributes:
        process: The process itself.
        conn: Carries messages both ways.
        stacks: Brings the worker's Python stack as text when it crashes or is asked for it.
    """

    process: ForkServerProcess
    conn: Connection
    stacks: Connection

    def set_patience(self, patience_s: float | None) -> None:
        """From now on, a message that does not go on for so long raises ``BlockingIOError``; None: wait for ever."""
        # Times are pairs of long integers here; all zeros mean for ever.
        seconds, part = divmod(max(0.001, patience_s), 1.0) if patience_s is not None else (0, 0)
        time_value = struct.pack("@ll", int(seconds), int(part * 1e6))
        with socket.socket(fileno=os.dup(self.conn.fileno())) as pipe:
            pipe.setblocking(True)  # whatever socket.setdefaulttimeout says
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_value)
            pipe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time_value)

    def ask_stack(self) -> str:
        """Where the worker is right now; empty if it does not say."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, worker.STACK_SIGNAL)
        return self.read_stack(STACK_S)

    def read_stack(self, patience_s: float = 0.0) -> str:
        """The text that the worker has left, or leaves within ``patience_s``."""
        text = b""
        while connection.wait([self.stacks], patience_s):
            part = os.read(self.stacks.fileno(), 1 << 16)
            if not part:
                break
            text, patience_s = text + part, PART_S
        return text.decode(errors="replace").strip()

    def end(self, deadline: float) -> None:
        """Wait for the process until ``deadline``, then end it by force, and let go of it."""
        self.process.join(max(0.0, deadline - time.monotonic()))
        for force in (self.process.terminate, self.process.kill):
            if self.process.exitcode is None:
                force()
                self.process.join(FORCE_S)
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
    with _lock, _enough_files(index):
        _start_server()
        ours, theirs = context.Pipe()
        stacks, stack_writer = context.Pipe(duplex=False)
        process = context.Process(target=worker.main, args=(theirs, stack_writer), name=f"pufferlib-worker-{index}")
        try:
            with _without_main(), _server_in_time(timeout_s):
                process.start()
        except BaseException:
            ours.close()
            stacks.close()
            raise
        finally:
            theirs.close()
            stack_writer.close()
    worker_process = WorkerProcess(process, ours, stacks)
    worker_process.set_patience(timeout_s)
    return worker_process


@contextmanager
def _enough_files(index: int) -> Iterator[None]:
    """Say what to do where the limit on open files is too low: every worker takes some."""
    try:
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
    server: Any = forkserver._forkserver
    asked = [name for name in server._preload_modules if name not in ("__main__", PRELOAD)]
    server.set_forkserver_preload([*asked, PRELOAD])
    resource_tracker.ensure_running()  # else the server starts it, and unblocks the signal
    before, path = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]), sys.path
    sys.path = [entry for entry in path if isinstance(entry, str)]  # imports skip others, the server ends of them
    try:
        server.ensure_running()
    finally:
        sys.path = path
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _server_in_time(timeout_s: float | None) -> Iterator[None]:
    """End the server when it does not answer, as when a module that somebody asked it to load never ends.

    It loads modules once for all workers, however little time these are given.
    """
    server: Any = forkserver._forkserver
    pid, expired = server._forkserver_pid, threading.Event()

    def expire() -> None:
        expired.set()
        os.kill(pid, signal.SIGKILL)

    patience_s = max(timeout_s or 0.0, SERVER_S)
    timer = threading.Timer(patience_s, expire)
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
            f"vector.make: the process that workers are forked from must answer within {patience_s:g} seconds "
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


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the caller's script, which multiprocessing would run again in every worker.

    That would load whatever the script imports (torch: seconds and 140 MiB in each worker), and
    start workers of workers where it has no ``if __name__ == "__main__"``. Creators that the script
    defines are sent by value instead.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def pickle_envs(plans: Sequence[EnvPlan]) -> bytes:
    """``plans`` as bytes that ``pickle.loads`` restores in a worker.

    Functions and classes of scripts, notebooks and other modules that a worker could not import
    are sent by value.

    Raises:
        APIUsageError: A creator or an argument cannot be sent.
    """
    modules = {name for plan in plans for name in _modules_of(plan)}
    modules -= cloudpickle.list_registry_pickle_by_value()  # the caller's own, which must outlast this
    by_value = [sys.modules[name] for name in modules if name in sys.modules and not _importable(name)]
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        data: bytes = cloudpickle.dumps(tuple(plans))
        return data
    except Exception as error:
        raise APIUsageError(
            f"vector.make: this backend must be able to pickle creators and arguments, got {error}; "
            "create what cannot be sent (files, locks, windows) inside the creator, or use backend=Serial"
        ) from error
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _modules_of(plan: EnvPlan) -> Iterator[str]:
    """Names of the modules in which the creator and its arguments are defined, also those of partial functions."""
    values = [plan.creator, *plan.args, *plan.kwargs.values()]
    for value in values:
        if isinstance(value, functools.partial):
            values += [value.func, *value.args, *value.keywords.values()]
        name = getattr(value, "__module__", None)
        if isinstance(name, str):
            yield name


def _importable(name: str) -> bool:
    """Whether another process with our ``sys.path`` would find module ``name`` where we did."""
    if name == "__main__":
        return True  # cloudpickle takes care of it
    path, spec = None, None
    for depth in range(1, name.count(".") + 2):
        spec = _find_spec(".".join(name.split(".")[:depth]), path)
        if spec is None:
            return name in sys.builtin_module_names
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == getattr(sys.modules[name], "__file__", None)


def _find_spec(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    """What other processes find: on the search path, or as packages that are installed to be edited do it."""
    for finder in sys.meta_path:
        # Setuptools, scikit-build and meson install finders from modules called so; others are the caller's.
        if finder is importlib.machinery.PathFinder or "editable" in getattr(finder, "__module__", ""):
            spec = finder.find_spec(name, path)
            if spec is not None:
                return spec
    return None
