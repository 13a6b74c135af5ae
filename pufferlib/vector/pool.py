"""The worker processes of one vector environment, from their start to their end."""

import contextlib
import multiprocessing.process
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection, util
from typing import Any

from pufferlib._native import Crew
from pufferlib.cpus import usable_cpus
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.vector.failures import Place, error_of, too_late_error, vanished_error
from pufferlib.vector.launch import WorkerProcess, pickle_envs, start_worker
from pufferlib.vector.messages import CLOSE, PHASES, RESET, Failed, NeedMemory, News, Ready, Setup
from pufferlib.vector.plan import EnvDescription, RowSpec, VectorPlan
from pufferlib.vector.shared import SharedBatch

__all__ = ["WorkerPool"]

LOOK_S = 0.1  # how often somebody looks whether the workers still live
CLOSE_S = 5.0  # time for all environments to close, before their workers are ended by force


@dataclass
class _Staff:
    """Everything that must be ended, even when the pool itself is forgotten."""

    workers: list[WorkerProcess] = field(default_factory=list)
    crew: Crew | None = None


class WorkerPool:
    """Processes, pipes and shared memory; commands out, outcomes and failures back.

    A failure of one worker ends them all, and raises.

    Attributes:
        memory: The arrays of all rows, and the signals.
        crew: Our end of the signals.
        description: What each environment is like.
    """

    memory: SharedBatch
    crew: Crew
    description: EnvDescription

    def __init__(self, plan: VectorPlan) -> None:
        self._plan = plan
        self._envs_per_worker = len(plan.envs) // plan.num_workers
        self._fits = plan.num_workers < usable_cpus()
        self._look_s = LOOK_S if plan.timeout_s is None else min(LOOK_S, plan.timeout_s)
        self._timeout_ns = _FOR_EVER_NS if plan.timeout_s is None else int(plan.timeout_s * 1e9)
        self._infos: dict[int, Infos] = {}
        self._seeds = [env.seed for env in plan.envs]
        self._staff = _Staff()
        # At exit this runs before multiprocessing waits for processes that wait for us.
        self._end = util.Finalize(self, _end, args=(self._staff,), exitpriority=10)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def processes(self) -> list[WorkerProcess]:
        """The workers' processes; empty when they have ended."""
        return self._staff.workers

    @property
    def is_closed(self) -> bool:
        """Whether the workers have ended."""
        return not self._end.still_active()

    def _start(self) -> None:
        """Let the first environment tell the size of the batch, then hand the memory to all workers."""
        plan, workers = self._plan, range(self._plan.num_workers)
        pickled = [pickle_envs(plan.envs[w * self._envs_per_worker :][: self._envs_per_worker]) for w in workers]
        for worker in workers:
            self._staff.workers.append(start_worker(worker))
        self._set_up(0, pickled[0], None)
        needed = self._read_in_time(0)
        assert isinstance(needed, NeedMemory)
        self.memory = SharedBatch(needed.spec, len(plan.envs), plan.num_workers)
        self.crew = self._staff.crew = Crew(self.memory.memory, plan.num_workers, self._fits, self._look_s)
        try:
            self._hand_memory(0)
            for worker in workers[1:]:
                self._set_up(worker, pickled[worker], needed.spec)
                self._hand_memory(worker)
        finally:
            self.memory.close_fd()
        self.description = self._descriptions()

    def _set_up(self, worker: int, envs: bytes, spec: RowSpec | None) -> None:
        plan = self._plan
        setup = Setup(
            worker, plan.num_workers, len(plan.envs), envs, plan.autoreset, spec, list(sys.path), 0, self._fits
        )
        self._tell(worker, lambda: self.processes[worker].conn.send(setup))

    def _hand_memory(self, worker: int) -> None:
        pid = self.processes[worker].process.pid
        assert pid is not None
        self._tell(worker, lambda: self.memory.send(self.processes[worker].conn, pid))

    def _tell(self, worker: int, send: Callable[[], None]) -> None:
        try:
            send()
        except ConnectionError:  # it has ended, and may have left word why
            while True:
                self._accept(worker)

    def _descriptions(self) -> EnvDescription:
        """Wait until all workers are ready; what the environments of all of them are like."""
        first: EnvDescription | None = None
        for worker in range(self._plan.num_workers):
            ready = self._read_in_time(worker)
            assert isinstance(ready, Ready)
            first = first or ready.description
            if ready.description.autoreset != first.autoreset:
                raise APIUsageError(
                    f"vector.make: all environments must have environment 0's autoreset mode, {first.autoreset!r}, "
                    f"got {ready.description.autoreset!r} in environment {worker * self._envs_per_worker}; "
                    "do not mix native and emulated ones"
                )
        assert first is not None
        return first

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start a reset in every worker, with one seed per environment."""
        self.memory.seeds[:] = [-1 if seed is None else seed for seed in seeds]
        self._seeds = [old if new is None else new for old, new in zip(self._seeds, seeds, strict=True)]
        self.crew.command_all(RESET)

    def look_after(self) -> None:
        """Raise WorkerError if a worker in flight has ended, or takes too long."""
        late = self.crew.find_late(self._timeout_ns)
        sentinels = {self.processes[worker].process.sentinel: worker for worker in self.crew.in_flight}
        for ended in connection.wait(list(sentinels), 0):
            while True:
                self._accept(sentinels[ended])  # type: ignore[index]
        if late >= 0:
            raise self._give_up(late)

    def infos(self, worker: int) -> Infos:
        """What the environments of ``worker``, which has finished, had to say."""
        while self.crew.outcome(worker) and worker not in self._infos:
            self._accept(worker)
        self.crew.heard(worker)  # whoever was interrupted here may ask again
        return self._infos.pop(worker, [])

    def abandon(self) -> None:
        """This process is a copy of the one that the workers belong to: forget them."""
        for handle in self.processes:
            multiprocessing.process._children.discard(handle.process)  # type: ignore[attr-defined]
        self._end.cancel()

    def close(self) -> list[Exception]:
        """Let every worker close its environments and end, by force if it must be; returns what went wrong."""
        reports = self._end() if self._end.still_active() else None
        return [error_of(report, f"worker {worker}", worker) for worker, report in reports or ()]

    def _accept(self, worker: int) -> None:
        """Read one message; infos are kept for later."""
        message = self._read(worker)
        if isinstance(message, News):
            self._infos[worker] = message.infos

    def _read(self, worker: int) -> Any:
        """The next message of ``worker``.

        Raises:
            WorkerError: It reports a failure, or has ended without a word.
            APIUsageError: Its environments break the contract.
        """
        handle = self.processes[worker]
        try:
            if handle.conn not in connection.wait([handle.conn, handle.process.sentinel]):
                raise EOFError
            with _uninterrupted():
                message = handle.conn.recv()
        except (EOFError, ConnectionError):
            message = None
        if message is not None and not isinstance(message, Failed):
            return message
        place = self._place(worker, message.position if message else None)
        error = error_of(message, place.text, worker) if message else vanished_error(handle, place)
        self.close()
        raise error

    def _read_in_time(self, worker: int) -> Any:
        """The next message of ``worker``, which is building its environments."""
        handle, waited_s, seen = self.processes[worker], 0.0, -1
        while not connection.wait([handle.conn, handle.process.sentinel], self._look_s):
            waited_s += self._look_s
            if hasattr(self, "crew") and self.crew.progress(worker) != seen:
                seen, waited_s = self.crew.progress(worker), 0.0
            if self._plan.timeout_s is not None and waited_s > self._plan.timeout_s:
                raise self._give_up(worker)
        return self._read(worker)

    def _give_up(self, worker: int) -> Exception:
        """End all workers; what to raise for one that takes too long."""
        handle = self.processes[worker]
        assert self._plan.timeout_s is not None
        error = too_late_error(self._place(worker), self._plan.timeout_s, handle.ask_stack())
        handle.process.kill()
        self.close()
        return error

    def _place(self, worker: int, position: int | None = None) -> Place:
        """Where ``worker`` is, in one of its environments."""
        phase, actions = "build", None
        if hasattr(self, "crew"):
            phase = PHASES.get(self.crew.operation(worker), phase)
            position = self.crew.progress(worker) if position is None else position
        index = worker * self._envs_per_worker + (position or 0)
        if hasattr(self, "description"):
            agents = self.description.num_agents
            actions = self.memory.buffers["actions"][index * agents : (index + 1) * agents]
        return Place(worker, index, self._seeds[index], phase, actions)


_FOR_EVER_NS = 1 << 62


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put a Ctrl-C off until the end: half a message would make nonsense of all that follow it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


def _end(staff: _Staff) -> list[tuple[int, Failed]]:
    """Let the workers close their environments and end; what they report of it."""
    deadline = time.monotonic() + CLOSE_S
    reports = []
    try:
        for worker, handle in enumerate(staff.workers):
            if staff.crew is not None:
                staff.crew.command_one(worker, CLOSE)
            _close_our_end(handle)
        for worker, handle in enumerate(staff.workers):
            reports += [(worker, report) for report in _last_words(handle, deadline)]
    except BaseException:  # Ctrl-C: not another second
        for handle in staff.workers:
            handle.process.kill()
        raise
    finally:
        for handle in staff.workers:
            handle.end(deadline)
        staff.workers.clear()
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
        try:
            message = handle.conn.recv()
        except (EOFError, ConnectionError):
            return
        if isinstance(message, Failed) and message.phase == "close":
            yield message
