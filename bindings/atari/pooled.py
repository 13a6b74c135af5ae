"""One Atari game with EnvPool's rules, for ``pufferlib.envpool``."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from .._shared.options import check_counts, check_switches
from .game import AtariGame

__all__ = ["OPTIONS", "PooledGame"]

Pixels = npt.NDArray[np.uint8]
Info = dict[str, Any]

#: Options that ``AtariGame`` does not have.
OPTIONS = frozenset({"max_steps", "zero_discount_on_life_loss"})


class PooledGame(AtariGame):
    """An Atari game whose starts, ends and rewards follow EnvPool.

    A game starts with 1 to ``noop_max`` frames without an action, the last of which presses FIRE with ``fire_reset``. A
    new life starts the same way. The infos of every step and reset are ``lives``, ``reward`` (in points),
    ``terminated`` (1 if the game itself is over) and ``ram`` (the console's 128 bytes, in the same array every time).
    With ``zero_discount_on_life_loss`` there is also ``discount``.

    Args:
        game: Name of the game, as for ``AtariGame``.
        max_steps: Length of a game, over all of its lives, at which it is truncated, or 0 for no limit.
        episodic_life: Whether a lost life ends the episode. The next episode continues the game, unless no life is
            left.
        reward_clip: Whether rewards are replaced by their sign.
        zero_discount_on_life_loss: Whether the discount is 0 when a life is lost or an episode ends, and otherwise 1.
        **options: Options of ``AtariGame``, except ``max_frames``.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
    """

    def __init__(
        self,
        game: str,
        *,
        max_steps: int = 27_000,
        episodic_life: bool = False,
        reward_clip: bool = False,
        zero_discount_on_life_loss: bool = False,
        **options: Any,
    ) -> None:
        where = f"atari/{game}"
        check_counts(where, 0, max_steps=max_steps)
        check_switches(where, zero_discount_on_life_loss=zero_discount_on_life_loss)
        super().__init__(game, **{"max_frames": 2**31 - 1, **options})
        self._max_steps, self._episodic_life, self._reward_clip = max_steps, episodic_life, reward_clip
        self._gives_discount = zero_discount_on_life_loss
        self._never_sticks = (False,) * self._frame_skip
        self._ram = np.zeros(self._ale.getRAMSize(), np.uint8)
        self._steps = self._lives = 0
        self._only_life_lost = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, Info]:
        """Start a game, or the next life if the last step ended the episode by losing a life."""
        gymnasium.Env.reset(self, seed=seed)
        is_new = seed is not None or not self._only_life_lost
        if seed is not None:
            self._ale.restoreState(self._power_on)
        if is_new:
            self._restart()
        idle, fire = self._actions_of_start()
        for _ in range(idle):
            self._ale.act(self._actions[0])
            if self._ale.game_over():
                self._restart()
                is_new = True
        if fire:
            self._ale.act(self._actions[self.start_action])
        self._only_life_lost = False
        self._lives = self.lives
        if is_new:
            self._show_start()
        else:
            self._show_next()
        return self._observation, self._infos(0.0, False, 1.0)

    def _actions_of_start(self) -> tuple[int, bool]:
        """Return a random number of frames without an action, and whether FIRE follows them."""
        frames = 1 + int(self.np_random.integers(self._noop_max)) if self._noop_max else int(self._fire_reset)
        return frames - int(self._fire_reset), self._fire_reset

    def _restart(self) -> None:
        self._ale.reset_game()
        self._last_action = self._actions[0]
        self._steps = 0

    def step(self, action: np.int64) -> tuple[Pixels, float, bool, bool, Info]:
        """Run ``frame_skip`` frames. The next step overwrites the observation."""
        sticks: Any = self._never_sticks
        if self._repeat_action_probability:
            sticks = (self.np_random.random(self._frame_skip) < self._repeat_action_probability).tolist()
        points = float(self._play(self._actions[action], sticks))
        self._steps += 1
        lives, before, is_over = self.lives, self._lives, self._ale.game_over()
        truncated = self._steps == self._max_steps
        self._only_life_lost = self._episodic_life and 0 < lives < before and not is_over and not truncated
        self._lives = lives
        terminated = is_over or (self._episodic_life and 0 < lives < before)
        discount = float(lives == before and not terminated and not truncated)
        reward = float(np.sign(points)) if self._reward_clip else points
        return self._observation, reward, terminated, truncated, self._infos(points, is_over, discount)

    def _infos(self, points: float, is_over: bool, discount: float) -> Info:
        self._ale.getRAM(self._ram)
        infos = {"lives": self._lives, "reward": points, "terminated": is_over, "ram": self._ram}
        return {**infos, "discount": discount} if self._gives_discount else infos

    def save_state(self) -> dict[str, Any]:
        """Return the state of the game as plain data, without ``np_random``. Restore it with ``load_state``."""
        return {**super().save_state(), "episode": [self._steps, self._lives, self._only_life_lost]}

    def load_state(self, state: Any) -> None:
        """Restore a state from ``save_state``, of this game or another one with the same options."""
        super().load_state(state)
        self._steps, self._lives, self._only_life_lost = state["episode"]
