"""Base class of both interfaces: settings, sending, rendering and closing."""

import threading
import time
from collections.abc import Mapping, Sequence, Sized
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pufferlib.actions import action_array
from pufferlib.buffers import Array
from pufferlib.envpool.config import backend_config, checked_int, checked_seed, pool_seeds
from pufferlib.envpool.pool import Ids, Pool, PoolBatch, SeedPool, StepPool
from pufferlib.envpool.spec import TaskSpec
from pufferlib.envpool.wrappers import PixelPool, StackPool, check_can_render, render_scaled
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.render.view import View

__all__ = ["KEYS", "PoolEnv", "make_pool", "read_dict"]


SENDER_TIMEOUT_S = 60.0  # time that a thread waits for another thread to send
POLL_S = 50e-6
WINDOW_ALTERNATIVE = "take render_mode='rgb_array' for pictures"  # suggested if a window cannot be opened
KEYS = ("action", "env_id", "players", "players.env_id")


def make_pool(spec: TaskSpec, seeds: Sequence[int]) -> Pool:
    """Create the pool of a task, with the wrappers for images and stacked observations if its settings ask for them.

    Args:
        spec: Task and its settings.
        seeds: Seed of each environment.
    """
    config = backend_config(spec.as_dict(), seeds)
    pool = spec.task.backend.make(config, spec.backend_spec)
    if config["from_pixels"]:
        pool = PixelPool(pool, spec.frame_spec, config["render_camera_id"])
    return StackPool(pool, spec.pool_spec, config["frame_stack"]) if config["frame_stack"] > 1 else pool


