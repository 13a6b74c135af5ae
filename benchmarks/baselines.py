"""Training time until a score is reached on well-known tasks, in comparison with PPO of other libraries.

    python benchmarks/baselines.py                              # all tasks, with three seeds: hours
    python benchmarks/baselines.py --only CartPole LunarLander  # some tasks
    python benchmarks/baselines.py --rounds 1                   # one seed

Stable-Baselines3 trains with the tuned settings of rl-baselines3-zoo, the script in the style of CleanRL with the
settings that CleanRL publishes, and ours as `puffer train TASK`. All have the same environments, on the CPU. The score
is the mean of the last 20 episodes that ended during training, with sampled actions. In each round all contestants use
the same seed. A contestant is stopped after ten times our time, and this limit is then its figure. Also writes
benchmarks/results/baselines.json.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import baseline_contestants
from report import CLEANRL, OURS, SB3, Row
from sides import Sides
from turns import Measure, main

# Task, score, limit for ours in seconds, and minimum times of Stable-Baselines3 as multiples of ours.
BARS = (
    ("classic/CartPole-v1", 475.0, 120.0, 5.0),
    ("box2d/LunarLander-v3", 200.0, 900.0, 5.0),
    ("mujoco/HalfCheetah-v5", 1500.0, 1200.0, 5.0),
    ("mujoco/Hopper-v5", 1500.0, 1200.0, None),
    ("minigrid/MiniGrid-DoorKey-5x5-v0", 0.9, 600.0, None),
    ("atari/pong", -15.0, 1800.0, 2.0),  # from -21; a short budget
)
PATIENCE = 10  # limit for the peers, as a multiple of our time


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure | None]]]:
    """Yield a row for each task with the measurements of its contestants."""
    for task, score, limit_s, times in BARS:
        row = Row(f"{task} to a score of {score:g}", "s", ratios={SB3: times} if times else {})
        ask = functools.partial(seeded, sides, task, score)
        yield (
            row,
            {
                OURS: ask("ours_to_score", lambda limit_s=limit_s: limit_s, None),
                SB3: ask("sb3_to_score", *(functools.partial(patience, row),) * 2),
                CLEANRL: ask("cleanrl_to_score", *(functools.partial(patience, row),) * 2),
            },
        )


def seeded(
    sides: Sides,
    task: str,
    score: float,
    case: str,
    limit: Callable[[], float | None],
    otherwise: Callable[[], float | None] | None,
) -> Measure:
    """Return a function that trains with seed 1, then with seed 2, and so on.

    Args:
        sides: Processes of the benchmark.
        task: Name of the task.
        score: Score to reach.
        case: Contestant.
        limit: Function that returns the time limit in seconds, or None to leave the contestant out.
        otherwise: Function that returns the figure if the score is not reached. None leaves the contestant out.
    """
    seeds = itertools.count(1)

    def measure() -> float | None:
        seed, limit_s = next(seeds), limit()
        if limit_s is None:
            return None
        seconds: float | None = sides.ask(case, task, score, limit_s, seed)()
        return otherwise() if seconds is None and otherwise else seconds

    return measure


def patience(row: Row) -> float | None:
    """Return the limit for a peer, or None if ours has no figure."""
    return PATIENCE * row.figures[OURS][-1] if OURS in row.figures else None


if __name__ == "__main__":
    main(__doc__, __file__, rows, baseline_contestants.CASES, minutes=240, rounds=3, seconds=0.0, quick=(1, 0.0))
