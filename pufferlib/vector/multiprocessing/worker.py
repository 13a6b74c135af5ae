"""Worker process, which builds its environments and then executes the commands of the parent.

Messages between parent and worker go through a pipe. Everything else goes through shared memory.
This module does not import torch, so that a worker takes a few MiB and starts in milliseconds.
"""

import contextlib
import faulthandler
import fcntl
import gc
import multiprocessing
import os
import pickle
import random
import select
import signal
import sys
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from pufferlib.buffers import ArraySpecs, Buffers
from pufferlib.errors import APIUsageError
from pufferlib.machine.output import hide_output_for_good
from pufferlib.machine.pickling import pickled
from pufferlib.machine.signals import ENDING_SIGNALS, handle
from pufferlib.vector.calls import EnvCall, perform, sendable
from pufferlib.vector.env_runner import EnvRunner, env_rows
from pufferlib.vector.failures import Failed
from pufferlib.vector.multiprocessing._channel import WorkerEnd, progress_at
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.specs import PHASES, STEP, AutoresetMode, EnvDescription, EnvSpec, Ready, RowSpec

__all__ = [
    "CALL",
    "CHECK_S",
    "CLOSE",
    "FAILURE",
    "REPLY",
    "STACK_SIGNAL",
    "NeedMemory",
    "Parent",
    "Reply",
    "Setup",
    "Surroundings",
    "Worker",
    "leave_signals_to_parent",
    "main",
    "making_modules",
    "reply_message",
    "serve_parent",
]

CLOSE, CALL = 3, 4  # commands, in addition to RESET and STEP
REPLY, FAILURE = 1, 2  # outcomes of a command: reply in the mailbox or the pipe, failure in the pipe

STACK_SIGNAL = signal.SIGUSR1  # requests the stack of a worker at any time
CHECK_S = 1.0  # interval at which an idle worker checks whether its parent is alive

_makers: frozenset[str] = frozenset()  # ``Setup.makers`` of this process, if it is a worker


@dataclass(frozen=True)
class Surroundings:
    """Import path, environment variables and working directory for a worker, by default of this process.

    Attributes:
        sys_path: Import path. None keeps the path of the worker's own interpreter.
        environ: Environment variables.
        folder: Working directory.
    """

    sys_path: list[str] | None = field(default_factory=lambda: list(sys.path))
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class Setup:
    """Message from parent to worker: the environments to build.

    Attributes:
        envs: ``tuple[EnvSpec, ...]``, pickled by cloudpickle.
        row_spec: Spaces and number of agents of one environment. None for the worker that determines them.
        last_command: Last command that was meant for a previous worker. 0 unless this worker replaces another.
        fits: Whether each worker and the parent has its own core.
        hide_output: Whether to discard everything written to stdout and stderr.
        server: Subclass of ``Worker`` to use, or None for ``Worker``.
        options: Options of the subclass.
        makers: Modules whose top level makes this worker. See ``making_modules``.
    """

    worker: int
    num_workers: int
    num_envs: int
    envs: bytes
    autoreset: AutoresetMode | None
    row_spec: RowSpec | None
    surroundings: Surroundings
    last_command: int
    fits: bool
    hide_output: bool
    server: "type[Worker] | None" = None
    options: Any = None
    makers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NeedMemory:
    """Message from worker to parent: the spec of the first environment. The reply is the shared memory."""

    row_spec: RowSpec


class Reply(NamedTuple):
    """Message from worker to parent: the infos of the last command, or the results of a call.

    Attributes:
        content: Infos or results.
        sources: Sources of the infos, as in ``EnvLoop.sources``.
    """

    content: list[Any]
    sources: list[int]


