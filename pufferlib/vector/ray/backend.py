"""The backend for many machines: environments in actors of a Ray cluster."""

import numpy as np

from pufferlib.buffers import Array, allocate
from pufferlib.env import Infos
from pufferlib.vector.arguments import Cores
from pufferlib.vector.ray.cluster import cluster_cpus
from pufferlib.vector.ray.workers import ActorPool
from pufferlib.vector.specs import VectorSpec
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["Ray"]


class Ray(VectorEnv):
    """Environments in actors of a Ray cluster, several in each, on one machine or many.

    Takes what ``pufferlib.vector.make`` takes, but for ``backend``.

    Each step ships one array of actions to an actor and one block of results back. Batches are what
    they are with ``Multiprocessing``: neighbouring rows in order with ``zero_copy=True``, so that the
    same actions give the same data in every run, or else whoever is first.

    ``driver_env`` describes the environments; they live in the actors only.

    Raises:
        BindingMissing: Ray is not installed.
    """

    _cores = Cores(cluster_cpus, "usable cores of the Ray cluster")

    def _start(self, spec: VectorSpec) -> None:
        self._pool = ActorPool(spec)
        self._open(spec, self._pool.description, self._pool.description)
        self._workers_per_batch = spec.batch_size * spec.num_workers // self.num_envs
        self._rows_per_worker = self.num_agents // spec.num_workers
        self._takes_turns = spec.zero_copy
        self._in_flight: list[int] = []  # workers that have a command, the longest-waiting first
        self._taken: list[int] = []  # the workers of the last batch
        self._copies = not self._takes_turns and 1 < self._workers_per_batch < spec.num_workers
        if self._copies:
            self._copy = allocate(self.single_observation_space, self.single_action_space, self.agents_per_batch)

    def _reset(self, seeds: list[int | None]) -> None:
        self._collect(self._in_flight, len(self._in_flight))  # nobody will ask what became of it
        self._pool.reset(seeds)
        self._in_flight = list(range(len(self._pool.rows)))

    def _send(self, actions: Array) -> None:
        if self._copies:
            self._copy["actions"][...] = actions
        for worker, part in zip(self._taken, np.split(actions, len(self._taken)), strict=True):
            self._pool.step(worker, part)
        self._in_flight += self._taken

    def _recv(self) -> tuple[Batch, Infos]:
        count = self._workers_per_batch
        taken, infos = self._collect(self._in_flight[:count] if self._takes_turns else self._in_flight, count)
        # Only now: after a Ctrl-C before this recv can be called again.
        self._taken = taken
        self._in_flight = [worker for worker in self._in_flight if worker not in taken]
        return self._gather() if self._copies else self._block(), infos

    def _collect(self, workers: list[int], count: int) -> tuple[list[int], Infos]:
        """Wait for ``count`` of ``workers``, and fetch what they did; which ones, and what they had to say."""
        try:
            taken = sorted(self._pool.wait(workers, count))
            return taken, [info for worker in taken for info in self._pool.fetch(worker)]
        except BaseException:
            if self._pool.is_closed:
                self._next_call = "make"
            raise

    def _block(self) -> Batch:
        """The rows of the taken workers, which are neighbours."""
        start = self._taken[0] * self._rows_per_worker
        return Batch.block(self._pool.buffers, start, start + self.agents_per_batch)

    def _gather(self) -> Batch:
        """Copy the rows of the taken workers together."""
        for name, copy in self._copy.items():
            np.concatenate([self._pool.rows[worker][name] for worker in self._taken], out=copy)
        first_ids = np.array(self._taken)[:, None] * self._rows_per_worker
        return Batch(self._copy, (first_ids + np.arange(self._rows_per_worker)).ravel())

    def _close(self) -> None:
        errors = self._pool.close()
        if errors:
            raise errors[0]
