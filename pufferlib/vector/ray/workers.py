"""``Ray`` backend, and the actors behind it."""

import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.vector.arguments import Cores
from pufferlib.vector.calls import EnvCall
from pufferlib.vector.env_runner import env_rows
from pufferlib.vector.failures import Failed, FailureContext, WorkerFailed, error_of, late_error
from pufferlib.vector.pooled import PooledVectorEnv
from pufferlib.vector.ray.actor import actor_class, shipped_layout
from pufferlib.vector.ray.cluster import cluster_cpus, connect, cpus_per_worker, describe_room, session_of
from pufferlib.vector.specs import PHASES, RESET, Ready, RowSpec, VectorSpec
from pufferlib.vector.workers import Workers

__all__ = ["ActorChannel", "ActorWorkers", "Ray"]

CHECK_S = 1.0  # interval at which all actors are checked
ROOM_S = 60.0  # least time for the cluster to place actors: processes must start, a lost node must be noticed
CLOSE_S = 5.0  # time for all environments to close, before actors are stopped by force


@dataclass(frozen=True)
class _Call:
    """Last call of an actor."""

    phase: str
    ref: Any  # ray.ObjectRef
    deadline: float  # of time.monotonic


class ActorChannel:
    """Channel whose commands are calls of actors, and whose outcomes are their results.

    Args:
        ray: Module ``ray``.
        num_workers: Number of actors.
        start: Function of a worker index and an operation that calls the actor and then ``note_call``.

    Attributes:
        calls: Last call of each actor.
        results: Results of finished calls.
        chosen: Workers selected by the last ``choose``, in ascending order.
        last_check: Time of the last check on all actors, in ``time.monotonic`` seconds.
    """

    def __init__(self, ray: Any, num_workers: int, start: Callable[[int, int], object]) -> None:
        self._ray, self._start = ray, start
        self._session = session_of(ray)
        self._finished: list[int] = []
        self._workers = range(num_workers)
        self.in_flight: list[int] = []
        self.chosen: list[int] = []
        self.calls: dict[int, _Call] = {}
        self.results: dict[int, Any] = {}
        self.last_check = time.monotonic()

    @property
    def is_connected(self) -> bool:
        """True if this process is still connected to the cluster of the actors."""
        return session_of(self._ray) == self._session

    def check_connection(self) -> None:
        """Raise APIUsageError if Ray was shut down, or started again, since the actors were made."""
        if not self.is_connected:
            raise APIUsageError(
                "vector.Ray: the environments are lost, because ray.shutdown was called after they were made; make new "
                "ones with pufferlib.vector.make"
            )

    def first_chosen(self) -> int:
        """Return the lowest chosen worker."""
        return self.chosen[0]

    def command_all(self, operation: int) -> None:
        """Send every worker a command. No worker may be busy."""
        self.in_flight, self.chosen = list(self._workers), []
        for worker in self.in_flight:
            self._start(worker, operation)

    def command_chosen(self, operation: int) -> None:
        """Send the chosen workers a command. They move to the end of the queue."""
        self.in_flight = [worker for worker in self.in_flight if worker not in self.chosen] + self.chosen
        for worker in self.chosen:
            self._start(worker, operation)
        self.chosen = []

    def note_call(self, worker: int, call: _Call) -> None:
        """Record ``call`` as the one to wait for from ``worker``."""
        self.results.pop(worker, None)
        self.calls[worker] = call

    def wait(self, needed: int, in_turn: bool) -> bool:
        """Wait until ``needed`` workers in flight are finished. Return False when it is time to check on them."""
        return self._wait(self.in_flight[:needed] if in_turn else self.in_flight, needed)

    def wait_for(self, workers: Sequence[int]) -> bool:
        """Wait until these workers are finished. Return False when it is time to check on them."""
        return self._wait(workers, len(workers))

    def _wait(self, workers: Sequence[int], needed: int) -> bool:
        self.check_connection()
        if time.monotonic() - self.last_check > CHECK_S:
            return False
        refs = {self.calls[worker].ref: worker for worker in workers}
        finished = self._ray.wait(list(refs), num_returns=needed, timeout=CHECK_S)[0] if needed else []
        self._finished = [refs[ref] for ref in finished]
        return len(finished) == needed

    def choose(self, needed: int) -> bool:
        """Choose the finished workers of the last wait and fetch their results. Return True: all have a result."""
        self.chosen = sorted(self._finished[:needed])
        self.fetch(self.chosen)
        return True

    def fetch(self, workers: Sequence[int]) -> None:
        """Fetch the results of ``workers``, which must be finished."""
        new = [worker for worker in workers if worker not in self.results]
        self.results.update(zip(new, get_all(self._ray, [self.calls[worker].ref for worker in new]), strict=True))

    def operation(self, worker: int) -> int:
        """Return the last command of ``worker``, or 0 if it had none."""
        return next((number for number, phase in PHASES.items() if phase == self.calls[worker].phase), 0)


