"""Check that observations change during an episode."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.testing.contract import broken
from pufferlib.testing.play import Shown

__all__ = ["Changes"]

MIN_STEPS = 20  # steps within episodes after which constant observations are an error


class Changes:
    """Check that at least one observation differs from the previous one in the same episode.

    Tasks without observations pass: a space with only one value, episodes of one step, or a placeholder, which is a
    single number that stays at a bound of a space within 0 and 1.

    Args:
        env: Environment to check.
    """

    def __init__(self, env: Any) -> None:
        space: Box = env.single_observation_space
        self._env = env
        self._may_be_placeholder = space.low.size == 1 and space.low.min() >= 0 and space.high.max() <= 1
        self._is_active = not (space.low == space.high).all()
        self._count = 0

    def look(self, before: dict[str, Array], shown: Shown) -> None:
        """Compare one step with the step ``before`` it."""
        if not self._is_active or shown.is_reset or not before:
            return
        rows = before["masks"] & shown.arrays["masks"] & ~shown.ended
        if "terminals" in before:
            rows &= ~(before["terminals"] | before["truncations"])
        if rows.any():
            self._count += 1
            old, new = before["observations"][rows], shown.arrays["observations"][rows]
            self._is_active = old.tobytes() == new.tobytes()
            self._may_be_placeholder = self._may_be_placeholder and bool(np.isin(new, (0, 1)).all())

    def finish(self) -> None:
        """Raise if no observation changed.

        Raises:
            ContractError: At least ``MIN_STEPS`` steps were compared, and no observation changed.
        """
        if self._is_active and self._count >= MIN_STEPS and not self._may_be_placeholder:
            raise broken(
                self._env,
                "observations",
                "observations must change during an episode, "
                f"got the same ones in each of {self._count} steps within episodes",
                "write the observation in step, or declare the only value as both bounds of the space",
            )
