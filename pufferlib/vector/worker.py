"""What runs in a worker process: build the environments, then obey the command words.

Imports no torch, so that a worker takes a few MiB and starts in milliseconds.
"""

import fcntl
import multiprocessing
import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler

from pufferlib.buffers import Buffers
from pufferlib.env import Infos
from pufferlib.vector import shared
from pufferlib.vector.group import EnvGroup, env_rows
from pufferlib.vector.messages import PHASES, STEP, WAKE, Failed, NeedMemory, News, Ready, Setup
from pufferlib.vector.plan import EnvPlan, RowSpec
from pufferlib.vector.shared import SharedBatch
from pufferlib.vector.waiting import PARK_S, memory_fence, wait_until

__all__ = ["main"]


def main(conn: Connection) -> None:
    """Serve the parent at the other end of ``conn`` until it closes that end, on purpose or by its death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _end_with_parent()
    try:
        setup: Setup = pickle.loads(conn.recv_bytes())
        worker = _Worker(conn, setup)
        if worker.build() and worker.serve():
            worker.close()
    except (EOFError, ConnectionError):
        pass  # the parent is gone, and nobody is left to tell
    finally:
        conn.close()


def _end_with_parent() -> None:
    """Have the system end this process when the parent is killed, even in the middle of a step.

    Only the parent holds the other end of its sentinel, a pipe; when it is gone the pipe raises
    SIGIO, which ends a process. (PR_SET_PDEATHSIG would watch the process server instead, which
    lives as long as its workers.)
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)


class _Worker:
    """One worker's environments, pipe and command words."""

    def __init__(self, conn: Connection, setup: Setup) -> None:
        self._conn, self._setup = conn, setup
        self._memory: SharedBatch | None = None
        self._spec = setup.spec
        self._base = SharedBatch.base(setup.worker)
        self._first = setup.worker * setup.num_envs // setup.num_workers
        self._group: EnvGroup | None = None

    def build(self) -> bool:
        """Make the environments; False if that failed and was reported."""
        setup = self._setup
        os.environ.clear()
        os.environ.update(setup.environ)
        sys.path[:] = setup.sys_path
        if self._spec is not None:
            self._map(self._spec)
        progress = [0]
        try:
            os.chdir(setup.folder)
            plans: tuple[EnvPlan, ...] = pickle.loads(setup.envs)
            self._group = EnvGroup(plans, setup.autoreset, self._rows, progress)
            assert self._memory is not None
            self._group.track(self._memory.words[self._base + shared.PROGRESS :])
            self._conn.send(Ready(self._group.describe()))
        except BaseException as error:
            self._conn.send(Failed.of("build", progress[0], error))
            return False
        return True

    def _rows(self, spec: RowSpec, index: int) -> Buffers:
        if self._spec is None:
            self._conn.send(NeedMemory(spec))
            self._map(spec)
        assert self._spec is not None
        assert self._memory is not None
        self._spec.check_same(spec, index)
        return env_rows(self._memory.buffers, spec.num_agents, index)

    def _map(self, spec: RowSpec) -> None:
        self._spec = spec
        self._memory = SharedBatch.receive(self._conn, spec, self._setup.num_envs, self._setup.num_workers)

    def serve(self) -> bool:
        """Obey commands until the parent closes its end; False if an environment failed and that was reported."""
        assert self._memory is not None
        words, base = self._memory.words, self._base
        finished = 0
        while True:
            try:
                wait_until(lambda last=finished: words[base + shared.SEQUENCE] != last, self._park)  # type: ignore[misc]
            except EOFError:
                return True
            finished, operation = words[base + shared.SEQUENCE], words[base + shared.OPERATION]
            try:
                infos = self._act(operation)
                news = ForkingPickler.dumps(News(infos)) if infos else None  # some cannot be pickled
            except BaseException as error:
                self._conn.send(Failed.of(PHASES[operation], words[base + shared.PROGRESS], error))
                return False
            words[base + shared.INFOS] = news is not None
            words[base + shared.DONE] = finished
            memory_fence()
            if news is not None:
                self._conn.send_bytes(news)
            elif words[shared.PARENT_PARKED]:
                self._conn.send(WAKE)

    def close(self) -> None:
        """Close the environments."""
        assert self._group is not None
        try:
            self._group.close()
        except BaseException as error:
            self._conn.send(Failed.of("close", 0, error))

    def _act(self, operation: int) -> Infos:
        assert self._group is not None
        assert self._memory is not None
        if operation == STEP:
            return self._group.step()
        seeds = self._memory.seeds[self._first : self._first + len(self._group.envs)].tolist()
        return self._group.reset([None if seed < 0 else seed for seed in seeds])

    def _park(self) -> None:
        """Sleep until the parent sends a wake-up; EOFError if it is gone."""
        assert self._memory is not None
        words, base = self._memory.words, self._base
        words[base + shared.PARKED] = 1
        memory_fence()
        if words[base + shared.SEQUENCE] == words[base + shared.DONE] and self._conn.poll(PARK_S):
            self._conn.recv()
        words[base + shared.PARKED] = 0
