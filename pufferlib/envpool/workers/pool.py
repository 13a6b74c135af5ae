"""Pool of environments in worker processes, which step each environment when its command arrives."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.envpool.pool import Ids, PoolBatch, PoolSpec
from pufferlib.envpool.workers._gather import BatchGather, scatter
from pufferlib.envpool.workers.arrays import ActionReader, FinalInfo, final_info_arrays, masked_arrays, unflatten
from pufferlib.envpool.workers.options import INFO, PLAYER_FLAGS, PoolDescription, WorkerOptions
from pufferlib.envpool.workers.processes import PoolWorkers
from pufferlib.errors import APIUsageError
from pufferlib.machine.signals import uninterrupted
from pufferlib.vector.calls import Raised
from pufferlib.vector.failures import WorkerFailed
from pufferlib.vector.multiprocessing.workers import abandon_in_forks
from pufferlib.vector.specs import RESET, STEP, VectorSpec

__all__ = ["WorkerPool", "describe_env"]

WHERE = "envpool"


class WorkerPool:
    """Environments in worker processes, each with a queue of commands. It implements ``pufferlib.envpool.pool.Pool``.

    A batch also contains infos without an array in ``spec.info_spaces``, if an environment reported any. The array has
    the name of the info. The mask of the environments that reported it has the same name after "_".

    Args:
        vector_spec: Environments and number of processes.
        options: Worker options.
        spec: Spec of the pool.
        copies: Whether the arrays of a batch are new.
        channels_first: Whether image observations are transposed to ``(channels, height, width)``.

    Attributes:
        spec: Spec of the pool.
        num_envs: Number of environments.
        batch_size: Number of environments per batch. If it equals ``num_envs``, a batch contains all that were sent.

    Raises:
        WorkerError: An environment failed while it was created.
        APIUsageError: The environment cannot be used in a pool.
    """

    def __init__(
        self,
        vector_spec: VectorSpec,
        options: WorkerOptions,
        spec: PoolSpec,
        copies: bool,
        channels_first: bool = False,
    ) -> None:
        self.spec, self.num_envs, self.batch_size = spec, len(vector_spec.envs), vector_spec.batch_size
        self._sending, self._receiving = threading.Lock(), threading.Lock()
        self._workers = workers = _start_workers(vector_spec, options)
        self._state = "open"  # from here on, ``__del__`` closes the workers
        abandon_in_forks(self)
        assert isinstance(workers.description, PoolDescription)
        self.description = workers.description
        self._queues = workers.channel
        self._agents, self._channels_first = spec.num_players, channels_first
        self._is_sync = self.batch_size == self.num_envs
        self._all = np.arange(self.num_envs, dtype=np.int32)
        self._reader = ActionReader(WHERE, self.description.single_action_space, self.batch_size * self._agents)
        workers.seeds[:] = [env.seed for env in vector_spec.envs]
        self._must_reset = np.ones(self.num_envs, bool) if options.autoreset == "disabled" else None
        # Infos without an array and the last infos of an episode that ended, by environment.
        self._messages: dict[int, tuple[dict[str, Any], FinalInfo | None]] = {}
        self._sources = self._shared_rows(options)
        self._gather = BatchGather(list(self._sources.values()), self.num_envs, copies)

    def _shared_rows(self, options: WorkerOptions) -> dict[str, Array]:
        """Return the shared arrays that batches are gathered from, with a row for each environment or agent."""
        buffers, more = self._workers.buffers, self._workers.more
        arrays = {name: buffers[name] for name in ("observations", "rewards")}
        arrays |= {name: more[name] for name in ("terminated", "truncated", "elapsed_step")}
        if options.autoreset == "same_step":
            arrays["final_observations"] = buffers["final_observations"]
        for name in self.spec.info_spaces:
            arrays[INFO + name] = buffers[PLAYER_FLAGS[name]] if name in PLAYER_FLAGS else more[INFO + name]
        return arrays

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers. Empty after they have stopped."""
        return self._workers.pids

    @property
    def num_in_flight(self) -> int:
        """Number of environments in flight."""
        return self._queues.num_in_flight

    def reset(self, env_ids: Ids | None = None, seeds: Sequence[int | None] | None = None) -> None:
        """Start a new episode in these environments.

        Args:
            env_ids: Ids of the environments, or None for all.
            seeds: Seed of each of them. None keeps the state of the random generator.

        Raises:
            APIUsageError: The ids or the number of seeds are wrong.
        """
        with self._locked("reset", self._sending):
            ids = self._checked_ids("reset", env_ids)
            if seeds is not None:
                if len(seeds) != len(ids):
                    raise APIUsageError(f"{WHERE}.reset: expected {len(ids)} seeds, one for each, got {len(seeds)}")
                for env, seed in zip(ids.tolist(), seeds, strict=True):
                    self._workers.seeds[env] = -1 if seed is None else seed % 2**32
            self._workers.record_seeds(ids)
            self._queues.send(ids, RESET)
            if self._must_reset is not None:
                self._must_reset[ids] = False

    def reset_with(self, seeds: Sequence[int]) -> None:
        """Start a new episode in all environments, each with a seed."""
        self.reset(None, seeds)

    def send(self, actions: Array, env_ids: Ids | None = None) -> None:
        """Send actions to these environments.

        Args:
            actions: Array ``(len(env_ids) * num_players, *action_shape)``.
            env_ids: Ids of the environments, or None for all.

        Raises:
            APIUsageError: The actions or the ids are wrong, or an environment must be reset first.
        """
        self._acquire("send", self._sending)
        try:
            ids = self._checked_ids("send", env_ids)
            if self._must_reset is not None and self._must_reset[ids].any():
                raise APIUsageError(
                    f"{WHERE}.send: environments must be reset before their first action and after an episode, since "
                    f"autoreset is 'disabled', got env_id {ids[self._must_reset[ids]][:8].tolist()}; reset them"
                )
            rows = self._reader.read(actions, len(ids) * self._agents)
            scatter(rows, self._workers.buffers["actions"], self.num_envs, ids)
            self._queues.send(ids, STEP)
        finally:
            self._sending.release()

    def _checked_ids(self, what: str, env_ids: Ids | None) -> Ids:
        """Return ``env_ids`` as an array, after checking that each environment can take a command now."""
        ids = self._all if env_ids is None else self._ids(what, env_ids)
        bad = self._queues.find_bad(ids)
        if bad is not None:
            place, reason = bad
            texts = {
                "range": f"must be from 0 to {self.num_envs - 1}",
                "twice": "must name each environment once",
                "in flight": "must name environments that are not in flight; call recv first",
            }
            got = ids[place] if env_ids is None else np.asarray(env_ids)[place]
            raise APIUsageError(f"{WHERE}.{what}: env_id {texts[reason]}, got {got} at place {place}")
        return ids

    def _ids(self, what: str, env_ids: Any) -> Ids:
        try:
            ids = np.asarray(env_ids)
        except ValueError:
            ids = np.array(None)
        if ids.dtype.kind not in "iu" or ids.ndim != 1 or not len(ids):
            raise APIUsageError(
                f"{WHERE}.{what}: env_id must be one or more ints from 0 to {self.num_envs - 1}, got {env_ids!r:.80}"
            )
        if ids.dtype != np.int32:
            ids = np.maximum(np.minimum(ids, self.num_envs).astype(np.int64), -1).astype(np.int32)
        return np.ascontiguousarray(ids)

    def recv(self) -> PoolBatch:
        """Wait for a batch.

        Raises:
            WorkerError: An environment failed, or its process exited.
            APIUsageError: Fewer environments are in flight than a batch needs.
        """
        self._acquire("recv", self._receiving)
        try:
            in_flight = self._queues.num_in_flight
            needed = in_flight if self._is_sync else self.batch_size
            if not needed or in_flight < needed:
                raise APIUsageError(
                    f"{WHERE}.recv: a batch needs {needed or 1} environments in flight, got {in_flight}: it would wait "
                    "for ever; call send or reset first"
                )
            self._wait_for(needed)
            batch = self._batch(self._queues.take(needed, self._is_sync))
            if self._must_reset is not None:
                self._must_reset[batch.env_id] = batch.terminated | batch.truncated
            return batch
        finally:
            self._receiving.release()

    def _wait_for(self, needed: int) -> None:
        """Wait until ``needed`` environments are ready."""
        self._collect()
        while (more := needed - self._queues.num_ready) > 0:
            self._wait(more)
        # Those that another thread sent meanwhile may be ready before the first ones, which a synchronous pool returns.
        while self._is_sync and not self._queues.has_first(needed):
            self._wait(1)

    def _wait(self, more: int) -> None:
        """Wait until ``more`` commands are finished or the workers must be checked, then collect results."""
        if not self._queues.wait(more):
            with uninterrupted(), self._close_on_failure():
                for failure in self._workers.find_failures():
                    raise failure
        self._collect()

    def _collect(self) -> None:
        for worker, env in self._queues.collect():
            with uninterrupted(), self._close_on_failure():  # an interrupt would leave messages unread
                self._messages[env] = self._workers.read_infos(worker)

    @contextmanager
    def _close_on_failure(self) -> Iterator[None]:
        """Stop all workers if one has failed, and raise its error."""
        try:
            yield
        except WorkerFailed as failure:
            self._state = "failed"
            self._workers.close(waits=False)
            raise self._workers.error_with_bundles(failure) from None

    def _batch(self, ids: Ids) -> PoolBatch:
        rows = dict(zip(self._sources, self._gather.gather(ids), strict=True))
        infos = {name: rows[INFO + name] for name in self.spec.info_spaces}
        ended: dict[int, FinalInfo] = {}
        if self._messages:
            given = {place: self._messages.pop(env) for place, env in enumerate(ids.tolist()) if env in self._messages}
            infos |= masked_arrays(len(ids), {place: other for place, (other, _) in given.items()})
            ended = {place: last for place, (_, last) in given.items() if last is not None}
        final = rows.get("final_observations")
        return PoolBatch(
            env_id=ids,
            player_env_id=ids if self._agents == 1 else np.repeat(ids, self._agents),
            observations=self._observations(rows["observations"]),
            rewards=rows["rewards"],
            terminated=rows["terminated"],
            truncated=rows["truncated"],
            elapsed_step=rows["elapsed_step"],
            infos=infos,
            final_observations=None if final is None else self._observations(final),
            final_infos=None if final is None else final_info_arrays(len(ids), ended),
        )

    def _observations(self, rows: Array) -> Any:
        if self._channels_first:
            return rows.transpose(0, 3, 1, 2)
        return unflatten(rows, self.spec.observation_space, self.description.row_dtype)

    def observations(self) -> Any:
        """Return the last observations of all environments. None may be in flight."""
        with self._locked("reset", self._sending, self._receiving):
            return self._observations(self._sources["observations"].copy())

    def render(self, env_ids: Ids, camera_id: int = -1) -> npt.NDArray[np.uint8]:
        """Render environments in their workers. Waits for those in flight.

        Args:
            env_ids: Ids of the environments, each once.
            camera_id: Camera, or -1 for the default camera.

        Returns:
            Frames, uint8 ``(len(env_ids), height, width, 3)``.

        Raises:
            APIUsageError: There is no such environment, or it cannot render.
        """
        with self._locked("render", self._receiving):  # another thread may send meanwhile
            ids = self._ids("render", env_ids)
            wrong = [env for env in ids.tolist() if not 0 <= env < self.num_envs]
            if wrong:
                raise APIUsageError(f"{WHERE}.render: env_id must be from 0 to {self.num_envs - 1}, got {wrong[0]}")
            self._collect()
            while not all(self._queues.is_ready(env) for env in ids.tolist()):
                self._wait(1)
            frames = self._frames(ids, camera_id)
            return np.stack([frames[env] for env in ids.tolist()])

    def _frames(self, ids: Ids, camera_id: int) -> Mapping[int, npt.NDArray[np.uint8]]:
        """Return the frame of each environment, by id."""
        firsts = self._workers.first_envs
        requested: dict[int, list[int]] = {}
        for env in dict.fromkeys(ids.tolist()):
            requested.setdefault(self._queues.worker_of(env), []).append(env)
        frames: dict[int, Any] = {}
        with uninterrupted(), self._close_on_failure():
            for worker, envs in requested.items():
                self._workers.start_rendering(worker, [env - int(firsts[worker]) for env in envs], int(camera_id))
        while any(self._queues.is_called(worker) for worker in requested):
            self._wait(1)
        with uninterrupted(), self._close_on_failure():
            for worker, envs in requested.items():
                self._workers.read_reply(worker)
                frames |= zip(envs, self._workers.take_infos(worker)[0], strict=True)
        for env, frame in frames.items():
            if isinstance(frame, Raised):
                raise frame.error(f"{WHERE}.render", env)
        return frames

    def close(self) -> None:
        """Close the environments and stop their processes. A second call does nothing.

        Raises:
            WorkerError: An environment failed to close. If several failed, the first error is raised.
        """
        if self._state == "open":
            self._state = "closed"
            errors = self._workers.close()
            if errors:
                raise errors[0]
        self._state = "closed"

    def __del__(self) -> None:
        if getattr(self, "_state", "") == "open":
            self._workers.close(waits=False)

    def _abandon(self) -> None:
        """Leave the workers alone after a fork, because they belong to the parent process."""
        self._workers.abandon()
        self._state = "forked"

    @contextmanager
    def _locked(self, what: str, *locks: threading.Lock) -> Iterator[None]:
        """Hold several locks during a call."""
        with ExitStack() as taken:
            for lock in locks:
                self._acquire(what, lock)
                taken.callback(lock.release)
            yield

    def _acquire(self, what: str, lock: threading.Lock) -> None:
        """Acquire a lock of an open pool. One thread at a time may send, and one may receive.

        Raises:
            APIUsageError: Another thread holds the lock, or the pool is not open.
        """
        if not lock.acquire(blocking=False):
            raise APIUsageError(
                f"{WHERE}.{what}: a pool must be used by one thread at a time, or one that sends and one that "
                "receives, got a call while another is at it; give each thread a pool, or let them take turns"
            )
        if self._state != "open":
            lock.release()
            raise APIUsageError(f"{WHERE}.{what}: {_NOT_OPEN[self._state]}; make a new one")


def describe_env(vector_spec: VectorSpec, options: WorkerOptions) -> PoolDescription:
    """Create one environment of ``vector_spec``, close it and return its description.

    Raises:
        WorkerError: The environment failed.
        APIUsageError: The environment cannot be used in a pool.
    """
    workers = _start_workers(vector_spec, options)
    workers.close()
    assert isinstance(workers.description, PoolDescription)
    return workers.description


def _start_workers(vector_spec: VectorSpec, options: WorkerOptions) -> PoolWorkers:
    workers = PoolWorkers(vector_spec, options)
    try:
        workers.build()
    except BaseException as error:
        workers.close(waits=isinstance(error, Exception))  # do not wait after Ctrl-C
        if isinstance(error, WorkerFailed):
            raise workers.error_with_bundles(error) from None
        raise
    return workers


_NOT_OPEN = {
    "closed": "the pool is closed",
    "failed": "the pool was closed, because an environment failed",
    "forked": "the pool belongs to the process that this one was forked from",
}
