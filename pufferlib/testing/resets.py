"""Checks of resets within a step: the first end of an episode in all autoreset modes, and the step that ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode
from pufferlib.testing.contract import broken
from pufferlib.testing.play import FINAL, MARKS, Shown, play

__all__ = ["FirstEnd", "check_first_ends", "check_own_resets"]

ENDS = ("terminals", "truncations")
Before = dict[str, Array]


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


def check_own_resets(env: Any, seed: int, steps: int) -> None:
    """Play, and raise if a reset that the environment calls within a step overwrites its outcome or hides an end."""
    inner = env.env.unwrapped if env.emulated else env
    ended = False
    with _watch_resets(inner, env) as resets:
        if resets is None:
            return
        for shown in play(env, seed, steps, MARKS[0]):
            if not shown.is_reset and resets:
                if not env.emulated:
                    _check_kept(env, resets, shown)
                if not shown.ended.any() and not ended:
                    raise broken(
                        env,
                        "ends",
                        "the end of an episode must be set in terminals or truncations, "
                        f"got a reset without an end in step {shown.index}",
                        "set self.terminals or self.truncations in the last step of an episode"
                        if not env.emulated
                        else "return terminated or truncated, and leave the reset to the caller",
                    )
            ended = bool(shown.ended.any())
            resets.clear()
            if not env.emulated:  # clear the arrays, so that values written by the next step are visible
                for name in ("rewards", *ENDS):
                    shown.arrays[name][:] = 0


@contextmanager
def _watch_resets(inner: Any, env: Any) -> Iterator[list[Before] | None]:
    """Record rewards and ends before each call of ``inner.reset``. Yield None if calls cannot be observed."""
    calls: list[Before] = []
    reset = inner.reset

    def watched(*args: Any, **kwargs: Any) -> Any:
        calls.append({name: getattr(env, name).copy() for name in ("rewards", *ENDS)})
        return reset(*args, **kwargs)

    try:
        inner.reset = watched
    except AttributeError:  # written in C, or with __slots__
        yield None
        return
    try:
        yield calls
    finally:
        del inner.reset


def _check_kept(env: Any, resets: list[Before], shown: Shown) -> None:
    for before in resets:
        for name in ("rewards", *ENDS):
            wiped = (before[name] != 0) & (shown.arrays[name] == 0)
            if wiped.any():
                row = int(np.argmax(wiped))
                raise broken(
                    env,
                    "rewards" if name == "rewards" else "ends",
                    f"a reset within a step must not change {name}, got {shown.arrays[name][row]} instead of "
                    f"{before[name][row]} in row {row} in step {shown.index}",
                    f"do not write self.{name} in reset, or write it again after the reset",
                )
