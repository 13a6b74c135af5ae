"""Replacement of failed workers and environments with ``on_crash="restart"``.

``Restarts`` counts the failures of all workers of a vector environment and the episodes lost with them.
``RestartingRunner`` replaces a failed environment in the calling process, for ``Serial``.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pufferlib.buffers import Array, Buffers
from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.replays.failures import leave_bundles
from pufferlib.seeding import env_seed
from pufferlib.vector.env_runner import EnvRunner, Memory, exits_raise
from pufferlib.vector.failures import Failed, FailureContext, envs_text, error_of
from pufferlib.vector.specs import RESTART, EnvSpec

__all__ = ["RestartingRunner", "Restarts"]

MAX_FAILURES = 3  # of one worker, without a finished step in between


class Restarts:
    """Restarts of the workers of one vector environment.

    Environments of the replacement get new seeds, because a fault that depends on the seed would occur again. After the
    k-th restart of its worker, an environment whose last seed was s gets ``env_seed(s, k)``.

    Args:
        buffers: Arrays of all rows.
        num_workers: Number of workers.
        autoreset: Autoreset mode. With "same_step", new episodes replace the lost ones immediately. With "next_step",
            the next step starts them. With "disabled", they start with the next reset.
    """

    def __init__(self, buffers: Buffers, num_workers: int, autoreset: AutoresetMode) -> None:
        self._buffers = buffers
        self._autoreset = autoreset
        self._seen = np.zeros_like(buffers["observations"])  # last observations returned to the caller
        self._rows = len(self._seen) // num_workers
        self._counts = [0] * num_workers
        self._failures: dict[int, int] = {}  # failures since the last finished step, by worker
        self._resets: dict[int, int] = {}  # commands to finish before a step counts, by worker in _failures
        self._errors: dict[int, str] = {}  # failures that were not reported to the caller yet
        self._lost: set[int] = set()  # workers in _errors that lost episodes
        self._marked: set[int] = set()  # workers whose rows are marked as truncated

    def keep_observations(self, workers: Sequence[int]) -> None:
        """Keep the observations of ``workers`` before their next step. The caller has seen them."""
        self.count_finished(workers)
        for worker in workers:
            rows = self._rows_of(worker)
            self._seen[rows] = self._buffers["observations"][rows]
            if worker in self._marked:  # an environment that never truncates would not clear the flag
                self._buffers["truncations"][rows] = False
                self._marked.discard(worker)

    def count_finished(self, workers: Sequence[int]) -> None:
        """Record that ``workers`` have finished their last command. Called before they get another."""
        for worker in self._failures.keys() & set(workers) if self._failures else ():
            if self._resets[worker]:
                self._resets[worker] -= 1
            else:
                del self._failures[worker], self._resets[worker]

    def record_failure(self, worker: int, error: PufferError, in_step: bool) -> None:
        """Count a failure of ``worker``. If it occurred ``in_step``, episodes were lost.

        Raises:
            WorkerError: The worker failed ``MAX_FAILURES`` times without a finished step in between.
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
        # Neither the first reset of the replacement nor the step that waits for it counts as a step.
        self._resets[worker] = 1 + (self._autoreset == AutoresetMode.NEXT_STEP and worker in self._lost)

    @property
    def total(self) -> int:
        """Number of restarts of all workers."""
        return sum(self._counts)

    def next_seeds(self, worker: int, seeds: Sequence[int]) -> list[int]:
        """Return seeds for the replacement of ``worker``, whose environments had ``seeds``."""
        return [env_seed(seed, self._counts[worker]) for seed in seeds]

    def awaits_reset(self, worker: int) -> bool:
        """Return whether the rows of a replacement first show the truncated episodes, until its first reset."""
        return worker in self._lost and self._autoreset != AutoresetMode.SAME_STEP

    def report(self, worker: int) -> Infos:
        """Report the last restart of ``worker`` in its rows and as an info. The replacement must have finished."""
        if worker not in self._errors:
            return []
        if worker in self._lost:
            rows = self._rows_of(worker)
            self._buffers["rewards"][rows] = 0
            self._buffers["terminals"][rows] = False
            self._buffers["truncations"][rows] = True
            self._buffers["final_observations"][rows] = self._seen[rows]
            if self._autoreset != AutoresetMode.SAME_STEP:
                self._buffers["observations"][rows] = self._seen[rows]
            self._marked.add(worker)
            self._lost.discard(worker)
        return [{"worker_restarts": self.total, "worker_error": self._errors.pop(worker)}]

    def last_actions(self, worker: int) -> Array:
        """Return the last actions sent to the environments of ``worker``."""
        return self._buffers["actions"][self._rows_of(worker)]

    def _rows_of(self, worker: int) -> slice:
        return slice(worker * self._rows, (worker + 1) * self._rows)


class RestartingRunner(EnvRunner):
    """Runner of one environment that is replaced after a failure, like the only environment of a worker.

    Args:
        spec: Spec of the environment to build.
        autoreset: Autoreset mode. None uses the default of the environment.
        memory: Function that returns the rows, as for ``EnvRunner``. It must return the same rows for replacements.

    Attributes:
        restarts: Restarts of all environments of the batch. Must be set before the first reset.
    """

    restarts: Restarts

    def __init__(self, spec: EnvSpec, autoreset: AutoresetMode | None, memory: Memory) -> None:
        super().__init__([spec], autoreset, memory)
        self._spec, self._memory = spec, memory
        self._phase = "build"

    def reset(
        self,
        seeds: Sequence[int | None],
        options: Sequence[dict[str, Any] | None] | None = None,
        positions: Sequence[int] | None = None,
    ) -> Infos:
        """Start a new episode. ``seeds`` has one entry."""
        self.restarts.count_finished([self._spec.index])
        (seed,) = seeds
        if seed is not None:
            self._spec = dataclasses.replace(self._spec, seed=seed)
        return self._attempt("reset", lambda: EnvRunner.reset(self, seeds, options, positions))

    def step(self) -> Infos:
        """Take one step with the actions in the rows."""
        self.restarts.keep_observations([self._spec.index])
        return self._attempt("step", lambda: EnvRunner.step(self))

    def _attempt(self, command: str, act: Callable[[], Infos]) -> Infos:
        """Run ``act``. If it fails, replace the environment and start a new episode."""
        self._phase = command
        while True:
            try:
                return exits_raise(act)()
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
        self.sources.append(RESTART)  # source of the reported info
        return infos

    def _context(self) -> FailureContext:
        index, is_new = self._spec.index, self._phase == "build"
        return FailureContext("vector.Serial", index, self._phase, "", (self._spec,), self._last_actions(), is_new)

    def _last_actions(self) -> Array | None:
        return self.restarts.last_actions(self._spec.index) if self._phase == "step" else None

    def _describe_failure(self, error: Exception) -> PufferError:
        index, seed = self._spec.index, self._spec.seed
        place = envs_text(None, index, [seed], self._last_actions())
        return error_of(Failed.of(self._phase, 0, error), place, None, "vector.Serial")