class PoolEnv:
    """Environments of a pool with the methods that all interfaces share.

    Attributes:
        spec: Task and its settings.
        pool: Pool that runs the environments. ``reset`` with a seed may replace it.
        render_mode: None, "rgb_array" or "human".

    Args:
        spec: Task and its settings.
        pool: Pool from ``make_pool``. The environment closes it.
    """

    def __init__(self, spec: TaskSpec, pool: Pool) -> None:
        self.pool, self.spec = pool, spec
        self._settings = spec.as_dict()
        self._where = f"{type(self).__name__}({spec.id!r})"
        self.render_mode: str | None = self._settings["render_mode"]
        self._view: View | None = None
        self._sender: int | None = None  # last thread that sent actions
        self._users: set[int] = set()  # threads that reset or sent
        self._seeds, self._is_closed = pool_seeds(self._settings), False
        self._set_pool(pool)

    def __len__(self) -> int:
        return self.pool.num_envs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec.summary})"

    def __reduce__(self) -> NoReturn:
        raise APIUsageError(
            f"{self._where}: it must stay in the process that made it, got a call to copy or pickle it; make another "
            "with the same keywords, or save what you need of it, as env.config"
        )

    @property
    def config(self) -> dict[str, Any]:
        """All keyword arguments of ``make``, as a new dict."""
        return dict(self._settings)

    @property
    def all_env_ids(self) -> Ids:
        """Ids of all environments, int32."""
        return np.arange(self.pool.num_envs, dtype=np.int32)

    @property
    def is_async(self) -> bool:
        """True if a batch contains only part of the environments, those that finish first."""
        return self.pool.batch_size != self.pool.num_envs

    def async_reset(self, env_id: Any = None) -> None:
        """Start new episodes in all environments, or in those of ``env_id``. ``recv`` returns their first observations.

        Raises:
            APIUsageError: Ids are out of range or given twice, or some of them are in flight. Call ``recv`` first.
        """
        self._is_unused = False
        self._users.add(threading.get_ident())
        self.pool.reset(env_id)

    def send(self, action: Any, env_id: Any = None) -> None:
        """Send actions to environments. ``recv`` returns them when their steps are done.

        Args:
            action: Array or list ``(len(env_id), *action_shape)``, with one row per player if there are several. Or a
                dict with "action", "env_id" and, if the rows are in another order, "players.env_id".
            env_id: Ids of the environments, each once. None means all environments, or, if there are as many actions as
                a batch has environments, those of the last batch (the first ones before the first batch).

        Raises:
            APIUsageError: Ids are out of range, given twice or in flight, or actions have a wrong shape, dtype or
                value.
        """
        if not isinstance(action, np.ndarray) and isinstance(action, Mapping):
            action, env_id = read_dict(self._where, action, env_id, self.spec.pool_spec.num_players)
        if env_id is None:
            env_id = self._ids_of(action)
        self._is_unused = False
        if self._sender != threading.get_ident():
            self._sender = threading.get_ident()
            self._users.add(self._sender)
        self.pool.send(action, env_id)

    def render(self, env_ids: Any = None, camera_id: int | None = None) -> npt.NDArray[np.uint8] | None:
        """Render environments. Waits for those in flight.

        Args:
            env_ids: Int or sequence of ints. None means ``render_env_id``.
            camera_id: Camera. None means ``render_camera_id``.

        Returns:
            Frames, uint8 ``(len(env_ids), height, width, 3)``. None with render_mode "human", which shows a window.

        Raises:
            APIUsageError: The environment was made without a ``render_mode`` or cannot render, there is no such
                environment, or several were given for a window.
            BindingMissing: The window needs pygame.
            PufferError: The window needs a display.
            SystemExit: The user closed the window.
        """
        where = f"{self._where}.render"
        if self.render_mode is None:
            raise APIUsageError(
                f'{where}: render_mode must be "rgb_array" or "human", got None; give it to envpool.make'
            )
        check_can_render(where, self.pool.spec)
        ids = self._render_ids(where, env_ids)
        settings = self._settings
        camera = settings["render_camera_id"] if camera_id is None else checked_int(where, "camera_id", camera_id, -1)
        frames = render_scaled(self.pool, ids, camera, settings["render_height"], settings["render_width"])
        if self.render_mode == "rgb_array":
            return frames
        self._view = self._view or View(self.spec.id, "human", self.pool.spec.render_fps, WINDOW_ALTERNATIVE)
        self._view.show(frames[0])
        return None

    def _set_pool(self, pool: Pool) -> None:
        """Set the pool and reset what depends on it."""
        self.pool = pool
        self._step_pool = pool if isinstance(pool, StepPool) else None
        self._is_unused = self._step_pool is None  # a StepPool can be used without a call of this class
        self._needed = pool.batch_size if self.is_async else 1  # environments in flight that a batch needs
        self._last_ids: Ids = np.arange(pool.batch_size, dtype=np.int32)  # environments of the last batch

    def _close(self) -> None:
        self._is_closed = True
        if self._view is not None:
            self._view.close()
        self.pool.close()

    def _ids_of(self, actions: Any) -> Ids | None:
        """Return the environments of actions that were given without ids, or None for all."""
        pool, players = self.pool, self.spec.pool_spec.num_players
        is_array = isinstance(actions, Sized) and not isinstance(actions, Mapping)
        return self._last_ids if self.is_async and is_array and len(actions) == pool.batch_size * players else None

    def _wait_for_sender(self) -> None:
        """Wait until other threads have sent enough for a batch.

        Return at once if there are none, or if this thread has sent actions and no other one has reset or sent.
        """
        me, deadline = threading.get_ident(), time.monotonic() + SENDER_TIMEOUT_S
        while self.pool.num_in_flight < self._needed and time.monotonic() < deadline:
            is_alone = self._sender == me and len(self._users) == 1
            if is_alone or self._is_closed or threading.active_count() == 1:
                return
            time.sleep(POLL_S)

    def _recv(self) -> PoolBatch:
        if self.pool.num_in_flight < self._needed:
            self._wait_for_sender()
        batch = self.pool.recv()
        if self.is_async:
            self._last_ids = batch.env_id.copy()  # the pool may reuse this array
        return batch

    def _reset(self, env_id: Any, seed: Any) -> PoolBatch:
        """Start new episodes and wait for a batch."""
        pool = self.pool
        count = len(env_id) if isinstance(env_id, list | tuple) else np.size(env_id)
        if env_id is not None and self.is_async and pool.num_in_flight + count < pool.batch_size:
            raise APIUsageError(
                f"{self._where}.reset: a batch must have {pool.batch_size} environments, got {count} as env_id and "
                f"{pool.num_in_flight} in flight; call async_reset(env_id), and recv when enough are in flight"
            )
        if seed is None or not self._reseed(seed, env_id):
            self.pool.reset(env_id)
        self._is_unused = False
        return self._recv()

    def _reseed(self, seed: Any, env_id: Any) -> bool:
        """Reseed all environments as if created with ``seed``. Return whether this also reset them."""
        where = f"{self._where}.reset"
        if env_id is not None:
            raise APIUsageError(f"{where}: a seed is of all environments, got env_id {env_id!r:.40}; leave one out")
        if self._is_closed:
            raise APIUsageError(f"{where}: the environment must be open, got a closed one; make another")
        one, several = checked_seed(where, seed, self.pool.num_envs)
        seeds = pool_seeds({"num_envs": self.pool.num_envs, "seed": one, "env_seed": several})
        if seeds == self._seeds and self._is_unused:
            return False
        self._seeds = seeds
        if isinstance(self.pool, SeedPool) and not self.pool.num_in_flight:
            self.pool.reset_with(seeds)
            return True
        pool = make_pool(self.spec, seeds)
        self.pool.close()
        self._set_pool(pool)
        return False

    def _render_ids(self, where: str, env_ids: Any) -> Ids:
        if env_ids is None:
            return np.array([self._settings["render_env_id"]], np.int32)
        try:
            ids = np.atleast_1d(np.asarray(env_ids))
        except ValueError:  # ragged rows
            ids = np.array([None])
        if ids.ndim > 1 or ids.dtype.kind not in "iu" or not ids.size or ids.min() < 0 or ids.max() >= len(self):
            raise APIUsageError(
                f"{where}: env_ids must be an int from 0 to {len(self) - 1}, or a sequence of such, got {env_ids!r:.80}"
            )
        if self.render_mode == "human" and len(ids) != 1:
            raise APIUsageError(f"{where}: a window shows one environment, got env_ids {ids[:8].tolist()}; choose one")
        return ids.astype(np.int32)


