"""Worker process: builds its environments, then obeys the commands of the parent.

Parent and worker tell each other through a pipe what is here a message; everything else goes through shared memory.
Imports no torch, so that a worker takes a few MiB and starts in milliseconds.
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
from pufferlib.vector.calls import EnvCall, perform, sendable
from pufferlib.vector.env_runner import EnvRunner, env_rows
from pufferlib.vector.failures import Failed
from pufferlib.vector.multiprocessing._channel import WorkerEnd, progress_at
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.specs import PHASES, STEP, Autoreset, EnvDescription, EnvSpec, Ready, RowSpec

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
    "reply_message",
    "serve_parent",
]

CLOSE, CALL = 3, 4  # commands, beside RESET and STEP
REPLY, FAILURE = 1, 2  # outcomes of a command: a reply is in the mailbox or follows through the pipe, a failure follows

STACK_SIGNAL = signal.SIGUSR1  # asks a worker where it is, whatever it is doing
CHECK_S = 1.0  # how often an idle worker looks whether its parent still lives


@dataclass(frozen=True)
class Surroundings:
    """Surroundings of a worker's environments: those of the parent, of this moment.

    Attributes:
        sys_path: The folders that modules are imported from; None for those of the worker's own interpreter.
        environ: Environment variables.
        folder: The working directory.
    """

    sys_path: list[str] | None = field(default_factory=lambda: list(sys.path))
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class Setup:
    """Parent to worker: the environments to build.

    Attributes:
        envs: ``tuple[EnvSpec, ...]``, pickled by cloudpickle.
        row_spec: Rows of one environment; None for the worker that is to find it out.
        last_command: The last one that was not for this process; 0 unless it replaces another.
        fits: Whether each worker and the parent has a core of its own.
        hide_output: Whether nothing that is written to standard output and error is to be seen.
        server: Class of what serves the parent with the environments; None for ``Worker``.
        options: Of another class.
    """

    worker: int
    num_workers: int
    num_envs: int
    envs: bytes
    autoreset: Autoreset | None
    row_spec: RowSpec | None
    surroundings: Surroundings
    last_command: int
    fits: bool
    hide_output: bool
    server: "type[Worker] | None" = None
    options: Any = None


@dataclass(frozen=True)
class NeedMemory:
    """Worker to parent: the rows of my first environment; answered with the shared memory."""

    row_spec: RowSpec


class Reply(NamedTuple):
    """Worker to parent: the infos of the last command, or the results of a call.

    Attributes:
        content: The infos or results.
        sources: Of the infos, as ``EnvLoop.sources`` has them.
    """

    content: list[Any]
    sources: list[int]


def main(conn: Connection, stacks: Connection) -> None:
    """Serve the parent of this process of multiprocessing; see ``serve_parent``."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    serve_parent(conn, stacks, Parent(parent.pid, parent.sentinel))


def serve_parent(conn: Connection, stacks: Connection, parent: "Parent") -> None:
    """Serve the parent until it says so, or is gone.

    Args:
        conn: The parent is at the other end, and closes it when the worker is to end.
        stacks: Takes the Python stack as text when the process crashes or is asked for it.
        parent: Ends this process when it is gone.
    """
    gc.freeze()  # else the first collection would copy every page that is shared with the process server
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
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
        pass  # the parent is gone, and nobody is left to tell
    finally:
        conn.close()


