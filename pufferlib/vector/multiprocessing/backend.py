"""The backend with worker processes, which share the arrays of the batch with the caller."""

import os
import weakref

import numpy as np

from pufferlib.buffers import Array, allocate
from pufferlib.env import Infos
from pufferlib.vector.multiprocessing.process import forget_server
from pufferlib.vector.multiprocessing.workers import WorkerPool
from pufferlib.vector.protocol import STEP
from pufferlib.vector.specs import VectorSpec
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["Multiprocessing"]

_alive: "weakref.WeakSet[Multiprocessing]" = weakref.WeakSet()


class Multiprocessing(VectorEnv):
    """Environments in worker processes, several in each, behind shared memory.

    Takes what ``pufferlib.vector.make`` takes, but for ``backend``.

    A batch is whole workers. With ``zero_copy=True`` batches are neighbouring rows and come in
    order, so that the same actions give the same data in every run; nothing is copied. With
    ``zero_copy=False`` a batch is whoever is first; its rows are copied together, unless one worker
    makes a whole batch.

    ``driver_env`` describes the environments; they live in the workers only.
    """

    def _start(self, spec: VectorSpec) -> None:
        self._pool = WorkerPool(spec)
        self._channel = self._pool.channel
        self._open(spec, self._pool.description, self._pool.description)
        num_workers, rows = spec.num_workers, self.agents_per_batch
        self._workers_per_batch = spec.batch_size * num_workers // self.num_envs
        self._takes_turns = spec.zero_copy
        self._rows_per_worker = self.num_agents // num_workers
        # A batch that starts with worker w, if its workers are neighbours.
        buffers = self._pool.memory.buffers
        self._blocks = [
            Batch.block(buffers, w * self._rows_per_worker, w * self._rows_per_worker + rows)
            for w in range(num_workers - self._workers_per_batch + 1)
        ]
        self._copies = self._workers_per_batch > 1 and not self._takes_turns and self._workers_per_batch < num_workers
        if self._copies:
            self._copy = allocate(self.single_observation_space, self.single_action_space, rows)
            # The arrays of all rows and those of the copy, with one entry per worker.
            self._by_worker = {name: _by_worker(array, num_workers) for name, array in buffers.items()}
            self._parts = {name: _by_worker(array, self._workers_per_batch) for name, array in self._copy.items()}
        _notice_forks()
        _alive.add(self)

    def _reset(self, seeds: list[int | None]) -> None:
        self._next(len(self._channel.in_flight), False)  # nobody will ask what became of it
        self._pool.reset(seeds)

    def _send(self, actions: Array) -> None:
        self._pool.keep_observations()
        if self._copies:
            self._copy["actions"][...] = actions
            self._by_worker["actions"][self._channel.chosen] = self._parts["actions"]
        else:
            self._blocks[self._channel.first_chosen()].buffers["actions"][...] = actions
        self._channel.command_chosen(STEP)

    def _recv(self) -> tuple[Batch, Infos]:
        infos = self._next(self._workers_per_batch, self._takes_turns)
        return (self._gather() if self._copies else self._blocks[self._channel.first_chosen()]), infos

    def _next(self, needed: int, in_turn: bool) -> Infos:
        """Wait until ``needed`` workers are finished, and choose them; what they had to say."""
        try:
            infos: Infos | None = None
            while infos is None:
                while not self._channel.wait(needed, in_turn):
                    self._pool.check_workers()
                infos = self._pool.collect(self._channel.chosen) if self._channel.choose(needed) else []
            return infos
        except BaseException as error:
            if self._next_call == "close" and isinstance(error, Exception):  # a signal handler or thread closed us
                raise self._out_of_turn("recv") from None
            if self._pool.is_closed and self._next_call != "close":
                self._next_call = "make"
            raise

    def _gather(self) -> Batch:
        """Copy the rows of the chosen workers together."""
        chosen = np.array(self._channel.chosen)
        for name, parts in self._parts.items():
            self._by_worker[name].take(chosen, 0, parts, "clip")  # "raise" would copy twice
        first_ids = chosen[:, None] * self._rows_per_worker
        return Batch(self._copy, (first_ids + np.arange(self._rows_per_worker)).ravel())

    def _abandon(self) -> None:
        """This process is a copy of the one that the workers belong to."""
        self._pool.abandon()
        if self._next_call != "close":
            self._next_call = "leave"

    def _close(self) -> None:
        errors = self._pool.close()
        if errors:
            raise errors[0]


def _by_worker(array: Array, num_workers: int) -> Array:
    return array.reshape(num_workers, len(array) // num_workers, *array.shape[1:])


def _notice_forks() -> None:
    """Make sure that a copy of this process, made by ``os.fork``, leaves our workers alone."""
    global _notices_forks
    if not _notices_forks:
        os.register_at_fork(after_in_child=_after_fork)
        _notices_forks = True


_notices_forks = False


def _after_fork() -> None:
    for vecenv in _alive:
        vecenv._abandon()
    forget_server()
