"""Gymnasium's vector interface for vector environments, for its wrappers and for other training loops."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode as GymnasiumAutoresetMode
from gymnasium.vector.utils import batch_space

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos, Seeds, env_seeds
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.mixed_actions import actions_of
from pufferlib.frameworks.rows import (
    check_rows,
    columns_of,
    frames_of,
    observations_of,
    resets_some,
    row_of,
    rows_per_game,
    whole_envs,
)
from pufferlib.vector._copies import copied
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.vector.vector_env import VectorEnv

__all__ = ["GymnasiumVectorEnv", "to_gymnasium"]

VectorInfos = dict[str, Any]


def to_gymnasium(vecenv: AnyVectorEnv, *, copy: bool = True) -> "GymnasiumVectorEnv":
    """Wrap a vector environment in a ``gymnasium.vector.VectorEnv`` with one row for each agent.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with any backend. The result owns it.
        copy: Whether to copy observations, rewards and terminations, as Gymnasium does by default. If False, the next
            step overwrites them.

    Raises:
        APIUsageError: Batches hold only some of the agents, an environment has several agents that come and go
            (PettingZoo), or observations have a space without a fixed shape (Text, Sequence, Graph, OneOf).
    """
    return GymnasiumVectorEnv(vecenv, copy=copy)


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Gymnasium vector environment around a vector environment, created by ``to_gymnasium``.

    Observations of a Dict or Tuple space are dicts or tuples of arrays. They share memory with the batch unless they
    are copied. Actions have the flat space of the batch, except that a Dict or Tuple of integers and floats is batched
    as by Gymnasium. If an environment has several rows, its infos are in the first one. With autoreset "same_step",
    ``infos["final_obs"]`` and ``infos["final_info"]`` hold the last observations and infos of ended episodes.

    Attributes:
        vecenv: Wrapped vector environment.
        autoreset_mode: Autoreset mode, a member of ``gymnasium.vector.AutoresetMode``, as in ``metadata``.
    """

    def __init__(self, vecenv: AnyVectorEnv, *, copy: bool = True) -> None:
        check_rows("to_gymnasium", vecenv)
        self.vecenv: Any = vecenv
        self._copies = copy
        self.num_envs = int(vecenv.num_agents)
        self._has_backend = isinstance(vecenv, VectorEnv)
        # The smallest unit that can be reset alone: an environment of a backend, a game of a native environment,
        # or all rows.
        self._resets_some = resets_some(vecenv)
        self._rows_per_env = rows_per_game(vecenv) if self._resets_some else self.num_envs
        self.single_observation_space, self._restore = observations_of("to_gymnasium", vecenv)
        self.single_action_space, self._flatten = actions_of("to_gymnasium", vecenv)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        driver = vecenv.driver_env
        self.render_mode = getattr(driver, "render_mode", None)
        self._same_step = vecenv.autoreset == AutoresetMode.SAME_STEP
        # SyncVectorEnv has it too, and TorchRL's GymWrapper reads it.
        self.autoreset_mode = _MODES[AutoresetMode(vecenv.autoreset)]
        self.metadata = {**(getattr(driver, "metadata", None) or {}), "autoreset_mode": self.autoreset_mode}
        self._needs_reset = np.zeros(self.num_envs, bool) if vecenv.autoreset == AutoresetMode.DISABLED else None
        self._seeds = [-1] * (self.num_envs // self._rows_per_env)  # of the games of a native environment

    def reset(self, *, seed: Seeds = None, options: dict[str, Any] | None = None) -> tuple[Any, VectorInfos]:
        """Start new episodes in all rows, or in the rows of ``options["reset_mask"]``, bool ``(num_envs,)``.

        Args:
            seed: Base seed, from which each environment gets its own seed, or a list with one for each environment.
            options: Options for the environments, and optionally the mask.

        Raises:
            APIUsageError: The options are not a dict, or the mask or seed does not fit.
        """
        if not isinstance(options, dict | None):
            raise APIUsageError(
                f"to_gymnasium: options must be one dict for all environments, got {options!r:.80}; to give each its "
                "own, reset with a reset_mask for each"
            )
        options = dict(options) if options else {}
        mask = options.pop("reset_mask", None)
        given: dict[str, Any] = {"options": options} if options else {}
        chosen = None if mask is None else self._environments(mask)
        if chosen is not None and not chosen.all():
            given["env_ids"] = chosen
            if isinstance(seed, list | tuple):
                if len(seed) != len(chosen):
                    raise APIUsageError(
                        f"to_gymnasium: a list of seeds must have one for each of the {len(chosen)} environments, also "
                        f"with a reset_mask, got {len(seed)}: {seed!r:.80}"
                    )
                seed = [seed[env_id] for env_id in np.flatnonzero(chosen)]
        if not self._has_backend:
            self._check_native(given, seed)
            self._keep_seeds(seed, chosen)
        observations, infos = self.vecenv.reset(seed, **given)
        if self._needs_reset is not None:
            self._needs_reset[slice(None) if mask is None else mask] = False
        return self._prepare_observations(observations), self._infos(infos) if infos else {}

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], VectorInfos]:
        """Take one step in every row. Rewards are float32. Infos are a dict of arrays and masks, as in Gymnasium.

        Raises:
            APIUsageError: The actions are wrong, or with autoreset "disabled" an ended episode was not reset.
        """
        if self._needs_reset is not None and self._needs_reset.any():
            rows = np.flatnonzero(self._needs_reset)[:8].tolist()
            raise APIUsageError(
                "to_gymnasium: with autoreset disabled, episodes that ended must be reset before a step, got rows "
                f"{rows}; "
                'call reset(options={"reset_mask": terminations | truncations})'
            )
        if self._flatten is not None:
            actions = self._flatten(actions)
        observations, rewards, terminals, truncations, infos = self.vecenv.step(actions)
        found: VectorInfos = self._infos(infos) if infos else {}
        if self._needs_reset is not None:
            np.logical_or(terminals, truncations, out=self._needs_reset)
        elif self._same_step and (np.count_nonzero(terminals) or np.count_nonzero(truncations)):  # any() is slower
            self._add_final_observations(found, np.flatnonzero(terminals | truncations))
        if self._copies:
            return self._prepare_observations(observations), rewards.copy(), terminals.copy(), truncations.copy(), found
        return self._prepare_observations(observations), rewards, terminals, truncations, found

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment. Without arguments, an attribute that is not callable is returned.

        A native environment is called once, and ``name`` must be a method.
        """
        return tuple(self.vecenv.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every environment."""
        return tuple(self.vecenv.get_attr(name))

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment. A list or tuple must hold one value for each environment.

        A native environment is one object, so a list or tuple must hold one value.
        """
        self.vecenv.set_attr(name, values)

    def render(self) -> tuple[Any, ...] | None:
        """Return a frame of each row, or None without a ``render_mode``."""
        return None if self.render_mode is None else tuple(frames_of(self.vecenv))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seeds of the environments' generators. A native environment has one per game, or -1 if it is unknown."""
        return self.get_attr("np_random_seed") if self._has_backend else tuple(self._seeds)

    @property  # type: ignore[misc]  # Gymnasium's property returns a single generator, and has a setter
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Copies of the environments' generators. With backend Serial, the generators themselves.

        Raises:
            APIUsageError: The vector environment is native and has no numpy generators.
        """
        if not self._has_backend:
            raise APIUsageError(
                "to_gymnasium: np_random must be a generator of numpy, which native environments do not have; call "
                "reset(seed=...) to seed them"
            )
        return self.get_attr("np_random")

    def close_extras(self, **_: Any) -> None:
        """Close the wrapped vector environment."""
        self.vecenv.close()

    def _prepare_observations(self, observations: Array) -> Any:
        if self._copies:
            observations = observations.copy()
        return observations if self._restore is None else self._restore(observations)

    def _check_native(self, given: dict[str, Any], seed: Seeds) -> None:
        if "options" in given:
            raise APIUsageError(
                f"to_gymnasium: a native environment has keywords instead of options, got options={given['options']}; "
                "give env_kwargs, or choose backend=Serial if its reset takes options"
            )
        if not self._resets_some and (given or not isinstance(seed, int | np.integer | None)):
            raise APIUsageError(
                f"to_gymnasium: {type(self.vecenv).__name__} resets all its agents at once, by one seed, got "
                f"seed={seed!r:.40}, reset_mask={given.get('env_ids')!r:.40}; let its reset take env_ids, or choose "
                "backend=Serial"
            )

    def _keep_seeds(self, seed: Seeds, chosen: npt.NDArray[np.bool_] | None) -> None:
        if seed is None:
            return
        env_ids = range(len(self._seeds)) if chosen is None else np.flatnonzero(chosen).tolist()
        for env_id, each in zip(env_ids, env_seeds("to_gymnasium", seed, env_ids), strict=True):
            self._seeds[env_id] = -1 if each is None else each

    def _environments(self, mask: Any) -> npt.NDArray[np.bool_]:
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise APIUsageError(
                f"to_gymnasium: reset_mask must be an array of {self.num_envs} bools of which one is True, "
                f"got {mask!r:.80}"
            )
        return whole_envs("to_gymnasium", "reset_mask", mask, self._rows_per_env)

    def _infos(self, infos: Infos) -> VectorInfos:
        """Group infos by key, with each value in the row of its environment."""
        sources = self.vecenv.info_sources if self._has_backend else [(0, "step")] * len(infos)
        infos = infos if self._has_backend else copied(infos)
        found: list[tuple[int, VectorInfos]] = []
        ends = self._ended_rows() if self._same_step else set()
        is_of_row = (self._rows_per_env if self._has_backend else self.num_envs) == 1
        for info, (env_id, kind) in zip(infos, sources, strict=True):
            row = env_id * self._rows_per_env
            is_final = kind == "step" and is_of_row and row in ends
            found.append((row, {"final_info": info} if is_final else info))
        return columns_of(self.num_envs, found)

    def _ended_rows(self) -> set[int]:
        return set(np.flatnonzero(self.vecenv.terminals | self.vecenv.truncations).tolist())

    def _add_final_observations(self, found: VectorInfos, rows: npt.NDArray[np.intp]) -> None:
        last = self.vecenv.final_observations[rows]
        shown = last if self._restore is None else self._restore(last)
        mask = np.zeros(self.num_envs, bool)
        mask[rows] = True
        array = np.full(self.num_envs, None, object)
        for place, row in enumerate(rows):
            array[row] = row_of(shown, place)
        found["final_obs"], found["_final_obs"] = array, mask
        found.setdefault("final_info", {})
        found["_final_info"] = mask.copy()


_MODES = {
    AutoresetMode.NEXT_STEP: GymnasiumAutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP: GymnasiumAutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED: GymnasiumAutoresetMode.DISABLED,
}
