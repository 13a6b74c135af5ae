"""The worker processes of one vector environment, from their start to their end."""

import dataclasses
import multiprocessing.process
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection, util
from typing import Any, NoReturn

from pufferlib._native import Crew
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.seeding import env_seed
from pufferlib.vector.multiprocessing.failures import Place, error_of, late_error, stalled_error, vanished_error
from pufferlib.vector.multiprocessing.interrupts import uninterrupted
from pufferlib.vector.multiprocessing.process import WorkerProcess, start_worker
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.multiprocessing.shutdown import Staff, end_staff
from pufferlib.vector.pickling import pickle_by_value
from pufferlib.vector.protocol import PHASES, RESET, STEP, Failed, NeedMemory, News, Ready, Setup
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import EnvDescription, RowSpec, VectorPlan

__all__ = ["WorkerPool"]

LOOK_S = 0.1  # how often somebody looks whether the workers still live
_FOR_EVER_NS = 1 << 62
_ErrorFor = Callable[[WorkerProcess, Place, float], WorkerError]


class WorkerFailed(Exception):  # noqa: N818 - never leaves the pool
    """A worker failed; ``error`` is what to raise because of it."""

    def __init__(self, worker: int, error: PufferError) -> None:
        super().__init__(worker, error)
        self.worker, self.error = worker, error