class ActorWorkers(Workers):
    """Actors of a Ray cluster.

    Args:
        spec: Specs of the environments and the number of actors.
    """

    WHERE = "vector.Ray"

    def __init__(self, spec: VectorSpec) -> None:
        super().__init__(spec)
        self._ray = connect()
        self._actors: list[Any] = []
        self._places: dict[int, Any] = {}  # result refs of EnvActor.place, ready once the cluster has placed the actor
        self._timeout_s = math.inf if spec.timeout_s is None else spec.timeout_s
        self._room_s = max(ROOM_S, self._timeout_s)
        self._is_closed = False
        self.seeds = np.full(len(spec.envs), -1, np.int64)
        self.channel: ActorChannel = ActorChannel(self._ray, spec.num_workers, self._command)

    @property
    def pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine. Empty after they have stopped."""
        if self._is_closed or not self.channel.is_connected:
            return []
        places = [self._place(worker) for worker in self._places]
        return [place[1] for place in places if place]

    @property
    def is_closed(self) -> bool:
        """True if the actors have stopped."""
        return self._is_closed

    def build(self) -> None:
        """Start all actors, wait until the cluster has placed them, and build the environments."""
        options = {"num_cpus": cpus_per_worker(self._ray), "scheduling_strategy": "SPREAD"}
        self._kind = self._ray.remote(actor_class()).options(**options)
        workers = range(self.spec.num_workers)
        for worker in workers:
            self._actors.append(self._kind.remote())
            self._places[worker] = self._call(worker, "place")
        self._results(workers)
        self._row_spec: RowSpec | None = None
        for some in (workers[:1], workers[1:]):  # the first determines the row spec of all
            for worker in some:
                self._call(worker, "build", self._setup(worker))
            for worker, data in zip(some, self._results(some), strict=True):
                ready: Ready = pickle.loads(data)
                self.note_description(worker, ready.description)
                self._row_spec = ready.row_spec
        self._allocate(ready.row_spec)

    def _allocate(self, row_spec: RowSpec) -> None:
        agents = row_spec.num_agents * self.envs_per_worker
        num_workers = self.spec.num_workers
        self._layout = shipped_layout(row_spec, self.envs_per_worker)
        self.buffers = allocate(row_spec.observation_space, row_spec.action_space, agents * num_workers)
        self._rows = [env_rows(self.buffers, agents, worker) for worker in range(num_workers)]

    def _results(self, workers: Sequence[int]) -> list[Any]:
        """Wait for the results of ``workers`` and return them."""
        while not self.channel.wait_for(workers):
            for failure in self.find_failures():
                raise failure
        self.channel.choose(len(workers))
        for worker in workers:
            self.read_reply(worker)
        return [self.channel.results[worker] for worker in workers]

    def _setup(self, worker: int) -> bytes:
        return pickle_by_value((self.specs_of(worker), self.spec.autoreset, self._row_spec, self.spec.hide_output))

    def _command(self, worker: int, operation: int) -> None:
        is_reset = operation == RESET
        sent = self.seeds[self.envs_of(worker)] if is_reset else self._rows[worker]["actions"]
        self._call(worker, PHASES[operation], sent)

    def _call(self, worker: int, phase: str, *args: Any) -> Any:
        """Call method ``phase`` of an actor and return the reference of its result."""
        self.channel.check_connection()
        limit_s = 0.0 if phase == "place" else self._timeout_s * self.envs_per_worker
        limit_s += self._room_s if phase in ("place", "resume") else 0.0
        ref = self._actors[worker].call.remote(phase, *args)
        self.channel.note_call(worker, _Call(phase, ref, time.monotonic() + limit_s))
        return ref

    def find_failures(self) -> Iterator[WorkerFailed]:
        """Check on the actors. Yield a failure for each that exceeds the time limit."""
        self.channel.last_check = now = time.monotonic()
        expired = {call.ref: worker for worker, call in self.channel.calls.items() if now > call.deadline}
        for ref in self._unfinished(list(expired)):
            yield WorkerFailed(expired[ref], self._timeout_error(expired[ref]))

    def read_reply(self, worker: int) -> None:
        """Check the result of ``worker``. Raise WorkerFailed if it is a failure or the actor was lost."""
        self.channel.fetch([worker])
        result = self.channel.results[worker]
        if isinstance(result, Exception | Failed):
            raise WorkerFailed(worker, self._error(worker, result))

    def take_infos(self, worker: int) -> tuple[list[Any], list[int]]:
        """Write the outcome of ``worker`` to its rows, and return the infos and their sources."""
        memory, infos = self.channel.results[worker]
        if memory is not None:
            for name, array in self._layout.arrays(memory.data).items():
                self._rows[worker][name][...] = array
        restored: tuple[list[Any], list[int]] = pickle.loads(infos) if infos else ([], [])
        return restored

    def start_call(self, worker: int, call: EnvCall) -> None:
        """Start ``call`` in ``worker``, which must not be busy."""
        self._call(worker, "call", pickle_by_value(call))

    def notify(self) -> None:
        """Request that every actor notifies its environments. An actor executes its calls in order."""
        self.channel.check_connection()
        for actor in self._actors:
            actor.call.remote("notify")

    def replace(self, worker: int, shows_ended: bool) -> None:
        """Kill the actor of ``worker``. A new one builds its environments and starts new episodes."""
        self._ray.kill(self._actors[worker])
        self._actors[worker] = self._kind.remote()
        self._places[worker] = self._actors[worker].call.remote("place")
        last_observations = self._rows[worker]["observations"] if shows_ended else None
        self._call(worker, "resume", self._setup(worker), self.seeds[self.envs_of(worker)], last_observations)

    def close(self, waits: bool = True) -> list[PufferError]:
        """Close the environments and stop all actors, by force if necessary. Return errors of the environments."""
        if self._is_closed:
            return []
        self._is_closed = True
        if not self.channel.is_connected:  # other code has called ray.shutdown, which ends the actors
            return []
        there = [worker for worker in self._places if self._place(worker)]
        refs = {self._actors[worker].call.remote("close"): worker for worker in there}
        limit_s = CLOSE_S if waits else 0.0
        closed = self._ray.wait(list(refs), num_returns=len(refs), timeout=limit_s)[0] if refs else []
        reports = zip(closed, get_all(self._ray, closed), strict=True)
        for actor in self._actors:
            self._ray.kill(actor)
        return [self._error(refs[ref], report) for ref, report in reports if isinstance(report, Failed)]

    def _unfinished(self, refs: list[Any]) -> list[Any]:
        return self._ray.wait(refs, num_returns=len(refs), timeout=0)[1] if refs else []

    def _place(self, worker: int) -> tuple[str, int] | None:
        """Return host name and process id of an actor, or None if the cluster has not placed it."""
        if self._unfinished([self._places[worker]]):
            return None
        place = get_all(self._ray, [self._places[worker]])[0]
        return place if isinstance(place, tuple) else None

    def _error(self, worker: int, problem: Failed | Exception) -> PufferError:
        """Return the error for a failure that an actor reports, or for an actor that was lost."""
        if isinstance(problem, Failed):
            is_last = problem.phase == "close"
            text = f"worker {worker}" if is_last else self._context(worker, problem.position).text
            return error_of(problem, text, worker, self.WHERE)
        place = self._place(worker)
        home = f"{place[0]}, process {place[1]}" if place else "on no node yet"
        context = self._context(worker)
        return WorkerError(
            f"{self.WHERE}: worker {worker} ({home}) was lost, in {context.phase} of {context.text}. "
            "If its node is up and has memory left, run the environment with backend=Serial to see what ends the "
            f"process.\n\n{type(problem).__name__}: {problem}"
        )

    def _timeout_error(self, worker: int) -> PufferError:
        """Return the error for an actor that was not placed in time, or exceeds the time limit."""
        context = self._context(worker)
        if context.phase == "place":
            unplaced = len(self._unfinished(list(self._places.values())))
            return APIUsageError(
                f"{self.WHERE}: the cluster must have room for {len(self._actors)} workers, a CPU for each, within "
                f"{self._room_s:g} seconds, got room for {len(self._actors) - unplaced} and "
                f"{describe_room(self._ray)}; use fewer workers, or add nodes"
            )
        if context.phase == "resume":
            return WorkerError(
                f"{self.WHERE}: a new actor must be placed and start the episodes of {context.text} within "
                f"{self._room_s:g} + {self._timeout_s * self.envs_per_worker:g} seconds, but took longer, with "
                f"{describe_room(self._ray)}; add nodes, or raise timeout_s"
            )
        return late_error(context, self._timeout_s, self.TIMEOUT_ADVICE)

    def _context(self, worker: int, position: int | None = None) -> FailureContext:
        """Return the circumstances of a failure in the environment at ``position``, or in any of them for None."""
        phase = self.channel.calls[worker].phase
        return self.context(worker, phase, position)


def get_all(ray: Any, refs: list[Any]) -> list[Any]:
    """Return the results of all references, or the error of each that failed."""
    try:
        return ray.get(refs)  # type: ignore[no-any-return]
    except ray.exceptions.RayError as error:
        return [error] if len(refs) == 1 else [get_all(ray, [ref])[0] for ref in refs]


class Ray(PooledVectorEnv):
    """Environments in actors of a Ray cluster, several in each, on one or more machines.

    The arguments are the ones of ``pufferlib.vector.make``, without ``backend``.

    Each step sends one array of actions to an actor and receives one block of results. Batches are the same as with
    ``Multiprocessing``. With ``zero_copy=True``, they are adjacent rows in a fixed order, so the same actions give the
    same data in every run. With ``zero_copy=False``, a batch holds the actors that finish first.

    ``driver_env`` is a description, because the environments only live in the actors. A call to an actor may take
    ``timeout_s`` seconds for each of its environments.

    Raises:
        BindingMissing: Ray is not installed.
    """

    _cores = Cores(cluster_cpus, "usable cores of the Ray cluster")

    def _make_workers(self, spec: VectorSpec) -> ActorWorkers:
        return ActorWorkers(spec)
