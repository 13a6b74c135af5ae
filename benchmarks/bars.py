"""Training time until a score is reached, with each library's own settings for the environment.

    python benchmarks/bars.py --peer-python PATH    # also PufferLib 3.0.0; see requirements.txt

Each contestant trains once on the CPU. The score is the mean over the episodes that end during an update, with sampled
actions. A contestant is stopped after four times our time, and this limit is then its figure. Also writes
benchmarks/results/bars.json.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import trainers
from report import OURS, PUFFER, Row
from sides import Sides
from turns import Measure, main

# Required scores of our environment and of PufferLib's. Its CartPole has at most 200 steps instead of 500.
BARS = {"breakout": (820.0, 820.0), "pong": (20.5, 20.5), "cartpole": (490.0, 196.0)}
LIMIT_S = 900.0
PATIENCE = 4  # limit for the peer, as a multiple of our time


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure | None]]]:
    """Yield a row for each environment with the measurements of its contestants."""
    for env, (ours, theirs) in BARS.items():
        row = Row(f"{env} to a score of {ours:g}", "s", ratios={PUFFER: 1.0})
        yield row, {OURS: sides.ask("ours_to_bar", env, ours, LIMIT_S), PUFFER: peer(sides, row, env, theirs)}


def peer(sides: Sides, row: Row, env: str, score: float) -> Measure | None:
    """Return a function that trains with PufferLib for at most four times our time."""

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
