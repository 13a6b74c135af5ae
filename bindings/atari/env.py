"""Creation of Atari games: ``AtariGame`` with optional wrappers, or ``PooledGame`` with EnvPool's rules."""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformReward

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.wrappers import EpisodeStats

from .._shared.options import check_switches
from .game import AtariGame
from .pooled import OPTIONS, PooledGame

__all__ = ["EpisodicLife", "make_env"]

Pixels = npt.NDArray[np.uint8]
Env = gymnasium.Env[Pixels, np.int64]
Info = dict[str, Any]


def make_env(
    game: str, *, rules: str = "gymnasium", episodic_life: bool = False, reward_clip: bool = False, **options: Any
) -> Env:
    """Make ``AtariGame(game, **options)`` with the requested wrappers. Infos have the score of each whole game.

    With ``rules="envpool"``, make a ``PooledGame``, which has additional options. Its scores are those of its episodes,
    with its rewards, as in EnvPool.

    Raises:
        UnknownNameError: ``rules`` does not exist.
        APIUsageError: An option has the wrong type, is out of range, or does not belong to these rules.
    """
    where = f"atari/{game}"
    check_switches(where, episodic_life=episodic_life, reward_clip=reward_clip)
    if rules == "envpool":
        return EpisodeStats(PooledGame(game, episodic_life=episodic_life, reward_clip=reward_clip, **options))
    if rules != "gymnasium":
        raise UnknownNameError.of(where, "rules", rules, ("envpool", "gymnasium"))
    if others := sorted(options.keys() & OPTIONS):
        raise APIUsageError(f"{where}: rules={rules!r} has no option {others[0]}; use rules='envpool'")
    env: Env = EpisodeStats(AtariGame(game, **options))  # innermost, to record whole games and unclipped points
    if episodic_life:
        env = EpisodicLife(env)
    if reward_clip:
        env = TransformReward(env, _sign)
    return env


class EpisodicLife(gymnasium.Wrapper[Pixels, np.int64, Pixels, np.int64], RecordConstructorArgs):
    """Ends the episode when a life is lost. The next episode continues the same game."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        assert isinstance(env.unwrapped, AtariGame)
        self._game = env.unwrapped
        self._game_over = True
        self._lives = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Continue with the next life. Start a new game if no life is left, or if a seed is given."""
        info: Info = {}
        if seed is None and not self._game_over:
            observation, _, terminated, truncated, info = self.env.step(self._game.start_action)
            self._game_over = terminated or truncated
        if seed is not None or self._game_over:
            observation, _ = self.env.reset(seed=seed)
        self._game_over = False
        self._lives = self._game.lives
        return observation, info

    def step(self, action: np.int64) -> tuple[Pixels, SupportsFloat, bool, bool, Info]:
        """Run one step. It is terminal if it cost a life."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._game_over = terminated or truncated
        lives, self._lives = self._lives, self._game.lives
        return observation, reward, terminated or self._lives < lives, truncated, info


def _sign(reward: SupportsFloat) -> float:
    return float(np.sign(float(reward)))