def leave_signals_to_parent() -> None:
    """Ignore SIGTERM and SIGHUP: batch systems and terminals send them to all processes, and the parent may still save.

    A handler, since programs that an environment starts would inherit SIG_IGN; processes that it forks end as ever.
    """
    own = os.getpid()

    def ignore(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != own:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as nohup leaves it to all of its processes
            signal.signal(ending, ignore)


class Parent:
    """The process that this one ends with, even in the middle of a step.

    Only the parent holds the other end of its sentinel, a pipe; when it is gone the pipe raises
    SIGIO, which ends a process. (PR_SET_PDEATHSIG would watch the process server instead, which
    lives as long as its workers.) A copy of the parent, made by ``os.fork``, holds that end too, so
    an idle worker also looks at the parent itself.

    Args:
        pid: Its process.
        sentinel: Our end of the pipe.
    """

    def __init__(self, pid: int, sentinel: int) -> None:
        self._sentinel = sentinel
        self._signs = select.poll()
        self._signs.register(sentinel, select.POLLIN)
        with contextlib.suppress(OSError):  # an old kernel, or a sandbox that forbids it
            self._signs.register(os.pidfd_open(pid), select.POLLIN)

    def watch(self, conn: Connection) -> None:
        """Take it for gone, too, when it has closed its end of ``conn``, whatever is still to be read there."""
        self._signs.register(conn.fileno(), select.POLLRDHUP)

    def end_with_it(self) -> None:
        """From now on, end this process as soon as the parent is gone."""
        fcntl.fcntl(self._sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(self._sentinel, fcntl.F_GETFL)
        fcntl.fcntl(self._sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)

    def is_gone(self) -> bool:
        """Check whether it has ended, or has closed its end of the pipe."""
        return bool(self._signs.poll(0))


class Worker:
    """One worker's environments, and its end of what it shares with the parent.

    Args:
        conn: The parent is at the other end.
        setup: The environments to build.
    """

    def __init__(self, conn: Connection, setup: Setup) -> None:
        self._conn, self._setup = conn, setup
        self._memory: SharedBatch | None = None
        self._row_spec = setup.row_spec
        self._first = setup.worker * setup.num_envs // setup.num_workers
        self._runner: EnvRunner | None = None
        self._is_new = setup.last_command != 0

    def build(self) -> bool:
        """Make the environments; False if that failed and was reported."""
        setup, surroundings = self._setup, self._setup.surroundings
        os.environ.clear()
        os.environ.update(surroundings.environ)
        if surroundings.sys_path is not None:
            sys.path[:] = surroundings.sys_path
        progress = [0]
        if self._row_spec is not None:
            self._map(self._row_spec)
        try:
            if setup.hide_output:
                hide_output_for_good()
            os.chdir(surroundings.folder)
            specs: tuple[EnvSpec, ...] = pickle.loads(setup.envs)
            # The server that all workers are forked from has numpy, whose own generator would repeat itself in each.
            np.random.seed(specs[0].seed)
            random.seed(specs[0].seed)
            self._runner = EnvRunner(specs, setup.autoreset, self._rows, progress)
            self._runner.track(self._progress())
            assert self._row_spec is not None
            assert self._memory is not None
            self._runner.watch(self._memory.notify[setup.worker : setup.worker + 1])
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
        """Shape and dtype of what is in the shared memory beside the batch."""
        return {}

    def _describe(self, runner: EnvRunner) -> EnvDescription:
        return runner.describe()

    def _progress(self) -> "memoryview[int]":
        """Word of the shared memory that tells the parent which environment this worker is in."""
        assert self._memory is not None
        return memoryview(self._memory.memory)[progress_at(self._setup.worker) :][:4].cast("I")

    def serve(self, parent: Parent) -> bool:
        """Obey commands until the parent ends them; False if an environment failed and that was reported."""
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
                content = runner.step() if operation == STEP and not is_first else self._obey(operation)
                # Now, since some cannot be pickled. The parent waits to hear of a worker that replaces another.
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

    def _obey(self, operation: int) -> list[Any]:
        """Call, start new episodes, or show first that those of the worker before this one have ended."""
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
    """The message that brings ``content``: a ``Reply`` as a plain tuple, which is pickled in a fifth of the time.

    Raises:
        APIUsageError: It cannot be pickled.
    """
    try:
        return pickled((content, sources))
    except Exception as error:
        if operation == CALL:
            return pickled((sendable(content), sources))
        raise APIUsageError(
            f"infos must be things that can be pickled, got {content!r:.200} from this worker's environments "
            f"({error}); give numbers, strings and arrays, or use backend=Serial"
        ) from error
