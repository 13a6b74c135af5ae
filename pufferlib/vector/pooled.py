"""Vector environments with environments in workers: processes on this machine, or actors of a cluster.

``PooledVectorEnv`` makes batches from whole workers and replaces workers that fail. ``workers`` has the interface of
the workers.
"""

from abc import abstractmethod
from collections.abc import Container, Mapping
from typing import Any, NoReturn

import numpy as np

from pufferlib.buffers import Array, allocate
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.machine.signals import uninterrupted
from pufferlib.replays.failures import leave_bundles
from pufferlib.vector._action_log import ActionLog
from pufferlib.vector.calls import EnvCall
from pufferlib.vector.failures import WorkerFailed
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import STEP, InfoSource, VectorSpec, info_sources
from pufferlib.vector.vector_env import Batch, VectorEnv
from pufferlib.vector.workers import Workers

__all__ = ["PooledVectorEnv"]


class PooledVectorEnv(VectorEnv):
    """Environments in workers, several in each.

    A batch consists of whole workers. With ``zero_copy=True``, batches are adjacent rows in a fixed order, without
    copies. The same actions then give the same data in every run. With ``zero_copy=False``, a batch holds the workers
    that finish first. Their rows are copied together, unless one worker makes a whole batch.

    ``driver_env`` is a description, because the environments only live in the workers.
    """

    @abstractmethod
    def _make_workers(self, spec: VectorSpec) -> Workers:
        """Create the workers without starting them."""

    def _start(self, spec: VectorSpec) -> None:
        self._workers = workers = self._make_workers(spec)
        try:
            workers.build()
        except BaseException as error:
            workers.close(waits=isinstance(error, Exception))  # not after Ctrl-C
            if isinstance(error, WorkerFailed):
                leave_bundles(error.error, workers.last_context, spec.autoreset)
                raise error.error from None
            raise
        self._channel = workers.channel
        self._sources: list[InfoSource] = []
        self._pending_calls: list[int] = []  # workers with a call that was not answered yet
        self._reply_codes: dict[int, list[int]] = {}  # sources of the infos of the last call, by worker
        self._set_attributes(spec, workers.description, workers.description)
        if spec.on_crash == "restart":
            self._restarts = Restarts(workers.buffers, spec.num_workers, self.autoreset)
        num_workers, self._takes_turns = spec.num_workers, spec.zero_copy
        self._workers_per_batch = spec.batch_size * num_workers // self.num_envs
        self._rows_per_worker = self.num_agents // num_workers
        # Batches of adjacent workers, by their first worker.
        starts = [w * self._rows_per_worker for w in range(num_workers - self._workers_per_batch + 1)]
        self._blocks = [Batch.block(workers.buffers, start, start + self.agents_per_batch) for start in starts]
        self._copies = 1 < self._workers_per_batch < num_workers and not self._takes_turns
        if self._copies:
            self._copy = allocate(self.single_observation_space, self.single_action_space, self.agents_per_batch)
            # The arrays of all rows and of the copy, with one entry per worker.
            self._by_worker = {name: _by_worker(array, num_workers) for name, array in workers.buffers.items()}
            self._parts = {name: _by_worker(array, self._workers_per_batch) for name, array in self._copy.items()}
        actions = self._copy["actions"] if self._copies else self._blocks[0].buffers["actions"]
        self._log = ActionLog(num_workers, self._workers_per_batch, actions)

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers, each on its own machine. Empty after they have stopped."""
        return self._workers.pids

    def _reset(self, seeds: list[int | None], options: list[Any] | None) -> None:
        if self._pending_calls:
            self._call_results()
        self._next(len(self._channel.in_flight), False)  # discard results of running steps
        if options is not None:
            self._perform(self._calls("options", "reset", list(range(self.num_envs)), values=options))
        if self._restarts is not None:
            self._restarts.count_finished(range(self._workers.spec.num_workers))
        self._log.forget(is_complete=options is None and None not in seeds)
        self._workers.reset(seeds)

    def _send(self, actions: Array) -> None:
        if self._restarts is not None:
            self._restarts.keep_observations(self._channel.chosen)
        rows = self._last.buffers["actions"]
        rows[...] = actions
        if self._copies:
            self._by_worker["actions"][self._channel.chosen] = self._parts["actions"]
        self._log.append(rows, self._channel)
        self._channel.command_chosen(STEP)

    def _recv(self) -> tuple[Batch, Infos]:
        infos = self._next(self._workers_per_batch, self._takes_turns)
        self._last = self._gather() if self._copies else self._blocks[self._channel.first_chosen()]
        return self._last, infos

    def _next(self, needed: int, in_turn: bool) -> Infos:
        """Wait until ``needed`` workers are finished, choose them, and return their infos."""
        try:
            infos: Infos | None = None
            self._sources = []
            while infos is None:
                while not self._channel.wait(needed, in_turn):
                    self._check_workers()
                infos = self._collect() if self._channel.choose(needed) else []
            return infos
        except BaseException as error:
            if self._next_call == "close" and isinstance(error, Exception):  # closed by a signal handler or thread
                raise self._order_error("recv") from None
            if self._workers.is_closed and self._next_call != "close":
                self._next_call = "make"
            raise

    def _check_workers(self) -> None:
        with uninterrupted():
            for failure in self._workers.find_failures():
                self._handle_failure(failure)

    def _collect(self) -> Infos | None:
        """Return the infos of the chosen workers, or None if one failed and its replacement must be waited for."""
        infos: Infos = []
        with uninterrupted():  # otherwise replies that were already read would be waited for again
            for worker in self._channel.chosen:
                try:
                    self._workers.read_reply(worker)
                except WorkerFailed as failure:
                    self._handle_failure(failure)
                    return None
            for worker in self._channel.chosen:
                infos += self._take_infos(worker)
                if self._restarts is not None and (reports := self._restarts.report(worker)):
                    infos += reports
                    self._sources.append(InfoSource(self._workers.envs_of(worker).start, "restart"))
        return infos

    def _take_infos(self, worker: int) -> list[Any]:
        found, codes = self._workers.take_infos(worker)
        if codes:
            self._sources += info_sources(codes, self._workers.envs_of(worker).start)
        return found

    @property
    def info_sources(self) -> list[InfoSource]:
        """Sources of the infos of the last batch, in their order."""
        return self._sources

    @property
    def _envs_per_runner(self) -> int:
        return self._workers.envs_per_worker

    def _idle_envs(self) -> Container[int]:
        channel, workers = self._channel, self._workers
        if not channel.in_flight or len(channel.chosen) == workers.spec.num_workers:
            return range(self.num_envs)
        return {env for worker in channel.chosen for env in range(self.num_envs)[workers.envs_of(worker)]}

    def _perform(self, calls: Mapping[int, EnvCall]) -> dict[int, list[Any]]:
        if self._pending_calls:  # an earlier call was interrupted
            self._call_results()
        if any(call.kind not in ("get", "save") and call.name != "render" for call in calls.values()):
            self._log.forget(is_complete=False)  # the call may change the state in an unknown way
        try:
            with uninterrupted():  # send all calls exactly once
                self._pending_calls = list(calls)
                for worker, call in calls.items():
                    self._workers.start_call(worker, call)
        except WorkerFailed as failure:
            self._stop_after(failure)
        return self._call_results()

    def _call_results(self) -> dict[int, list[Any]]:
        """Wait for the workers with pending calls, and return their results."""
        try:
            while self._pending_calls and not self._channel.wait_for(self._pending_calls):
                with uninterrupted():
                    for failure in self._workers.find_failures():
                        raise failure
            with uninterrupted():
                for worker in self._pending_calls:
                    self._workers.read_reply(worker)
                replies = {worker: self._workers.take_infos(worker) for worker in self._pending_calls}
                self._pending_calls = []
            self._reply_codes = {worker: codes for worker, (_, codes) in replies.items()}
            return {worker: results for worker, (results, _) in replies.items()}
        except WorkerFailed as failure:
            self._stop_after(failure)

    def _stop_after(self, failure: WorkerFailed) -> NoReturn:
        """Stop all workers, and raise the error of ``failure``."""
        self._workers.close()
        self._next_call = "make"
        raise failure.error from None

    def _reset_some(self, calls: Mapping[int, EnvCall]) -> tuple[Batch, Infos]:
        for worker, call in calls.items():
            first = self._workers.envs_of(worker).start
            for position, seed in zip(call.positions, call.seeds, strict=True):
                if seed is not None:
                    self._workers.last_seeds[first + position] = seed
        results = self._perform(calls)
        self._sources = [
            source
            for worker, codes in self._reply_codes.items()
            for source in info_sources(codes, self._workers.envs_of(worker).start)
        ]
        if self._copies:
            self._last = self._gather()
        return self._last, [info for infos in results.values() for info in infos]

    def _current_batch(self) -> Batch:
        if self._copies:
            self._last = self._gather()
        return self._last

    def _handle_failure(self, failure: WorkerFailed) -> None:
        """Replace a failed worker, or stop all workers and raise its error."""
        try:
            while self._restarts is not None and not isinstance(failure.error, APIUsageError):
                if self._workers.is_closed:
                    break
                try:
                    return self._replace(failure, self._restarts)
                except WorkerFailed as again:
                    failure = again
            raise failure.error from None
        except BaseException as error:
            leave_bundles(error, self._workers.last_context, self.autoreset, self._logged_actions)
            self._workers.close()
            raise

    def _logged_actions(self, env: int) -> Array | None:
        """Return the actions of an environment since its last seeded reset, or None if some are not known."""
        worker = next(w for w in range(self._workers.spec.num_workers) if env in _indices(self._workers.envs_of(w)))
        agents = self._workers.description.num_agents
        start = (env - self._workers.envs_of(worker).start) * agents
        return self._log.actions_of(worker, slice(start, start + agents))

    def _replace(self, failure: WorkerFailed, restarts: Restarts) -> None:
        worker, mine = failure.worker, self._workers.envs_of(failure.worker)
        restarts.record_failure(worker, failure.error, self._channel.operation(worker) == STEP)
        self._workers.last_seeds[mine] = restarts.next_seeds(worker, self._workers.last_seeds[mine])
        self._workers.seeds[mine] = self._workers.last_seeds[mine]
        self._workers.replace(worker, restarts.awaits_reset(worker))
        self._log.restart(worker)

    def _notify(self) -> None:
        self._workers.notify()

    def _gather(self) -> Batch:
        """Copy the rows of the chosen workers to one array."""
        chosen = np.array(self._channel.chosen)
        for name, parts in self._parts.items():
            self._by_worker[name].take(chosen, 0, parts, "clip")  # mode "raise" would copy twice
        first_ids = chosen[:, None] * self._rows_per_worker
        return Batch(self._copy, (first_ids + np.arange(self._rows_per_worker)).ravel())

    def _close(self) -> None:
        errors = self._workers.close()
        if errors:
            raise errors[0]


def _indices(part: slice) -> range:
    return range(part.start, part.stop)


def _by_worker(array: Array, num_workers: int) -> Array:
    return array.reshape(num_workers, len(array) // num_workers, *array.shape[1:])
