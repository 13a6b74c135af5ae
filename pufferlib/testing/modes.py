"""Comparison of the first end of an episode in all autoreset modes."""

from typing import Any

import numpy as np

from pufferlib.testing.contract import broken
from pufferlib.testing.play import FINAL, Shown

__all__ = ["FirstEnd", "check_first_ends"]


class FirstEnd:
    """Copies of what a play showed in the first step in which an episode ended.

    Args:
        shown: Outcome of that step.

    Attributes:
        index: Number of the step.
        ended: Agents whose episode ended, bool ``(num_agents,)``.
        truncated: Agents whose episode was truncated, bool ``(num_agents,)``.
        observations: Observations, ``(num_agents, *shape)``.
        final_observations: Last observations as the environment left them, ``(num_agents, *shape)``.
    """

    def __init__(self, shown: Shown) -> None:
        self.index, self.ended = shown.index, shown.ended
        self.truncated = shown.arrays["truncations"].copy()
        self.observations, self.final_observations = shown.arrays["observations"].copy(), shown.arrays[FINAL].copy()


def check_first_ends(env: Any, ends: dict[str, FirstEnd]) -> None:
    """Compare the first end in each mode with that of "disabled", which shows the last observation.

    Args:
        env: The environment, for messages.
        ends: First end by mode.

    Raises:
        ContractError: An episode ends in another step, or the last observation is another one.
    """
    last = ends.pop("disabled", None)
    if last is None or not last.ended.all():  # agents that end alone may change what the others see
        return
    for mode, end in ends.items():
        if end.index != last.index or not np.array_equal(end.ended, last.ended):
            raise broken(
                env,
                "autoreset",
                f"an episode must end in the same step in every mode, got the first end in step {end.index} with "
                f"autoreset {mode!r} and in step {last.index} with 'disabled'",
                "let the mode decide only what follows an end",
            )
        name, rows = ("observations", end.ended) if mode == "next_step" else (FINAL, end.truncated)
        if getattr(end, name)[rows].tobytes() != last.observations[rows].tobytes():
            raise broken(
                env,
                "autoreset",
                f"with autoreset {mode!r} {name} must have the last observation of an episode in the step in which it "
                f"ends, got another one in step {end.index}",
                "show the first observation of the next episode in the step after the end"
                if mode == "next_step"
                else f"before the next episode begins: self.{FINAL}[rows] = self.observations[rows]",
            )
