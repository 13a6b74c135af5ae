"""Check that observations change while an episode goes on."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.testing.contract import broken
from pufferlib.testing.play import Shown

__all__ = ["Changes"]

MIN_STEPS = 20  # within episodes, before observations that never change are an error


class Changes:
    """Check of a play: some observation differs from the one before it in the same episode.

    Tasks without observations are accepted: a space with one value only, episodes of one step, or a placeholder, which
    is one number in a space from 0 to 1 that stays at a bound.

    Args:
        env: The environment that is played.
    """

    def __init__(self, env: Any) -> None:
        space: Box = env.single_observation_space
        self._env = env
        self._may_be_placeholder = space.low.size == 1 and space.low.min() >= 0 and space.high.max() <= 1
        self._looks = not (space.low == space.high).all()
        self._count = 0

    def look(self, before: dict[str, Array], shown: Shown) -> None:
        """Compare one step with the one ``before`` it."""
        if not self._looks or shown.is_reset or not before:
            return
        rows = before["masks"] & shown.arrays["masks"] & ~shown.ended
        if "terminals" in before:
            rows &= ~(before["terminals"] | before["truncations"])
        if rows.any():
            self._count += 1
            old, new = before["observations"][rows], shown.arrays["observations"][rows]
            self._looks = old.tobytes() == new.tobytes()
            self._may_be_placeholder = self._may_be_placeholder and bool(np.isin(new, (0, 1)).all())

    def finish(self) -> None:
        """Raise if no observation of the play changed.

        Raises:
            ContractError: ``MIN_STEPS`` steps or more were compared, and all observations stayed as they were.
        """
        if self._looks and self._count >= MIN_STEPS and not self._may_be_placeholder:
            raise broken(
                self._env,
                "observations",
                "observations must change while an episode goes on, "
                f"got the same ones in each of {self._count} steps within episodes",
                "write the observation in step, or declare the only value as both bounds of the space",
            )
