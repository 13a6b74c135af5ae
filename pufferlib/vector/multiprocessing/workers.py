"""The worker processes of one vector environment, from their start to their end."""

import dataclasses
import multiprocessing.process
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection, util
from typing import Any, NoReturn

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.seeding import env_seed
from pufferlib.vector.multiprocessing._channel import WorkerChannel
from pufferlib.vector.multiprocessing.failures import (
    FailureContext,
    error_of,
    late_error,
    stalled_error,
    vanished_error,
)
from pufferlib.vector.multiprocessing.interrupts import uninterrupted
from pufferlib.vector.multiprocessing.process import WorkerProcess, start_worker
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.multiprocessing.shutdown import WorkerResources, shut_down
from pufferlib.vector.pickling import pickle_by_value
from pufferlib.vector.protocol import PHASES, RESET, STEP, Failed, InfosMessage, NeedMemory, Ready, Setup
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import EnvDescription, RowSpec, VectorSpec

__all__ = ["WorkerPool"]

CHECK_S = 0.1  # how often somebody looks whether the workers still live
_FOR_EVER_NS = 1 << 62
_ErrorFor = Callable[[WorkerProcess, FailureContext, float], WorkerError]


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
        channel: Our end of the signals.
        description: What each environment is like.
    """

    memory: SharedBatch
    channel: WorkerChannel
    description: EnvDescription

    def __init__(self, spec: VectorSpec) -> None:
        self._spec = spec
        self._envs_per_worker = len(spec.envs) // spec.num_workers
        self._fits = spec.num_workers < usable_cpus()
        self._check_s = CHECK_S if spec.timeout_s is None else min(CHECK_S, spec.timeout_s)
        self._timeout_ns = _FOR_EVER_NS if spec.timeout_s is None else int(spec.timeout_s * 1e9)
        self._infos: dict[int, Infos] = {}
        self._seeds = [env.seed for env in spec.envs]
        self._resources = WorkerResources()
        self._restarts: Restarts | None = None
        # At exit this runs before multiprocessing waits for processes that wait for us.
        self._end = util.Finalize(self, shut_down, args=(self._resources,), exitpriority=10)
        try:
            self._start()
        except BaseException as error:
            self._resources.waits = isinstance(error, Exception)  # not after Ctrl-C
            self.close()
            if isinstance(error, WorkerFailed):
                raise error.error from None
            raise

    @property
    def processes(self) -> list[WorkerProcess]:
        """The workers' processes; empty when they have ended."""
        return self._resources.workers

    @property
    def is_closed(self) -> bool:
        """Whether the workers have ended."""
        return not self._end.still_active()

    def _start(self) -> None:
        """Let the first environment tell the size of the batch, then hand the memory to all workers."""
        spec, workers = self._spec, range(self._spec.num_workers)
        pickled = [pickle_by_value(spec.envs[w * self._envs_per_worker :][: self._envs_per_worker]) for w in workers]
        for worker in workers:
            self._resources.workers.append(start_worker(worker, spec.timeout_s))
        self._set_up(0, pickled[0], None)
        needed = self._read_in_time(0)
        assert isinstance(needed, NeedMemory)
        self._row_spec = needed.row_spec
        self.memory = self._resources.memory = SharedBatch(needed.row_spec, len(spec.envs), spec.num_workers)
        self.channel = self._resources.channel = WorkerChannel(
            self.memory.memory, spec.num_workers, self._fits, self._check_s
        )
        self._hand_memory(0)
        for worker in workers[1:]:
            self._set_up(worker, pickled[worker], needed.row_spec)
            self._hand_memory(worker)
        self.description = self._descriptions()
        if spec.on_crash == "restart":
            self._restarts = Restarts(self.memory.buffers, spec.num_workers, self.description.autoreset)
        else:
            self.memory.close_fd()

    def _set_up(self, worker: int, envs: bytes, row_spec: RowSpec | None, last_command: int = 0) -> None:
        spec = self._spec
        setup = Setup(
            worker=worker,
            num_workers=spec.num_workers,
            num_envs=len(spec.envs),
            envs=envs,
            autoreset=spec.autoreset,
            row_spec=row_spec,
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
            self._drain(worker)

    def _descriptions(self) -> EnvDescription:
        """Wait until all workers are ready; what the environments of all of them are like."""
        first: EnvDescription | None = None
        for worker in range(self._spec.num_workers):
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
        self.channel.command_all(RESET)

    def keep_observations(self) -> None:
        """Keep what was seen of the workers that were chosen, as long as that may be needed."""
        if self._restarts is not None:
            self._restarts.keep_observations(self.channel.chosen)

    def check_workers(self) -> None:
        """See to workers in flight that have ended, or take too long."""
        late = self.channel.find_late(self._timeout_ns)
        sentinels = {self.processes[worker].process.sentinel: worker for worker in self.channel.in_flight}
        ended = [sentinels[sentinel] for sentinel in connection.wait(list(sentinels), 0)]  # type: ignore[index]
        for worker in ended:
            self._attempt(self._drain, worker)
        if late >= 0 and late not in ended:
            self._attempt(self._give_up, late)

    def collect(self, workers: Sequence[int]) -> Infos | None:
        """What the environments of ``workers``, which have finished, had to say; None: wait for a replacement."""
        infos: Infos = []
        with uninterrupted():  # or we would wait again for what we have read
            for worker in workers:
                if not self._attempt(self._read_reply, worker):
                    return None
            for worker in workers:
                self.channel.acknowledge(worker)
                infos += self._infos.pop(worker, [])
                if self._restarts is not None:
                    infos += self._restarts.report(worker)
        return infos

    def _attempt(self, find_out: Callable[[int], None], worker: int) -> bool:
        """Call ``find_out``, which may find that ``worker`` failed, and see to that; whether all is well."""
        with uninterrupted():
            try:
                find_out(worker)
            except WorkerFailed as failure:
                try:
                    self._handle_failure(failure)
                except BaseException:
                    self.close()
                    raise
                return False
        return True

    def _handle_failure(self, failure: WorkerFailed) -> None:
        """Replace a worker that failed, or raise what it failed of."""
        worker = failure.worker
        while True:
            if self._restarts is None or self.is_closed or isinstance(failure.error, APIUsageError):
                raise failure.error from None
            self._restarts.record_failure(worker, failure.error, self.channel)
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
        last_command = self.channel.replace(worker)
        mine = slice(worker * self._envs_per_worker, (worker + 1) * self._envs_per_worker)
        self._seeds[mine] = [env_seed(seed, restarts.count_of(worker)) for seed in self._seeds[mine]]
        self.memory.seeds[mine] = self._seeds[mine]
        specs = zip(self._spec.envs[mine], self._seeds[mine], strict=True)
        envs = pickle_by_value(tuple(dataclasses.replace(spec, seed=seed) for spec, seed in specs))
        self.processes[worker] = start_worker(worker, self._spec.timeout_s)
        self._set_up(worker, envs, self._row_spec, last_command)
        self._hand_memory(worker)
        self.channel.command_one(worker, STEP if restarts.awaits_reset(worker) else RESET)

    def abandon(self) -> None:
        """This process is a copy of the one that the workers belong to: forget them."""
        for handle in self.processes:
            multiprocessing.process._children.discard(handle.process)  # type: ignore[attr-defined]
        self._end.cancel()

    def close(self) -> list[Exception]:
        """Let every worker close its environments and end, by force if it must be; returns what went wrong."""
        reports = self._end() if self._end.still_active() else None
        return [error_of(report, f"worker {worker}", worker) for worker, report in reports or ()]

    def _read_reply(self, worker: int) -> None:
        """Read the message about the last command, if one is to come."""
        while self.channel.outcome(worker) and worker not in self._infos:
            message = self._read_in_time(worker)
            if isinstance(message, InfosMessage):
                self._infos[worker] = message.infos

    def _drain(self, worker: int) -> None:
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
        while not connection.wait([handle.conn, handle.process.sentinel], self._check_s):
            waited_s += self._check_s
            if hasattr(self, "channel") and self.channel.progress(worker) != seen:
                seen, waited_s = self.channel.progress(worker), 0.0
            if self._spec.timeout_s is not None and waited_s > self._spec.timeout_s:
                self._give_up(worker)
        return self._read(worker)

    def _give_up(self, worker: int, error_for: _ErrorFor = late_error) -> NoReturn:
        """End a worker that takes too long."""
        handle = self.processes[worker]
        assert self._spec.timeout_s is not None
        error = error_for(handle, self._place(worker), self._spec.timeout_s)
        handle.process.kill()
        raise WorkerFailed(worker, error)

    def _place(self, worker: int, position: int | None = None) -> FailureContext:
        """Where ``worker`` is, in one of its environments."""
        phase, actions = "build", None
        if hasattr(self, "channel"):
            phase = PHASES.get(self.channel.operation(worker), phase)
            position = self.channel.progress(worker) if position is None else position
        index = worker * self._envs_per_worker + (position or 0)
        if hasattr(self, "description"):
            agents = self.description.num_agents
            actions = self.memory.buffers["actions"][index * agents : (index + 1) * agents]
        return FailureContext(worker, index, self._seeds[index], phase, actions)
