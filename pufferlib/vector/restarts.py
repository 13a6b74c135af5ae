"""``on_crash="restart"``: how often each worker has failed, and which episodes were lost with it.

``Restarts`` keeps that for all workers of a vector environment. ``RestartingRunner`` does without processes what a
worker process or actor gets done to it: an environment that raises is built anew, alone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pufferlib.buffers import Array, Buffers
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.replays.failures import leave_bundles
from pufferlib.seeding import env_seed
from pufferlib.vector.env_runner import EnvRunner, Memory
from pufferlib.vector.failures import Failed, FailureContext, envs_text, error_of
from pufferlib.vector.specs import RESTART, Autoreset, EnvSpec

__all__ = ["RestartingRunner", "Restarts"]

MAX_FAILURES = 3  # of one worker, without a step in between


class Restarts:
    """The restarts of one vector environment.

    The replacement's environments get new seeds, or a fault that depends on the seed would come
    again: after the k-th restart of its worker an environment whose last seed was s goes on with
    ``env_seed(s, k)``.

    Args:
        buffers: The arrays of all rows.
        num_workers: Workers that share them.
        autoreset: With "same_step" new episodes take the place of lost ones at once; with "next_step" the next
            step begins them; with "disabled" nothing follows until reset.
    """

    def __init__(self, buffers: Buffers, num_workers: int, autoreset: Autoreset) -> None:
        self._buffers = buffers
        self._autoreset = autoreset
        self._seen = np.zeros_like(buffers["observations"])
        self._rows = len(self._seen) // num_workers
        self._counts = [0] * num_workers
        self._failures: dict[int, int] = {}  # of workers that have finished no step since
        self._resets: dict[int, int] = {}  # of those: commands that they must finish before the next step counts
        self._errors: dict[int, str] = {}  # of the failures that the caller has not been told of
        self._lost: set[int] = set()  # those of them that cost episodes
        self._marked: set[int] = set()  # whose rows say that episodes were cut off

    def keep_observations(self, workers: Sequence[int]) -> None:
        """Keep the observations of ``workers``, which the caller has seen, before their next step."""
        self.count_finished(workers)
        for worker in workers:
            rows = self._rows_of(worker)
            self._seen[rows] = self._buffers["observations"][rows]
            if worker in self._marked:  # an environment that never truncates would leave it so
                self._buffers["truncations"][rows] = False
                self._marked.discard(worker)

    def count_finished(self, workers: Sequence[int]) -> None:
        """Note that ``workers`` have finished their last command, before they are given another."""
        for worker in self._failures.keys() & set(workers) if self._failures else ():
            if self._resets[worker]:
                self._resets[worker] -= 1
            else:
                del self._failures[worker], self._resets[worker]

    def record_failure(self, worker: int, error: PufferError, in_step: bool) -> None:
        """Count a failure of ``worker``, which cost episodes if it came ``in_step``.

        Raises:
            WorkerError: It failed too often without a step in between.
        """
        self._failures[worker] = self._failures.get(worker, 0) + 1
        if self._failures[worker] == MAX_FAILURES:
            raise WorkerError(
                f"{error}\n\nWorker {worker} failed {MAX_FAILURES} times without finishing a step in between, "
                "so it is not restarted again."
            ) from None
        self._counts[worker] += 1
        self._errors[worker] = str(error).partition("\n")[0]
        if in_step:
            self._lost.add(worker)
        # The replacement's first reset is no step, nor is the step that waits for it.
        self._resets[worker] = 1 + (self._autoreset == "next_step" and worker in self._lost)

    @property
    def total(self) -> int:
        """Restarts so far, of all workers."""
        return sum(self._counts)

    def next_seeds(self, worker: int, seeds: Sequence[int]) -> list[int]:
        """Seeds of the environments of the replacement of ``worker``, which were given ``seeds`` last."""
        return [env_seed(seed, self._counts[worker]) for seed in seeds]

    def awaits_reset(self, worker: int) -> bool:
        """Tell whether the replacement of ``worker`` first shows the ends of episodes that were cut off."""
        return worker in self._lost and self._autoreset != "same_step"

    def report(self, worker: int) -> Infos:
        """Tell of the last restart of ``worker``, whose replacement has finished, in its rows and as infos."""
        if worker not in self._errors:
            return []
        if worker in self._lost:
            rows = self._rows_of(worker)
            self._buffers["rewards"][rows] = 0
            self._buffers["terminals"][rows] = False
            self._buffers["truncations"][rows] = True
            self._buffers["final_observations"][rows] = self._seen[rows]
            if self._autoreset != "same_step":
                self._buffers["observations"][rows] = self._seen[rows]
            self._marked.add(worker)
            self._lost.discard(worker)
        return [{"worker_restarts": self.total, "worker_error": self._errors.pop(worker)}]

    def last_actions(self, worker: int) -> Array:
        """Actions that the environments of ``worker`` were given last."""
        return self._buffers["actions"][self._rows_of(worker)]

    def _rows_of(self, worker: int) -> slice:
        return slice(worker * self._rows, (worker + 1) * self._rows)


class RestartingRunner(EnvRunner):
    """One environment, which goes on after a failure as the only one of a worker would.

    Args:
        spec: The environment to build.
        autoreset: What follows a finished episode; None takes what suits the environment.
        memory: As for ``EnvRunner``; gives the same rows for every environment that is built here.

    Attributes:
        restarts: Of all environments of the batch; to be set before the first reset.
    """

    restarts: Restarts

    def __init__(self, spec: EnvSpec, autoreset: Autoreset | None, memory: Memory) -> None:
        super().__init__([spec], autoreset, memory)
        self._spec, self._memory = spec, memory
        self._phase = "build"

    def reset(
        self,
        seeds: Sequence[int | None],
        options: Sequence[dict[str, Any] | None] | None = None,
        positions: Sequence[int] | None = None,
    ) -> Infos:
        """Start a new episode; ``seeds`` has one entry."""
        self.restarts.count_finished([self._spec.index])
        (seed,) = seeds
        if seed is not None:
            self._spec = dataclasses.replace(self._spec, seed=seed)
        return self._attempt("reset", lambda: EnvRunner.reset(self, seeds, options, positions))

    def step(self) -> Infos:
        """Act with the actions that stand in the rows."""
        self.restarts.keep_observations([self._spec.index])
        return self._attempt("step", lambda: EnvRunner.step(self))

    def _attempt(self, command: str, act: Callable[[], Infos]) -> Infos:
        """Act; where that fails, begin a new episode in another environment like this one."""
        self._phase = command
        while True:
            try:
                return act()
            except Exception as error:
                failure = self._describe_failure(error)
            if isinstance(failure, APIUsageError):
                raise failure
            try:
                self.restarts.record_failure(self._spec.index, failure, command == "step")
            except WorkerError as last:
                leave_bundles(last, self._context(), self.autoreset)
                raise
            act = self._rebuild

    def _rebuild(self) -> Infos:
        index = self._spec.index
        self._close_quietly()
        (seed,) = self.restarts.next_seeds(index, [self._spec.seed])
        self._spec = dataclasses.replace(self._spec, seed=seed)
        self._phase = "build"
        EnvRunner.__init__(self, [self._spec], self.autoreset, self._memory)
        self._phase = "reset"
        if self.restarts.awaits_reset(index):
            self.show_ended([seed])
            infos = self.restarts.report(index)
        else:
            infos = EnvRunner.reset(self, [seed]) + self.restarts.report(index)
        self.sources.append(RESTART)  # of what was reported
        return infos

    def _context(self) -> FailureContext:
        index, is_new = self._spec.index, self._phase == "build"
        actions = self.restarts.last_actions(index)
        return FailureContext("vector.Serial", index, self._phase, "", (self._spec,), actions, is_new)

    def _describe_failure(self, error: Exception) -> PufferError:
        index, seed = self._spec.index, self._spec.seed
        place = envs_text(None, index, [seed], self.restarts.last_actions(index))
        return error_of(Failed.of(self._phase, 0, error), place, None, "vector.Serial")