def main(conn: Connection, stacks: Connection) -> None:
    """Run a worker as a child process of multiprocessing. See ``serve_parent``."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    serve_parent(conn, stacks, Parent(parent.pid, parent.sentinel))


def serve_parent(conn: Connection, stacks: Connection, parent: "Parent") -> None:
    """Run a worker until the parent closes it or is gone.

    Args:
        conn: Connection to the parent, which closes its end to stop the worker.
        stacks: Connection to which the Python stack is written after a crash or on request.
        parent: Parent process. When it is gone, this process ends.
    """
    gc.freeze()  # otherwise the first collection would copy every page shared with the process server
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    leave_signals_to_parent()
    os.set_blocking(stacks.fileno(), False)
    faulthandler.enable(stacks.fileno())
    faulthandler.register(STACK_SIGNAL, stacks.fileno())
    parent.end_with_it()
    parent.watch(conn)
    try:
        setup: Setup = pickle.loads(conn.recv_bytes())
        worker = (setup.server or Worker)(conn, setup)
        if worker.build() and worker.serve(parent):
            worker.close()
    except (EOFError, ConnectionError):
        pass  # the parent is gone
    finally:
        conn.close()


def making_modules(where: str) -> frozenset[str]:
    """Return the modules whose top level is making workers now, in this process and in those that it is a worker of.

    Args:
        where: Name of the backend.

    Raises:
        APIUsageError: A module does so in both. Its workers import it, so each of them would make more.
    """
    found: set[str] = set()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name != "__main__":  # workers do not run the caller's script
            if name in _makers:
                raise APIUsageError(
                    f"{where}: a module that workers import must not make workers at its top level, got {name} "
                    f"({frame.f_code.co_filename}, line {frame.f_lineno}), which would start processes without end; "
                    'move this line into a function, or under if __name__ == "__main__"'
                )
            found.add(name)
        frame = frame.f_back
    return _makers | found


def leave_signals_to_parent() -> None:
    """Ignore SIGTERM and SIGHUP in this process, so that the parent can still save.

    Batch systems and terminals send these signals to all processes. A handler is used, because programs started by an
    environment would inherit SIG_IGN. Forked processes still end on these signals.
    """
    handle(ENDING_SIGNALS, lambda number, frame: None)


class Parent:
    """Parent process. When it ends, this process ends too, even in the middle of a step.

    Only the parent holds the other end of its sentinel, a pipe. When the parent is gone, the pipe raises SIGIO, which
    ends this process. (PR_SET_PDEATHSIG would watch the process server instead, which lives as long as its workers.) A
    copy of the parent made by ``os.fork`` also holds this end, so an idle worker checks the parent directly too.

    Args:
        pid: Process id of the parent.
        sentinel: File descriptor of our end of the pipe.
    """

    def __init__(self, pid: int, sentinel: int) -> None:
        self._sentinel = sentinel
        self._poller = select.poll()
        self._poller.register(sentinel, select.POLLIN)
        # Not supported by old kernels and macOS, or forbidden by a sandbox.
        with contextlib.suppress(OSError, AttributeError):
            self._poller.register(os.pidfd_open(pid), select.POLLIN)

    def watch(self, conn: Connection) -> None:
        """Also treat the parent as gone when it closes its end of ``conn``, even with unread data."""
        self._poller.register(conn.fileno(), getattr(select, "POLLRDHUP", select.POLLHUP))

    def end_with_it(self) -> None:
        """End this process as soon as the parent is gone, from now on."""
        fcntl.fcntl(self._sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(self._sentinel, fcntl.F_GETFL)
        fcntl.fcntl(self._sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)

    def is_gone(self) -> bool:
        """Return whether the parent has ended, or has closed its end of the pipe."""
        return bool(self._poller.poll(0))


class Worker:
    """Environments of one worker, and the worker's end of the channel.

    Args:
        conn: Connection to the parent.
        setup: Setup message with the environments to build.
    """

    def __init__(self, conn: Connection, setup: Setup) -> None:
        self._conn, self._setup = conn, setup
        self._memory: SharedBatch | None = None
        self._row_spec = setup.row_spec
        self._first = setup.worker * setup.num_envs // setup.num_workers
        self._runner: EnvRunner | None = None
        self._is_new = setup.last_command != 0

    def build(self) -> bool:
        """Build the environments. Return False if that failed and was reported."""
        global _makers
        setup, surroundings = self._setup, self._setup.surroundings
        os.environ.clear()
        os.environ.update(surroundings.environ)
        if surroundings.sys_path is not None:
            sys.path[:] = surroundings.sys_path
        _makers = setup.makers
        progress = [0]
        if self._row_spec is not None:
            self._map(self._row_spec)
        try:
            if setup.hide_output:
                hide_output_for_good()
            os.chdir(surroundings.folder)
            specs: tuple[EnvSpec, ...] = pickle.loads(setup.envs)
            # All workers are forked from a server with the same numpy state, so they would draw the same numbers.
            np.random.seed(specs[0].seed)
            random.seed(specs[0].seed)
            self._runner = EnvRunner(specs, setup.autoreset, self._rows, progress)
            self._runner.track(self._progress())
            assert self._row_spec is not None
            assert self._memory is not None
            self._runner.watch(self._memory.notify[setup.worker : setup.worker + 1])
            # When the parent replaces a worker, it knows the spaces already. It reads nothing before the first command
            # is finished, and spaces of images may not fit into the pipe.
            if not self._is_new:
                self._conn.send_bytes(pickled(Ready(self._row_spec, self._describe(self._runner))))
        except BaseException as error:
            self._conn.send(Failed.of("build", progress[0], error))
            return False
        return True

    def _rows(self, row_spec: RowSpec, index: int) -> Buffers:
        if self._row_spec is None:
            self._conn.send_bytes(pickled(NeedMemory(row_spec)))
            self._map(row_spec)
        assert self._row_spec is not None
        assert self._memory is not None
        self._row_spec.check_same(row_spec, index)
        self._progress()[0] = index - self._first
        return env_rows(self._memory.buffers, row_spec.num_agents, index)

    def _map(self, row_spec: RowSpec) -> None:
        self._row_spec = row_spec
        setup = self._setup
        more = self._more_arrays(row_spec)
        self._memory = SharedBatch.receive(self._conn, row_spec, setup.num_envs, setup.num_workers, more)

    def _more_arrays(self, row_spec: RowSpec) -> ArraySpecs:
        """Return shape and dtype of additional arrays in the shared memory."""
        return {}

    def _describe(self, runner: EnvRunner) -> EnvDescription:
        return runner.describe()

    def _progress(self) -> "memoryview[int]":
        """Return the word of shared memory that holds the position of the current environment."""
        assert self._memory is not None
        return memoryview(self._memory.memory)[progress_at(self._setup.worker) :][:4].cast("I")

    def serve(self, parent: Parent) -> bool:
        """Execute commands until the parent closes the worker. Return False if a command failed."""
        assert self._memory is not None
        assert self._runner is not None
        setup, runner, mailbox = self._setup, self._runner, self._memory.mailboxes[self._setup.worker]
        worker_end = WorkerEnd(self._memory.memory, setup.num_workers, setup.worker, setup.fits, setup.last_command)
        while True:
            operation = worker_end.wait(CHECK_S)
            if not operation:
                if parent.is_gone():
                    return True
                continue
            if operation == CLOSE:
                return True
            try:
                is_first, self._is_new = self._is_new, False
                content = runner.step() if operation == STEP and not is_first else self._execute(operation)
                # Pickle now, because it may fail. The parent expects a reply from a worker that replaces another.
                message = reply_message(operation, content, runner.sources) if content or is_first else None
            except BaseException as error:
                report = Failed.of(PHASES.get(operation, "call"), self._progress()[0], error)
                worker_end.finish(FAILURE)
                self._conn.send(report)
                return False
            is_left = message is None or mailbox.put(message)
            worker_end.finish(0 if message is None else REPLY)
            if message is not None and not is_left:
                self._conn.send_bytes(message)

    def close(self) -> None:
        """Close the environments."""
        assert self._runner is not None
        try:
            self._runner.close()
        except BaseException as error:
            self._conn.send(Failed.of("close", 0, error))

    def _execute(self, operation: int) -> list[Any]:
        """Perform a call or a reset, or with STEP show that the episodes of the previous worker were lost."""
        assert self._runner is not None
        assert self._memory is not None
        if operation == CALL:
            request = self._memory.mailboxes[self._setup.worker].take()
            call = EnvCall(*pickle.loads(self._conn.recv_bytes() if request is None else request))
            return perform(self._runner, call)
        numbers = self._memory.seeds[self._first : self._first + len(self._runner.envs)].tolist()
        seeds = [None if seed < 0 else seed for seed in numbers]
        if operation == STEP:
            self._runner.show_ended(seeds)
            return []
        return self._runner.reset(seeds)


def reply_message(operation: int, content: list[Any], sources: list[int]) -> bytes:
    """Return the message for ``content``, a ``Reply`` as a plain tuple, which pickles five times as fast.

    Raises:
        APIUsageError: An info cannot be pickled.
    """
    try:
        return pickled((content, sources))
    except Exception as error:
        if operation == CALL:
            return pickled((sendable(content), sources))
        odd = ", ".join(f"{key!r}: {value!r:.60}" for key, value in _items(content) if not _is_picklable(value))
        raise APIUsageError(
            f"infos must be picklable, got {odd or repr(content)[:200]} from this worker's environments "
            f"({error}); give numbers, strings and arrays, or use backend=Serial"
        ) from error


def _items(infos: list[Any]) -> list[tuple[Any, Any]]:
    """Return the keys and values of all ``infos``."""
    return [item for info in infos if isinstance(info, dict) for item in info.items()]


def _is_picklable(value: Any) -> bool:
    try:
        pickled(value)
    except Exception:
        return False
    return True
