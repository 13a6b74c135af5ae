"""The actors of one vector environment, from their start to their end."""

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
from pufferlib.vector.failures import envs_text, error_of
from pufferlib.vector.group import env_rows
from pufferlib.vector.launch import pickle_envs
from pufferlib.vector.messages import Failed
from pufferlib.vector.plan import EnvDescription, VectorPlan
from pufferlib.vector.ray_actor import Block, EnvActor, Ready
from pufferlib.vector.ray_cluster import connect, cpus_per_worker, describe_room

__all__ = ["ActorPool"]

WHERE = "vector.Ray"
LOOK_S = 1.0  # how often a waiter looks after the actors that it does not wait for
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

    A failure of one actor ends them all, and raises.

    Attributes:
        buffers: The arrays of all rows.
        rows: Those of each worker.
        description: What each environment is like.
        is_closed: Whether the actors have ended.
    """

    buffers: Buffers
    rows: list[Buffers]
    description: EnvDescription

    def __init__(self, plan: VectorPlan) -> None:
        self._ray = connect()
        self._plan = plan
        self._envs_per_worker = len(plan.envs) // plan.num_workers
        self._seeds = [env.seed for env in plan.envs]
        self._actors: list[Any] = []
        self._places: dict[int, str] = {}  # of actors that have found room
        self._calls: dict[int, _Call] = {}
        self._results: dict[int, Any] = {}  # of calls that are finished
        self._last_look = time.monotonic()
        self._timeout_s = math.inf if plan.timeout_s is None else plan.timeout_s
        self._room_s = max(ROOM_S, self._timeout_s)
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
        kind = self._ray.remote(EnvActor).options(**options)
        for worker in range(self._plan.num_workers):
            self._actors.append(kind.remote())
            self._call(worker, "place")
        self._places = self._settle(range(self._plan.num_workers))

    def _build(self) -> None:
        """Build every environment; the first tells what the others must agree on."""
        plan, size, spec = self._plan, self._envs_per_worker, None
        pickled = [pickle_envs(plan.envs[w * size : (w + 1) * size]) for w in range(plan.num_workers)]
        for workers in (range(1), range(1, plan.num_workers)):
            for worker in workers:
                self._call(worker, "build", pickled[worker], plan.autoreset, spec)
            for worker, ready in self._settle(workers).items():
                self._check_autoreset(worker, ready)
                spec = ready.spec
        assert spec is not None
        self._block = Block(spec, size)
        self.buffers = allocate(spec.observation_space, spec.action_space, spec.num_agents * len(plan.envs))
        self.rows = [env_rows(self.buffers, spec.num_agents * size, worker) for worker in range(plan.num_workers)]

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
        self.rows[worker]["actions"][...] = actions
        self._call(worker, "step", self.rows[worker]["actions"])

    def wait(self, workers: Sequence[int], count: int) -> list[int]:
        """The first ``count`` of ``workers`` that are finished; where several are, the first in the list.

        Raises:
            WorkerError: An environment failed, or an actor was lost.
        """
        return list(self._settle(workers, count))

    def fetch(self, worker: int) -> Infos:
        """Write the outcome of ``worker``, which was waited for, into its rows; returns its infos."""
        memory, infos = self._results[worker]
        for name, array in self._block.arrays(memory).items():
            self.rows[worker][name][...] = array
        return pickle.loads(infos) if infos else []

    def close(self) -> list[PufferError]:
        """Let every actor close its environments and end, by force if it must be; returns what went wrong."""
        if self.is_closed or not self._ray.is_initialized():  # or somebody has shut Ray down
            return []
        self.is_closed = True
        refs = {self._actors[worker].close.remote(): worker for worker in self._places}
        closed = self._ray.wait(list(refs), num_returns=len(refs), timeout=CLOSE_S)[0] if refs else []
        reports = zip(closed, self._get_all(closed), strict=True)
        for actor in self._actors:
            self._ray.kill(actor)
        return [self._error(refs[ref], report) for ref, report in reports if isinstance(report, Failed)]

    def _call(self, worker: int, phase: str, *args: Any) -> None:
        """Start ``phase`` in the actor of ``worker``."""
        self._results.pop(worker, None)
        limit_s = self._room_s if phase == "place" else self._timeout_s * self._envs_per_worker
        ref = getattr(self._actors[worker], phase).remote(*args)
        self._calls[worker] = _Call(phase, ref, time.monotonic() + limit_s)

    def _settle(self, workers: Sequence[int], count: int | None = None) -> dict[int, Any]:
        """The results of the first ``count`` of ``workers`` that are finished; by default of all."""
        refs = {self._calls[worker].ref: worker for worker in workers}
        count = len(refs) if count is None else count
        finished: list[Any] = []
        while len(finished) < count:
            if time.monotonic() - self._last_look > LOOK_S:
                self._look()
            finished = self._ray.wait(list(refs), num_returns=count, timeout=LOOK_S)[0]
        for ref, result in zip(finished, self._get_all(finished), strict=True):
            if isinstance(result, Exception | Failed):
                raise self._give_up(self._error(refs[ref], result))
            self._results[refs[ref]] = result
        return {refs[ref]: self._results[refs[ref]] for ref in finished}

    def _look(self) -> None:
        """Raise if an actor has been at work for longer than it may."""
        self._last_look = now = time.monotonic()
        expired = {call.ref: worker for worker, call in self._calls.items() if now > call.deadline}
        for ref in self._unfinished(list(expired)):
            raise self._give_up(self._too_late(expired[ref]))

    def _unfinished(self, refs: list[Any]) -> list[Any]:
        return self._ray.wait(refs, num_returns=len(refs), timeout=0)[1] if refs else []

    def _get_all(self, refs: list[Any]) -> list[Any]:
        """Results, or for each that does not exist the reason."""
        try:
            return self._ray.get(refs)  # type: ignore[no-any-return]
        except self._ray.exceptions.RayError as error:
            return [error] if len(refs) == 1 else [self._get_all([ref])[0] for ref in refs]

    def _give_up(self, error: PufferError) -> PufferError:
        self.close()
        return error

    def _error(self, worker: int, problem: Failed | Exception) -> PufferError:
        """What to raise for a failure that an actor reports, or for an actor that is gone."""
        if isinstance(problem, Failed):
            place = f"worker {worker}" if problem.phase == "close" else self._text(worker, problem.position)
            return error_of(problem, place, worker, WHERE)
        return WorkerError(
            f"{WHERE}: worker {worker} ({self._places.get(worker, 'on no node yet')}) was lost, in "
            f"{self._calls[worker].phase} of {self._text(worker)}. If its node is up and has memory left, run the "
            f"environment with backend=Serial to see what ends the process.\n\n{type(problem).__name__}: {problem}"
        )

    def _too_late(self, worker: int) -> PufferError:
        """What to raise for an actor that has found no room, or does not come to an end."""
        phase = self._calls[worker].phase
        if phase == "place":
            homeless = len(self._unfinished([call.ref for call in self._calls.values()]))
            return APIUsageError(
                f"{WHERE}: the cluster must have room for {len(self._actors)} workers, a CPU for each, within "
                f"{self._room_s:g} seconds, got room for {len(self._actors) - homeless} and "
                f"{describe_room(self._ray)}; take fewer workers, or add nodes"
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
