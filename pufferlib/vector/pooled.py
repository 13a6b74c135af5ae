"""Vector environments with environments in workers: processes on this machine, or actors of a cluster.

``PooledVectorEnv`` makes batches from whole workers and replaces workers that fail. It uses workers through two
interfaces: ``Channel`` sends commands and waits for them, and ``Workers`` builds, monitors, replaces and closes them.
"""

import _signal  # type: ignore[import-not-found]  # the signal module converts to enums, which takes microseconds
import dataclasses
import signal
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

import numpy as np

from pufferlib.buffers import Array, Buffers, allocate
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.replays.failures import leave_bundles
from pufferlib.vector._action_log import ActionLog
from pufferlib.vector.calls import EnvCall
from pufferlib.vector.failures import FailureContext, WorkerFailed, envs_text
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import RESET, STEP, EnvDescription, EnvSpec, InfoSource, VectorSpec, info_sources
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["Channel", "PooledVectorEnv", "Workers", "uninterrupted"]


class Channel(Protocol):
    """Interface that sends commands to workers, waits for them, and orders them.

    Workers with a command are *in flight*, longest-waiting first, until ``choose`` selects them and
    ``command_chosen`` sends them the next command. So ``choose`` can be repeated after an interruption.
    """

    @property
    def in_flight(self) -> list[int]:
        """Workers that have a command, or were chosen and have no new one yet."""

    @property
    def chosen(self) -> list[int]:
        """Workers selected by the last ``choose``, in ascending order."""

    def first_chosen(self) -> int:
        """Return the lowest chosen worker."""

    def command_all(self, operation: int) -> None:
        """Send every worker a command. No worker may be busy."""

    def command_chosen(self, operation: int) -> None:
        """Send the chosen workers a command. They move to the end of the queue."""

    def wait(self, needed: int, in_turn: bool) -> bool:
        """Wait until ``needed`` workers in flight are finished. Return False when it is time to check on them."""

    def wait_for(self, workers: list[int]) -> bool:
        """Wait until these workers are finished. Return False when it is time to check on them."""

    def choose(self, needed: int) -> bool:
        """Choose the ``needed`` finished workers that have waited longest. Return whether any left a message."""

    def operation(self, worker: int) -> int:
        """Return the last command of ``worker``, or 0 if it had none."""