class WorkerPool:
    """Processes, pipes and shared memory; commands out, outcomes and failures back.

    A failure of one worker ends them all and raises, or, with ``on_crash="restart"``, that worker is
    replaced. Where it was in flight, its replacement is.

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
        self._staff = Staff()
        self._restarts: Restarts | None = None
        # At exit this runs before multiprocessing waits for processes that wait for us.
        self._end = util.Finalize(self, end_staff, args=(self._staff,), exitpriority=10)
        try:
            self._start()
        except BaseException as error:
            self._staff.waits = isinstance(error, Exception)  # not after Ctrl-C
            self.close()
            if isinstance(error, WorkerFailed):
                raise error.error from None
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
        pickled = [pickle_by_value(plan.envs[w * self._envs_per_worker :][: self._envs_per_worker]) for w in workers]
        for worker in workers:
            self._staff.workers.append(start_worker(worker, plan.timeout_s))
        self._set_up(0, pickled[0], None)
        needed = self._read_in_time(0)
        assert isinstance(needed, NeedMemory)
        self._spec = needed.spec
        self.memory = self._staff.memory = SharedBatch(needed.spec, len(plan.envs), plan.num_workers)
        self.crew = self._staff.crew = Crew(self.memory.memory, plan.num_workers, self._fits, self._look_s)
        self._hand_memory(0)
        for worker in workers[1:]:
            self._set_up(worker, pickled[worker], needed.spec)
            self._hand_memory(worker)
        self.description = self._descriptions()
        if plan.on_crash == "restart":
            self._restarts = Restarts(self.memory.buffers, plan.num_workers, self.description.autoreset)
        else:
            self.memory.close_fd()

    def _set_up(self, worker: int, envs: bytes, spec: RowSpec | None, last_command: int = 0) -> None:
        plan = self._plan
        setup = Setup(
            worker=worker,
            num_workers=plan.num_workers,
            num_envs=len(plan.envs),
            envs=envs,
            autoreset=plan.autoreset,
            spec=spec,
            sys_path=list(sys.path),
            last_command=last_command,
            fits=self._fits,
        )
        data = pickle_by_value(setup)  # the space in it may be of a class of the caller's script
        self._tell(worker, lambda: self.processes[worker].conn.send_bytes(data))

    def _hand_memory(self, worker: int) -> None:
        pid = self.processes[worker].process.pid
        assert pid is not None
        self._tell(worker, lambda: self.memory.send(self.processes[worker].conn, pid))

    def _tell(self, worker: int, send: Callable[[], None]) -> None:
        try:
            send()
        except BlockingIOError:
            self._give_up(worker, stalled_error)
        except ConnectionError:
            self._hear_the_end(worker)

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

    def remember(self) -> None:
        """Keep what was seen of the workers that were chosen, as long as that may be needed."""
        if self._restarts is not None:
            self._restarts.remember(self.crew.chosen)

    def look_after(self) -> None:
        """See to workers in flight that have ended, or take too long."""
        late = self.crew.find_late(self._timeout_ns)
        sentinels = {self.processes[worker].process.sentinel: worker for worker in self.crew.in_flight}
        ended = [sentinels[sentinel] for sentinel in connection.wait(list(sentinels), 0)]  # type: ignore[index]
        for worker in ended:
            self._attempt(self._hear_the_end, worker)
        if late >= 0 and late not in ended:
            self._attempt(self._give_up, late)

    def collect(self, workers: Sequence[int]) -> Infos | None:
        """What the environments of ``workers``, which have finished, had to say; None: wait for a replacement."""
        infos: Infos = []
        with uninterrupted():  # or we would wait again for what we have heard
            for worker in workers:
                if not self._attempt(self._hear, worker):
                    return None
            for worker in workers:
                self.crew.heard(worker)
                infos += self._infos.pop(worker, [])
                if self._restarts is not None:
                    infos += self._restarts.settle(worker)
        return infos

    def _attempt(self, find_out: Callable[[int], None], worker: int) -> bool:
        """Call ``find_out``, which may find that ``worker`` failed, and see to that; whether all is well."""
        with uninterrupted():
            try:
                find_out(worker)
            except WorkerFailed as failure:
                try:
                    self._mend(failure)
                except BaseException:
                    self.close()
                    raise
                return False
        return True

    def _mend(self, failure: WorkerFailed) -> None:
        """Replace a worker that failed, or raise what it failed of."""
        worker = failure.worker
        while True:
            if self._restarts is None or self.is_closed or isinstance(failure.error, APIUsageError):
                raise failure.error from None
            self._restarts.admit(worker, failure.error, self.crew)
            try:
                self._replace(worker, self._restarts)
                return
            except WorkerFailed as again:
                failure = again

    def _replace(self, worker: int, restarts: Restarts) -> None:
        """End ``worker``, build its environments in a new process, and start new episodes there."""
        handle = self.processes[worker]
        handle.process.kill()
        handle.end(time.monotonic() + 1.0)
        self._infos.pop(worker, None)
        last_command = self.crew.replace(worker)
        mine = slice(worker * self._envs_per_worker, (worker + 1) * self._envs_per_worker)
        self._seeds[mine] = [env_seed(seed, restarts.count_of(worker)) for seed in self._seeds[mine]]
        self.memory.seeds[mine] = self._seeds[mine]
        plans = zip(self._plan.envs[mine], self._seeds[mine], strict=True)
        envs = pickle_by_value(tuple(dataclasses.replace(plan, seed=seed) for plan, seed in plans))
        self.processes[worker] = start_worker(worker, self._plan.timeout_s)
        self._set_up(worker, envs, self._spec, last_command)
        self._hand_memory(worker)
        self.crew.command_one(worker, STEP if restarts.stands_still(worker) else RESET)

    def abandon(self) -> None:
        """This process is a copy of the one that the workers belong to: forget them."""
        for handle in self.processes:
            multiprocessing.process._children.discard(handle.process)  # type: ignore[attr-defined]
        self._end.cancel()

    def close(self) -> list[Exception]:
        """Let every worker close its environments and end, by force if it must be; returns what went wrong."""
        reports = self._end() if self._end.still_active() else None
        return [error_of(report, f"worker {worker}", worker) for worker, report in reports or ()]

    def _hear(self, worker: int) -> None:
        """Read the message about the last command, if one is to come."""
        while self.crew.outcome(worker) and worker not in self._infos:
            message = self._read_in_time(worker)
            if isinstance(message, News):
                self._infos[worker] = message.infos

    def _hear_the_end(self, worker: int) -> None:
        """Read what a worker that has ended may have left to say."""
        while True:
            self._read(worker)

    def _read(self, worker: int) -> Any:
        """The next message of ``worker``.

        Raises:
            WorkerFailed: It reports a failure, or has ended without a word, or in the middle of one for too long.
        """
        handle = self.processes[worker]
        try:
            if handle.conn not in connection.wait([handle.conn, handle.process.sentinel]):
                raise EOFError
            with uninterrupted():
                data = handle.conn.recv_bytes()
            message = self._unpickled(worker, data)
        except BlockingIOError:  # a worker that was stopped in the middle of it
            self._give_up(worker, stalled_error)
        except (EOFError, ConnectionError):
            message = None
        if message is not None and not isinstance(message, Failed):
            return message
        place = self._place(worker, message.position if message else None)
        raise WorkerFailed(worker, error_of(message, place.text, worker) if message else vanished_error(handle, place))

    def _unpickled(self, worker: int, data: bytes) -> Any:
        """A message of ``worker``; WorkerFailed if somebody's class can be pickled, but not restored."""
        try:
            return pickle.loads(data)
        except Exception as error:
            raise WorkerFailed(
                worker,
                APIUsageError(
                    "vector.Multiprocessing: infos and spaces must be things that this process can unpickle, got "
                    f"{type(error).__name__} ({error}) in {self._place(worker).text}; give numbers, strings "
                    "and arrays, or use backend=Serial"
                ),
            ) from error

    def _read_in_time(self, worker: int) -> Any:
        """The next message of ``worker``, which is building its environments."""
        handle, waited_s, seen = self.processes[worker], 0.0, -1
        while not connection.wait([handle.conn, handle.process.sentinel], self._look_s):
            waited_s += self._look_s
            if hasattr(self, "crew") and self.crew.progress(worker) != seen:
                seen, waited_s = self.crew.progress(worker), 0.0
            if self._plan.timeout_s is not None and waited_s > self._plan.timeout_s:
                self._give_up(worker)
        return self._read(worker)

    def _give_up(self, worker: int, error_for: _ErrorFor = late_error) -> NoReturn:
        """End a worker that takes too long."""
        handle = self.processes[worker]
        assert self._plan.timeout_s is not None
        error = error_for(handle, self._place(worker), self._plan.timeout_s)
        handle.process.kill()
        raise WorkerFailed(worker, error)

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