def read_dict(where: str, action: Mapping[str, Any], env_id: Any, num_players: int) -> tuple[Any, Any]:
    """Return the actions and ids of ``{"action": ..., "env_id": ..., "players.env_id": ...}``. Ids may be None.

    Args:
        where: Name of the calling method, for error messages.
        action: Dict of actions. "players.env_id", or ``{"players": {"env_id": ...}}``, contains the environment of each
            row. Rows may have any order. The rows of one environment are its players in order.
        env_id: Ids given to the calling method.
        num_players: Number of rows per environment.

    Returns:
        Actions with the rows of each environment next to each other, in the order of the ids. Their values are not
        checked.

    Raises:
        UnknownNameError: There is another key.
        APIUsageError: The action is missing, ids are given twice, or the players do not match the environments.
    """
    for key in action:
        if key not in KEYS:
            raise UnknownNameError.of(where, "key of an action", key, KEYS)
    if "action" not in action:
        raise APIUsageError(f'{where}: a dict of actions must have the key "action", got {list(action)}')
    if "env_id" in action and env_id is not None:
        raise APIUsageError(f"{where}: env_id must be given once, got it as an argument and in the dict")
    players = action.get("players", {})
    if not isinstance(players, Mapping) or players.keys() - {"env_id"}:
        raise APIUsageError(f'{where}: "players" must be {{"env_id": array}}, got {players!r:.80}')
    ids = action.get("env_id", env_id)
    rows = action.get("players.env_id", players.get("env_id"))
    if rows is None:
        return action["action"], ids
    order, ids = _by_env(where, _ints(where, "players.env_id", rows), ids, num_players)
    values = action_array(where, action["action"])
    if values.ndim < 1 or len(values) != len(order):
        raise APIUsageError(
            f"{where}: actions must have a row for each of players.env_id, {len(order)}, got {values!r:.80}"
        )
    return values[order], ids


def _ints(where: str, name: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:  # ragged rows
        array = np.array(None)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
        raise APIUsageError(f"{where}: {name} must be a row of integers, got {values!r:.80}")
    return array


def _by_env(where: str, rows: Array, ids: Any, num_players: int) -> tuple[Array, Array]:
    """Return the row order that groups rows by environment, and the ids: ``ids``, or ids in order of appearance."""
    found, first, place, counts = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    if (counts != num_players).any():
        wrong = found[counts != num_players][:8].tolist()
        raise APIUsageError(
            f"{where}: players.env_id must name each environment {num_players} times, once for each of its players, "
            f"which is not so for {wrong}"
        )
    ids = found[np.argsort(first)] if ids is None else _ints(where, "env_id", ids)
    ranks = np.argsort(ids, kind="stable")
    if not np.array_equal(ids[ranks], found):
        raise APIUsageError(
            f"{where}: players.env_id must name the environments of env_id, {ids[:8].tolist()}, each once, got "
            f"{found[:8].tolist()}"
        )
    return np.argsort(ranks[place], kind="stable"), ids