class Workers(ABC):
    """Workers of one vector environment, each with several environments.

    Args:
        spec: Specs of the environments and the number of workers.

    Attributes:
        buffers: Arrays of all rows. Workers read the actions of a step from them, or receive a copy.
        seeds: Seed of the next reset of each environment, int64 ``(num_envs,)``. -1 for none.
        channel: Channel for commands and completions.
        description: Description of one environment. All are alike.
        last_context: Circumstances of the last failure, or None.
    """

    WHERE: str  # name of the backend in messages

    buffers: Buffers
    seeds: Array
    channel: Channel
    description: EnvDescription
    last_context: FailureContext | None = None

    def __init__(self, spec: VectorSpec) -> None:
        self.spec = spec
        self.envs_per_worker = len(spec.envs) // spec.num_workers
        self.last_seeds = [env.seed for env in spec.envs]  # last seed of each environment

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Process ids of the workers. Empty after they have stopped."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """True if the workers have stopped."""

    @abstractmethod
    def build(self) -> None:
        """Start the workers, and wait until they have built their environments.

        Raises:
            WorkerFailed: A worker could not build its environments.
        """

    @abstractmethod
    def find_failures(self) -> Iterator[WorkerFailed]:
        """Check on the workers in flight. Yield a failure for each that has died or exceeds the time limit."""

    @abstractmethod
    def read_reply(self, worker: int) -> None:
        """Read the reply of ``worker`` to its last command, which has finished. A second call reads nothing more.

        Raises:
            WorkerFailed: The command failed.
        """

    @abstractmethod
    def take_infos(self, worker: int) -> tuple[list[Any], list[int]]:
        """Return the infos read by ``read_reply``, or the results of a call, and their ``EnvLoop.sources``.

        After this, the outcome of a reset or step is in the rows.
        """

    @abstractmethod
    def start_call(self, worker: int, call: EnvCall) -> None:
        """Start ``call`` in ``worker``, which must not be busy."""

    @abstractmethod
    def replace(self, worker: int, shows_ended: bool) -> None:
        """Stop ``worker`` and start a new one, which starts new episodes with ``last_seeds``.

        Args:
            worker: Index of the worker.
            shows_ended: Whether the rows first show the ends of truncated episodes.

        Raises:
            WorkerFailed: The new worker failed too.
        """

    @abstractmethod
    def close(self, waits: bool = True) -> list[PufferError]:
        """Close the environments and stop all workers, by force if necessary.

        Args:
            waits: Whether to wait for workers to stop by themselves.

        Returns:
            Errors of the environments.
        """

    def envs_of(self, worker: int) -> slice:
        """Return the indices of the worker's environments."""
        num_envs, num_workers = len(self.spec.envs), self.spec.num_workers
        return slice(worker * num_envs // num_workers, (worker + 1) * num_envs // num_workers)

    def specs_of(self, worker: int) -> tuple[EnvSpec, ...]:
        """Return the specs of the worker's environments, with their last seeds."""
        mine = self.envs_of(worker)
        specs = zip(self.spec.envs[mine], self.last_seeds[mine], strict=True)
        return tuple(dataclasses.replace(spec, seed=seed) for spec, seed in specs)

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start a reset in every worker, with one seed per environment. No worker may be busy."""
        self.seeds[:] = [-1 if seed is None else seed for seed in seeds]
        self.last_seeds = [old if new is None else new for old, new in zip(self.last_seeds, seeds, strict=True)]
        self.channel.command_all(RESET)

    @abstractmethod
    def notify(self) -> None:
        """Request that every worker notifies its environments before their next step or reset."""

    def note_description(self, worker: int, description: EnvDescription) -> None:
        """Record the description of the environments of ``worker``.

        Raises:
            APIUsageError: Their autoreset mode differs from worker 0.
        """
        if worker == 0:
            self.description = description
        if description.autoreset != self.description.autoreset:
            raise APIUsageError(
                "vector.make: all environments must have environment 0's autoreset mode, "
                f"{self.description.autoreset!r}, got {description.autoreset!r} in environment "
                f"{self.envs_of(worker).start}; do not mix native and emulated ones"
            )

    def context(self, worker: int, phase: str, position: int | None, has_acted: bool) -> FailureContext:
        """Return the circumstances of a failure in the environment at ``position``, or in any of them for None."""
        first = self.envs_of(worker).start + (position or 0)
        last = first if position is not None else self.envs_of(worker).stop - 1
        actions = None
        if has_acted:
            agents = self.description.num_agents
            actions = self.buffers["actions"][first * agents : (last + 1) * agents]
        text = envs_text(worker, first, self.last_seeds[first : last + 1], actions)
        envs = self.specs_of(worker)[first - self.envs_of(worker).start :][: last + 1 - first]
        is_new = phase == "build" or (phase == "reset" and bool((self.seeds[first : last + 1] >= 0).all()))
        self.last_context = FailureContext(self.WHERE, worker, phase, text, envs, actions, is_new)
        return self.last_context


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


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of a block that must not be interrupted, such as reading a message."""
    received: list[tuple[int, Any]] = []
    before = _signal.getsignal(signal.SIGINT)
    is_delayed = callable(before)
    if is_delayed:
        try:
            _signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
        except ValueError:  # not the main thread, which alone gets signals
            is_delayed = False
    try:
        yield
    finally:
        if is_delayed:
            _signal.signal(signal.SIGINT, before)
        if received:
            before(*received[0])
