"""The actors of one vector environment, from their start to their end."""

import dataclasses
import math
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferlib.buffers import Array, Buffers, allocate
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.seeding import env_seed
from pufferlib.vector.env_runner import env_rows
from pufferlib.vector.multiprocessing.failures import envs_text, error_of
from pufferlib.vector.pickling import pickle_by_value
from pufferlib.vector.protocol import STEP, Failed, Ready
from pufferlib.vector.ray.actor import actor_class, shipped_layout
from pufferlib.vector.ray.cluster import connect, cpus_per_worker, describe_room
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import EnvDescription, RowSpec, VectorSpec

__all__ = ["ActorPool"]

WHERE = "vector.Ray"
CHECK_S = 1.0  # how often a waiter looks after the actors that it does not wait for
ROOM_S = 60.0  # least time for the cluster to find room: processes must start, a lost node be noticed
CLOSE_S = 5.0  # time for all environments to close, before their actors are ended by force


@dataclass(frozen=True)
class _Call:
    """What an actor was asked to do last."""

    phase: str
    ref: Any  # ray.ObjectRef
    deadline: float  # of time.monotonic


class ActorPool:
    """Actors of a Ray cluster; actions out, outcomes and failures back.

    A failure of one actor ends them all and raises, or, with ``on_crash="restart"``, that actor is
    replaced.

    Attributes:
        buffers: The arrays of all rows.
        rows: Those of each worker.
        description: What each environment is like.
        is_closed: Whether the actors have ended.
    """

    buffers: Buffers
    rows: list[Buffers]
    description: EnvDescription

    def __init__(self, spec: VectorSpec) -> None:
        self._ray = connect()
        self._spec = spec
        self._envs_per_worker = len(spec.envs) // spec.num_workers
        self._seeds = [env.seed for env in spec.envs]
        self._actors: list[Any] = []
        self._places: dict[int, Any] = {}  # what each actor says of where it is: an answer once it has found room
        self._calls: dict[int, _Call] = {}
        self._commands = [0] * spec.num_workers
        self._completed = [0] * spec.num_workers
        self._results: dict[int, Any] = {}  # of calls that are finished
        self._last_check = time.monotonic()
        self._timeout_s = math.inf if spec.timeout_s is None else spec.timeout_s
        self._room_s = max(ROOM_S, self._timeout_s)
        self._restarts: Restarts | None = None
        self.is_closed = False
        try:
            self._start_actors()
            self._build()
        except BaseException:
            self.close()
            raise

    def _start_actors(self) -> None:
        """Start every actor, and wait until the cluster has found room for it."""
        options = {"num_cpus": cpus_per_worker(self._ray), "scheduling_strategy": "SPREAD"}
        self._kind = self._ray.remote(actor_class()).options(**options)
        workers = range(self._spec.num_workers)
        for worker in workers:
            self._actors.append(self._kind.remote())
            self._places[worker] = self._call(worker, "place")
        self._settle(workers)

    def _build(self) -> None:
        """Build every environment; the first tells what the others must agree on."""
        spec = self._spec
        self._row_spec: RowSpec | None = None
        for workers in (range(1), range(1, spec.num_workers)):
            for worker in workers:
                self._call(worker, "build", self._setup(worker))
            for worker, data in self._settle(workers).items():
                ready: Ready = pickle.loads(data)
                self._check_autoreset(worker, ready)
                self._row_spec = ready.row_spec
        row_spec = self._row_spec
        assert row_spec is not None
        self._layout = shipped_layout(row_spec, self._envs_per_worker)
        self.buffers = allocate(row_spec.observation_space, row_spec.action_space, row_spec.num_agents * len(spec.envs))
        agents = row_spec.num_agents * self._envs_per_worker
        self.rows = [env_rows(self.buffers, agents, worker) for worker in range(spec.num_workers)]
        if spec.on_crash == "restart":
            self._restarts = Restarts(self.buffers, spec.num_workers, self.description.autoreset)

    def _setup(self, worker: int) -> bytes:
        """What to build in ``worker``, with the seeds of today."""
        mine = self._envs_of(worker)
        specs = zip(self._spec.envs[mine], self._seeds[mine], strict=True)
        envs = tuple(dataclasses.replace(spec, seed=seed) for spec, seed in specs)
        return pickle_by_value((envs, self._spec.autoreset, self._row_spec))

    def _envs_of(self, worker: int) -> slice:
        return slice(worker * self._envs_per_worker, (worker + 1) * self._envs_per_worker)

    def _check_autoreset(self, worker: int, ready: Ready) -> None:
        if worker == 0:
            self.description = ready.description
        if ready.description.autoreset != self.description.autoreset:
            raise APIUsageError(
                "vector.make: all environments must have environment 0's autoreset mode, "
                f"{self.description.autoreset!r}, got {ready.description.autoreset!r} in environment "
                f"{worker * self._envs_per_worker}; do not mix native and emulated ones"
            )

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start a reset in every actor, with one seed per environment; none may be at work."""
        self._seeds = [old if new is None else new for old, new in zip(self._seeds, seeds, strict=True)]
        numbers = np.array([-1 if seed is None else seed for seed in seeds], np.int64)
        for worker, part in enumerate(numbers.reshape(-1, self._envs_per_worker)):
            self._call(worker, "reset", part)

    def step(self, worker: int, actions: Array) -> None:
        """Start a step in ``worker``, which may not be at work, with the actions of all its agents."""
        if self._restarts is not None:
            self._restarts.keep_observations([worker])
        self.rows[worker]["actions"][...] = actions
        self._call(worker, "step", self.rows[worker]["actions"])

    def wait(self, workers: Sequence[int], count: int) -> list[int]:
        """The first ``count`` of ``workers`` that are finished; where several are, the first in the list.

        Raises:
            WorkerError: An environment failed or an actor was lost, and is not replaced.
        """
        return list(self._settle(workers, count))

    def fetch(self, worker: int) -> Infos:
        """Write the outcome of ``worker``, which was waited for, into its rows; returns its infos."""
        memory, infos = self._results[worker]
        for name, array in self._layout.arrays(memory.data).items():
            self.rows[worker][name][...] = array
        new: Infos = pickle.loads(infos) if infos else []
        return new if self._restarts is None else new + self._restarts.report(worker)

    def num_commands(self, worker: int) -> int:
        """What the actors of ``worker`` were asked to do so far, in number."""
        return self._commands[worker]

    def num_completed(self, worker: int) -> int:
        """The number of the last thing that they did."""
        return self._completed[worker]

    def operation(self, worker: int) -> int:
        """The last one they were asked for: ``STEP``, or 0 for anything else."""
        return STEP if self._calls[worker].phase == "step" else 0

    def outcome(self, worker: int) -> int:
        """How the last thing that they did ended: well, since failures do not count as done."""
        return 0

    def close(self) -> list[PufferError]:
        """Let every actor close its environments and end, by force if it must be; returns what went wrong."""
        if self.is_closed or not self._ray.is_initialized():  # or somebody has shut Ray down
            return []
        self.is_closed = True
        there = [worker for worker in self._places if self._place(worker)]
        refs = {self._actors[worker].call.remote("close"): worker for worker in there}
        closed = self._ray.wait(list(refs), num_returns=len(refs), timeout=CLOSE_S)[0] if refs else []
        reports = zip(closed, self._get_all(closed), strict=True)
        for actor in self._actors:
            self._ray.kill(actor)
        return [self._error(refs[ref], report) for ref, report in reports if isinstance(report, Failed)]

    def _call(self, worker: int, phase: str, *args: Any) -> Any:
        """Start ``phase`` in the actor of ``worker``; returns what stands for its result."""
        self._results.pop(worker, None)
        limit_s = 0.0 if phase == "place" else self._timeout_s * self._envs_per_worker
        limit_s += self._room_s if phase in ("place", "resume") else 0.0
        ref = self._actors[worker].call.remote(phase, *args)
        self._calls[worker] = _Call(phase, ref, time.monotonic() + limit_s)
        self._commands[worker] += 1
        return ref

    def _settle(self, workers: Sequence[int], count: int | None = None) -> dict[int, Any]:
        """The results of the first ``count`` of ``workers`` that are finished; by default of all."""
        count = len(workers) if count is None else count
        while count:
            if time.monotonic() - self._last_check > CHECK_S:
                self._look()
            refs = {self._calls[worker].ref: worker for worker in workers}
            finished = self._ray.wait(list(refs), num_returns=count, timeout=CHECK_S)[0]
            if len(finished) == count and self._accept([refs[ref] for ref in finished], self._get_all(finished)):
                return {refs[ref]: self._results[refs[ref]] for ref in finished}
        return {}

    def _accept(self, workers: Sequence[int], results: Sequence[Any]) -> bool:
        """Keep the results of ``workers``; False if one of them failed and was replaced."""
        failed = False
        for worker, result in zip(workers, results, strict=True):
            if isinstance(result, Exception | Failed):
                self._handle_failure(worker, self._error(worker, result))
                failed = True
            else:
                self._results[worker] = result
                self._completed[worker] = self._commands[worker]
        return not failed

    def _look(self) -> None:
        """See to actors that have been at work for longer than they may."""
        self._last_check = now = time.monotonic()
        expired = {call.ref: worker for worker, call in self._calls.items() if now > call.deadline}
        for ref in self._unfinished(list(expired)):
            self._handle_failure(expired[ref], self._too_late(expired[ref]))

    def _handle_failure(self, worker: int, error: PufferError) -> None:
        """Replace an actor that failed, or end all and raise what it failed of."""
        try:
            if self._restarts is None or isinstance(error, APIUsageError):
                raise error
            self._restarts.record_failure(worker, error, self)
        except PufferError:
            self.close()
            raise
        self._replace(worker, self._restarts)

    def _replace(self, worker: int, restarts: Restarts) -> None:
        """End the actor of ``worker``, and let a new one build its environments and start new episodes."""
        self._ray.kill(self._actors[worker])
        self._actors[worker] = self._kind.remote()
        self._places[worker] = self._actors[worker].call.remote("place")
        mine = self._envs_of(worker)
        self._seeds[mine] = [env_seed(seed, restarts.count_of(worker)) for seed in self._seeds[mine]]
        last_observations = self.rows[worker]["observations"] if restarts.awaits_reset(worker) else None
        self._call(worker, "resume", self._setup(worker), np.array(self._seeds[mine], np.int64), last_observations)

    def _unfinished(self, refs: list[Any]) -> list[Any]:
        return self._ray.wait(refs, num_returns=len(refs), timeout=0)[1] if refs else []

    def _get_all(self, refs: list[Any]) -> list[Any]:
        """Results, or for each that does not exist the reason."""
        try:
            return self._ray.get(refs)  # type: ignore[no-any-return]
        except self._ray.exceptions.RayError as error:
            return [error] if len(refs) == 1 else [self._get_all([ref])[0] for ref in refs]

    def _place(self, worker: int) -> str | None:
        """Where the actor of ``worker`` is, in words; None if it has found no room."""
        if self._unfinished([self._places[worker]]):
            return None
        place = self._get_all([self._places[worker]])[0]
        return place if isinstance(place, str) else None

    def _error(self, worker: int, problem: Failed | Exception) -> PufferError:
        """What to raise for a failure that an actor reports, or for an actor that is gone."""
        if isinstance(problem, Failed):
            place = f"worker {worker}" if problem.phase == "close" else self._text(worker, problem.position)
            return error_of(problem, place, worker, WHERE)
        return WorkerError(
            f"{WHERE}: worker {worker} ({self._place(worker) or 'on no node yet'}) was lost, in "
            f"{self._calls[worker].phase} of {self._text(worker)}. If its node is up and has memory left, run the "
            f"environment with backend=Serial to see what ends the process.\n\n{type(problem).__name__}: {problem}"
        )

    def _too_late(self, worker: int) -> PufferError:
        """What to raise for an actor that has found no room, or does not come to an end."""
        phase = self._calls[worker].phase
        if phase == "place":
            homeless = len(self._unfinished(list(self._places.values())))
            return APIUsageError(
                f"{WHERE}: the cluster must have room for {len(self._actors)} workers, a CPU for each, within "
                f"{self._room_s:g} seconds, got room for {len(self._actors) - homeless} and "
                f"{describe_room(self._ray)}; take fewer workers, or add nodes"
            )
        if phase == "resume":
            return WorkerError(
                f"{WHERE}: a new actor must find room and start the episodes of {self._text(worker)} in "
                f"{self._room_s:g} + {self._timeout_s * self._envs_per_worker:g} seconds, got more, and "
                f"{describe_room(self._ray)}; add nodes, or raise timeout_s"
            )
        return WorkerError(
            f"{WHERE}: one {phase} of an environment may take timeout_s={self._timeout_s:g} seconds, got more in "
            f"{self._text(worker)}; raise timeout_s, or pass timeout_s=None to wait for ever. Its worker was ended."
        )

    def _text(self, worker: int, position: int | None = None) -> str:
        """The environment at ``position`` of ``worker``, or all of its environments, in words."""
        first = worker * self._envs_per_worker + (position or 0)
        last = first if position is not None else first + self._envs_per_worker - 1
        actions = None
        if self._calls[worker].phase == "step":
            agents = self.description.num_agents
            actions = self.buffers["actions"][first * agents : (last + 1) * agents]
        return envs_text(worker, first, self._seeds[first : last + 1], actions)
