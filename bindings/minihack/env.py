"""MiniHack's worlds, with the same patches as the binding nethack, and more."""

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Dict

from pufferlib.errors import APIUsageError

from .._shared.nle.env import Info, Observation, PatchedNLE, check_keys, patched
from .._shared.options import check_counts, check_numbers

with warnings.catch_warnings():
    # minihack imports pkg_resources, which is deprecated and removed in setuptools 82.
    warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)
    import minihack  # noqa: F401 - registers its worlds

__all__ = ["make_env"]

DEFAULT_KEYS = ("glyphs", "blstats", "message")
NLE_KEYS = (
    *("glyphs", "chars", "colors", "specials", "blstats", "message", "inv_glyphs", "inv_strs", "inv_letters"),
    *("inv_oclasses", "screen_descriptions", "tty_chars", "tty_colors", "tty_cursor"),
)
CROPS = ("glyphs_crop", "chars_crop", "colors_crop", "specials_crop", "tty_chars_crop", "tty_colors_crop")
KEYS = (*NLE_KEYS, *CROPS, "pixel", "pixel_crop")


def make_env(
    name: str,
    *,
    observation_keys: Sequence[str] = DEFAULT_KEYS,
    crop: int = 9,
    max_episode_steps: int | None = None,
    reward_win: float = 1.0,
    reward_lose: float = 0.0,
    penalty_step: float = -0.01,
    seeds: Sequence[int] | None = None,
    render_mode: str | None = None,
) -> gymnasium.Env[Observation, np.int64]:
    """Make the world ``name``.

    Args:
        name: Official id.
        observation_keys: Keys of the observation, from nle and minihack.
        crop: Height and width of the cropped surroundings in squares, an odd number.
        max_episode_steps: Number of steps after which a game is truncated. None is the world's own.
        reward_win: Reward for reaching the goal, in worlds without their own rewards.
        reward_lose: Reward for dying or being truncated, in those worlds.
        penalty_step: Reward for each step in which no game time passes.
        seeds: Level seeds from which every game chooses at random. None allows any seed.
        render_mode: None, "rgb_array" (the terminal, uint8 ``(480, 960, 3)``) or "ansi".

    Raises:
        UnknownNameError: An observation key does not exist.
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"minihack/{name}"
    keys = check_keys(where, observation_keys, KEYS, render_mode)
    given: Info = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
    check_counts(where, crop=crop, **given)
    if crop % 2 == 0:
        raise APIUsageError(f"{where}: crop must be odd, so that the hero is in the middle, got {crop}; try {crop + 1}")
    rewards = {"reward_win": reward_win, "reward_lose": reward_lose, "penalty_step": penalty_step}
    check_numbers(where, **rewards)
    levels = _checked_seeds(where, seeds)
    spec = gymnasium.registry[name]
    task: Any = load_env_creator(str(spec.entry_point))
    world: Any = patched(task, PatchedMiniHack)
    options = {**spec.kwargs, **given, **rewards, "obs_crop_h": crop, "obs_crop_w": crop}
    with warnings.catch_warnings():
        # minihack uses outdated ids of MiniGrid worlds, and leaves a file open.
        warnings.filterwarnings("ignore", ".*The environment MiniGrid-.* is out of date", DeprecationWarning)
        warnings.filterwarnings("ignore", "unclosed file .*tiles.pkl", ResourceWarning)
        env = world(observation_keys=keys, render_mode=render_mode, fix_moon_phase=True, **options)
    env.show(keys)
    env.level_seeds = levels
    return env  # type: ignore[no-any-return]


class PatchedMiniHack(PatchedNLE):
    """Base class of all MiniHack levels."""

    level_seeds: tuple[int, ...] = ()

    def show(self, keys: tuple[str, ...]) -> None:
        """Set the keys of observations."""
        self._shown = keys
        self.observation_space = Dict({key: self.observation_space[key] for key in keys})

    def seed_game(self, core: int, display: int) -> None:
        """Seed the next game and, if MiniGrid generates the level, the level too."""
        if self.level_seeds:
            core = display = self.level_seeds[core % len(self.level_seeds)]
        super().seed_game(core, display)
        if hasattr(self, "minigrid_env"):
            self.minigrid_env.reset(seed=core % (1 << 31))

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Press a key. The next step overwrites some of the arrays of the observation."""
        if self.reward_manager is not None:  # the manager compares observations
            self._previous_obs = tuple(array.copy() for array in self.last_observation)
            self._previous_action = action
        return super().step(action)

    def _get_observation(self, observation: Any) -> Observation:
        """Return minihack's observation without the keys that were added for rendering."""
        seen = super()._get_observation(observation)
        return {key: seen[key] for key in self._shown}


def _checked_seeds(where: str, seeds: object) -> tuple[int, ...]:
    if seeds is None:
        return ()
    values = tuple(seeds) if isinstance(seeds, Sequence | np.ndarray) and not isinstance(seeds, str) else ()
    if not values or not all(isinstance(seed, int | np.integer) and seed >= 0 for seed in values):
        raise APIUsageError(f"{where}: seeds must be a list of ints >= 0, got {seeds!r}; use None for any seed")
    return tuple(map(int, values))
