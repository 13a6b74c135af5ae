"""Check that a reset within a step does not change the rewards and ends of that step."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.testing.contract import broken
from pufferlib.testing.play import MARKS, Shown, play

__all__ = ["check_own_resets"]

ENDS = ("terminals", "truncations")
Before = dict[str, Array]


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
