"""Comparison of the first end of an episode in all autoreset modes."""

from typing import Any

import numpy as np

from pufferlib.env import AutoresetMode
from pufferlib.testing.contract import broken
from pufferlib.testing.play import FINAL, Shown

__all__ = ["FirstEnd", "check_first_ends"]


class FirstEnd:
    """Copies of the arrays in the first step in which an episode ended.

    Args:
        shown: Outcome of that step.

    Attributes:
        index: Number of the step.
        ended: Agents whose episode ended, bool ``(num_agents,)``.
        truncated: Agents whose episode was truncated, bool ``(num_agents,)``.
        observations: Observations, shape ``(num_agents, *shape)``.
        final_observations: Final observations, shape ``(num_agents, *shape)``.
    """

    def __init__(self, shown: Shown) -> None:
        self.index, self.ended = shown.index, shown.ended
        self.truncated = shown.arrays["truncations"].copy()
        self.observations, self.final_observations = shown.arrays["observations"].copy(), shown.arrays[FINAL].copy()


def check_first_ends(env: Any, ends: dict[str, FirstEnd]) -> None:
    """Compare the first end in each mode with the first end in mode "disabled", which keeps the last observation.

    Args:
        env: Environment, for error messages.
        ends: First end by mode.

    Raises:
        ContractError: The step or the last observation differs.
    """
    last = ends.pop(AutoresetMode.DISABLED, None)
    if last is None or not last.ended.all():  # an agent that ends alone may change the observations of the others
        return
    for mode, end in ends.items():
        if end.index != last.index or not np.array_equal(end.ended, last.ended):
            raise broken(
                env,
                "autoreset",
                f"an episode must end in the same step in every mode, got the first end in step {end.index} with "
                f"autoreset {mode!r} and in step {last.index} with 'disabled'",
                "let the mode affect only the steps after an end",
            )
        name, rows = ("observations", end.ended) if mode == AutoresetMode.NEXT_STEP else (FINAL, end.truncated)
        if getattr(end, name)[rows].tobytes() != last.observations[rows].tobytes():
            raise broken(
                env,
                "autoreset",
                f"with autoreset {mode!r} {name} must have the last observation of an episode in its last step, "
                f"got another one in step {end.index}",
                "show the first observation of the next episode in the step after the end"
                if mode == AutoresetMode.NEXT_STEP
                else f"before the next episode starts, set self.{FINAL}[rows] = self.observations[rows]",
            )
