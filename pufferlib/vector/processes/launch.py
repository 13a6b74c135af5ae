"""Start worker processes: from a small server that has numpy and gymnasium loaded, never from the caller's memory."""

import contextlib
import importlib.machinery
import multiprocessing
import os
import signal
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

from pufferlib.errors import APIUsageError
from pufferlib.vector.plan import EnvPlan
from pufferlib.vector.processes import worker

__all__ = ["WorkerProcess", "forget_server", "pickle_envs", "start_worker"]

PRELOAD = "pufferlib.vector.processes.preload"
STACK_S = 5.0  # time for a stuck worker to tell its stack
PART_S = 0.1  # between the parts of one text
FORCE_S = 1.0

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


def start_worker(index: int) -> WorkerProcess:
    """A new worker process, which waits for its ``Setup`` at the other end of the connection."""
    context = multiprocessing.get_context("forkserver")
    with _lock:
        _start_server()
        ours, theirs = context.Pipe()
        stacks, stack_writer = context.Pipe(duplex=False)
        process = context.Process(target=worker.main, args=(theirs, stack_writer), name=f"pufferlib-worker-{index}")
        try:
            with _without_main():
                process.start()
        except BaseException:
            ours.close()
            stacks.close()
            raise
        finally:
            theirs.close()
            stack_writer.close()
    return WorkerProcess(process, ours, stacks)


def _start_server() -> None:
    """Start the process that all workers are forked from, unless it runs.

    What others asked it to load is kept, all but the caller's script. It begins with Ctrl-C blocked,
    since multiprocessing lets it ignore Ctrl-C only after everything is loaded.
    """
    server: Any = forkserver._forkserver
    asked = [name for name in server._preload_modules if name not in ("__main__", PRELOAD)]
    server.set_forkserver_preload([*asked, PRELOAD])
    resource_tracker.ensure_running()  # else the server starts it, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        server.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def forget_server() -> None:
    """After ``os.fork``: the server is the parent's; this process is to start its own."""
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
    modules = {getattr(getattr(plan.creator, "func", plan.creator), "__module__", None) for plan in plans}
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


def _importable(name: str) -> bool:
    """Whether another process with our ``sys.path`` would find module ``name`` where we did."""
    if name == "__main__":
        return True  # cloudpickle takes care of it
    path, spec = None, None
    for depth in range(1, name.count(".") + 2):
        spec = importlib.machinery.PathFinder.find_spec(".".join(name.split(".")[:depth]), path)
        if spec is None:
            return name in sys.builtin_module_names
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == getattr(sys.modules[name], "__file__", None)
