"""The backend with worker processes, which share the arrays of the batch with the caller."""

import numpy as np

from pufferlib.buffers import Array, allocate, slice_rows
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.vector.base import Batch, VectorEnv
from pufferlib.vector.messages import STEP
from pufferlib.vector.plan import VectorPlan
from pufferlib.vector.pool import WorkerPool

__all__ = ["Multiprocessing"]


class Multiprocessing(VectorEnv):
    """Environments in worker processes, several in each, behind shared memory.

    A batch is whole workers. With ``zero_copy=True`` batches are neighbouring rows and come in
    order, so that the same actions give the same data in every run; nothing is copied. With
    ``zero_copy=False`` a batch is whoever is first; its rows are copied together, unless one worker
    makes a whole batch.

    ``driver_env`` describes the environments; they live in the workers only.
    """

    def __init__(self, plan: VectorPlan) -> None:
        self._pool = WorkerPool(plan)
        self._open(plan, self._pool.description, self._pool.description)
        num_workers = plan.num_workers
        self._workers_per_batch = plan.batch_size * num_workers // self.num_envs
        self._takes_turns = plan.zero_copy
        self._in_flight = list(range(num_workers))  # working or finished, the longest-waiting first
        self._taken: list[int] = []  # the workers of the last batch

        buffers, rows = self._pool.memory.buffers, self.agents_per_batch
        self._rows_per_worker = self.num_agents // num_workers
        self._worker_rows = [
            slice_rows(buffers, w * self._rows_per_worker, (w + 1) * self._rows_per_worker) for w in range(num_workers)
        ]
        # A batch that starts with worker w, if its workers are neighbours.
        self._blocks = {
            w: Batch.block(buffers, w * self._rows_per_worker, w * self._rows_per_worker + rows)
            for w in range(0, num_workers - self._workers_per_batch + 1, self._workers_per_batch)
        }
        self._copies = self._workers_per_batch > 1 and not self._takes_turns and self._workers_per_batch < num_workers
        if self._copies:
            self._copy = allocate(self.single_observation_space, self.single_action_space, rows)

    def _reset(self, seeds: list[int | None]) -> None:
        pool = self._pool
        if self._in_flight:
            pool.wait(lambda: all(map(pool.finished, self._in_flight)), self._in_flight)
        for worker in self._in_flight:
            pool.infos(worker)  # of work that nobody will ask for
        pool.reset(seeds)
        self._in_flight = list(range(len(self._worker_rows)))

    def _send(self, actions: Array) -> None:
        each = self._rows_per_worker
        if self._copies:
            self._copy["actions"][...] = actions
        for position, worker in enumerate(self._taken):
            self._worker_rows[worker]["actions"][...] = actions[position * each : (position + 1) * each]
            self._pool.command(worker, STEP)
        self._in_flight += self._taken

    def _recv(self) -> tuple[Batch, Infos]:
        taken = self._take_turn() if self._takes_turns else self._take_first()
        infos = [info for worker in taken for info in self._pool.infos(worker)]
        # Only now: after a Ctrl-C before this recv can be called again, and at most infos are lost.
        self._taken = taken
        self._in_flight = [worker for worker in self._in_flight if worker not in taken]
        return (self._gather() if self._copies else self._blocks[self._taken[0]]), infos

    def _take_turn(self) -> list[int]:
        """The workers of the next block, all finished."""
        taken = self._in_flight[: self._workers_per_batch]
        self._pool.wait(lambda: all(map(self._pool.finished, taken)), taken)
        return taken

    def _take_first(self) -> list[int]:
        """As many workers as a batch needs, whoever has finished; the longest-waiting first."""
        taken: list[int] = []

        def enough() -> bool:
            taken[:] = filter(self._pool.finished, self._in_flight)
            return len(taken) >= self._workers_per_batch

        self._pool.wait(enough, self._in_flight)
        return sorted(taken[: self._workers_per_batch])

    def _gather(self) -> Batch:
        """Copy the rows of the taken workers together."""
        parts = [self._worker_rows[worker] for worker in self._taken]
        for name, copy in self._copy.items():
            np.concatenate([rows[name] for rows in parts], out=copy)
        first_ids = np.array(self._taken)[:, None] * self._rows_per_worker
        return Batch(self._copy, (first_ids + np.arange(self._rows_per_worker)).ravel())

    def _check_open(self, where: str) -> None:
        super()._check_open(where)
        if self._pool.is_closed:
            raise APIUsageError(f"{where}: the workers were ended by an earlier error; make new environments")

    def _close(self) -> None:
        errors = self._pool.close()
        if errors:
            raise errors[0]
