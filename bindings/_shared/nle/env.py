"""NLE environments with working seeds, correct termination and rendering."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict
from nle import nethack
from nle.env import NLE

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.render.text import draw_terminal

from ..options import check_render_mode
from .symbols import prefer_own_symbols

__all__ = ["Info", "Observation", "PatchedNLE", "check_keys", "patched"]

Info = dict[str, Any]
Observation = dict[str, npt.NDArray[Any]]

MAX_SEED = 1 << 62


@functools.cache
def patched(task: type[NLE], by: type["PatchedNLE"] | None = None) -> type["PatchedNLE"]:
    """Return the class ``task`` of nle, patched with ``PatchedNLE`` or with its subclass ``by``."""
    return type(task.__name__, (by or PatchedNLE, task), {})


class PatchedNLE(NLE):  # type: ignore[misc]  # nle has no types
    """NLE with Gymnasium's seeding, rendering and infos. ``patched`` inserts it before the class of a task."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}
    #: Observation keys used for rendering.
    screen = ("tty_chars", "tty_colors", "tty_cursor")
    observation_space: Dict
    last_observation: Sequence[npt.NDArray[Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        prefer_own_symbols(Path(self.nethack.dlpath))

    def show(self, keys: tuple[str, ...]) -> None:
        """Set the keys of observations."""
        self._original_observation_keys = keys
        self.observation_space = Dict({key: self.observation_space[key] for key in keys})

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start a game. The next step overwrites the arrays of the observation."""
        gymnasium.Env.reset(self, seed=seed)
        self.seed_game(*self.np_random.integers(MAX_SEED, size=2).tolist())
        observation, _ = super().reset()
        return observation, {}

    def seed_game(self, core: int, display: int) -> None:
        """Seed the two random streams of the next game: one for events, one for display only."""
        # Call the method of the class, because the Challenge disables it on its object. False turns off reseeding.
        nethack.Nethack.set_initial_seeds(self.nethack, core, display, False)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Press a key. The next step overwrites the arrays of the observation."""
        before = list(self.last_observation)
        for index in (self._blstats_index, self._internal_index):  # the only arrays that rewards compare
            before[index] = before[index].copy()
        observation, is_over = self.nethack.step(self.actions[action])
        if not self._allow_all_modes or observation[self._program_state_index][0] == 1:  # 1: the game is over
            observation, is_over = self._perform_known_steps(observation, is_over)
        self._steps += 1
        self.last_observation = observation
        status = self.StepStatus(is_over or self._is_episode_end(observation))
        terminated = status != self.StepStatus.RUNNING
        truncated = not terminated and self._check_abort(observation)
        outcome = self.StepStatus.ABORTED if truncated else status
        reward = float(self._reward_fn(before, action, observation, outcome))
        info = self._summary(before if is_over else observation, outcome) if terminated or truncated else {}
        return self._get_observation(observation), reward, terminated, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | str | None:
        """Return the terminal as uint8 ``(480, 960, 3)`` or as colored text, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        chars, colors, cursor = (self.last_observation[self._observation_keys.index(key)] for key in self.screen)
        if self.render_mode == "ansi":
            text: str = nethack.tty_render(chars, colors, cursor)
            return text
        return draw_terminal(chars, colors, tuple(cursor))

    def _summary(self, observation: Sequence[npt.NDArray[Any]], outcome: Any) -> Info:
        """Return the metrics of the game. After its end, they are from before the last step."""
        numbers = observation[self._blstats_index]
        goal = getattr(self.StepStatus, "TASK_SUCCESSFUL", None)
        return {
            **({} if goal is None else {"success": outcome == goal}),
            "points": int(numbers[nethack.NLE_BL_SCORE]),
            "depth": int(numbers[nethack.NLE_BL_DEPTH]),
            "level": int(numbers[nethack.NLE_BL_XP]),
            "turns": int(numbers[nethack.NLE_BL_TIME]),
            "ascended": self.nethack.how_done() == nethack.ASCENDED,
        }


def check_keys(where: str, keys: Sequence[str], known: Any, render_mode: str | None) -> tuple[str, ...]:
    """Return the observation keys as a tuple after checking them and ``render_mode``."""
    if isinstance(keys, str) or not keys or len(set(keys)) != len(keys):
        raise APIUsageError(f"{where}: observation_keys must be a list of different names, got {keys!r}")
    for key in keys:
        if key not in known:
            raise UnknownNameError.of(where, "observation key", key, known)
    check_render_mode(where, render_mode, "ansi")
    return tuple(keys)
