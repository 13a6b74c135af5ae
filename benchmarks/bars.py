"""Seconds of training until a score is reached, with the settings that each library has for the environment.

    python benchmarks/bars.py --peer-python PATH    # and PufferLib 3.0.0; see requirements.txt

One run each, on the CPU, in the same process as long as it takes; the score is the mean of the episodes that end
during an update, with sampled actions. A contestant that is slower than four times ours is stopped, and four times ours
is its figure. Also writes benchmarks/results/bars.json.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import trainers
from report import OURS, PUFFER, Row
from sides import Sides
from turns import Measure, main

# The score that is asked of ours and of PufferLib's, whose cart is upright for 200 steps at most instead of 500.
BARS = {"breakout": (820.0, 820.0), "pong": (20.5, 20.5), "cartpole": (490.0, 196.0)}
LIMIT_S = 900.0
PATIENCE = 4  # times our seconds


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure | None]]]:
    """Yield a row for each environment, and how its contestants train."""
    for env, (ours, theirs) in BARS.items():
        row = Row(f"{env} to a score of {ours:g}", "s", ratios={PUFFER: 1.0})
        yield row, {OURS: sides.ask("ours_to_bar", env, ours, LIMIT_S), PUFFER: peer(sides, row, env, theirs)}


def peer(sides: Sides, row: Row, env: str, score: float) -> Measure | None:
    """Return a function that trains PufferLib's, for at most four times our seconds."""

    def measure() -> float | None:
        if OURS not in row.figures:
            return None
        limit_s = PATIENCE * row.figures[OURS][-1]
        call = sides.ask_peer("puffer_to_bar", env, score, limit_s)
        seconds = call() if call else None
        return limit_s if seconds is None else seconds

    return measure if sides.ask_peer("puffer_to_bar") else None


if __name__ == "__main__":
    main(__doc__, __file__, rows, trainers.CASES, minutes=10, rounds=1, seconds=0.0)
