"""Speed of the bindings, compared with bare environments and Gymnasium's vector classes.

    python benchmarks/bindings.py                            # all installed bindings
    python benchmarks/bindings.py --only crafter minigrid
    python benchmarks/bindings.py --quick --only minigrid    # quick check

To add a binding, add a line to ``GOALS``. If its package has its own environment class, also add it to ``BARE`` in
binding_contestants.py. The contestants are measured in turns and in separate processes. All figures are medians over
the rounds. Also writes benchmarks/results/bindings.json.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from binding_contestants import CASES
from report import ASYNC, BARE_LOOP, LIMIT, OURS, SERIAL, SYNC, Row
from sides import Sides, halved
from turns import Measure, main
from worlds import world_rows

ALL = "waiting for all"
WRAPPERS = "AtariPreprocessing and FrameStackObservation"


@dataclass(frozen=True)
class Goals:
    """Goals for one environment of a binding.

    Attributes:
        name: Name of the environment.
        adds: Maximum that emulation and Serial may add to a bare step, in percent.
        two_workers: Required speedup of two workers over bare environments in one process.
        envs: Number of environments. Larger if steps are so short that communication dominates.
        slow_reset: Whether resets are slow, so that batches of half of the environments must be faster than waiting for
            all. The goal ``two_workers`` then applies to these batches.
        reset_ms: Maximum time of a reset in milliseconds.
        preprocessing: Required cost of Gymnasium's equivalent wrappers, as a multiple of ours.
    """

    name: str
    adds: float | None = None
    two_workers: float | None = None
    envs: int = 8
    slow_reset: bool = False
    reset_ms: float | None = None
    preprocessing: float | None = None


GOALS = (
    Goals("minigrid/MiniGrid-DoorKey-8x8-v0", adds=2, two_workers=1.8, envs=64),
    Goals("crafter/CrafterReward-v1", adds=2, two_workers=1.8, slow_reset=True, reset_ms=150),
    Goals("atari/breakout", adds=2, two_workers=1.8, preprocessing=1.3),
    Goals("nethack/NetHackScore-v0", adds=6, two_workers=1.8, envs=64),
    Goals("classic/CartPole-v1", envs=64),
    Goals("box2d/LunarLander-v3", envs=64),
    Goals("mujoco/HalfCheetah-v5", envs=64),
)


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield every row with the measurements of its contestants."""
    for goals in GOALS:
        yield from env_rows(goals, sides)
    row = Row("procgen/bigfish: Serial adds to a step of a batch of 8", "%", 6)
    yield row, {OURS: sides.ask("added_to_batch", "procgen/bigfish", 8, 3 * sides.seconds)}
    yield from world_rows(sides)


def env_rows(goals: Goals, sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the rows of one environment."""
    name, seconds = goals.name, sides.seconds
    row = Row(f"{name}: emulation and Serial add to a step", "%", goals.adds)
    libraries = {OURS: "puffer", SYNC: "sync"}
    yield row, {side: sides.ask("added", library, name, 8, 3 * seconds) for side, library in libraries.items()}
    yield from step_rows(goals, sides)
    if goals.reset_ms is not None:
        yield reset_row(name, goals.reset_ms, sides)
    if goals.preprocessing is not None:
        row = Row(f"{name}: a step of one game, pictures prepared", "us", None, {WRAPPERS: goals.preprocessing})
        libraries = {OURS: "puffer", WRAPPERS: "gymnasium"}
        yield row, {side: sides.ask("preprocessed", library, name, seconds) for side, library in libraries.items()}


def step_rows(goals: Goals, sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the row of a step with two workers, and a row with batches of half if resets are slow."""
    name, envs, seconds = goals.name, goals.envs, sides.seconds
    ratios = {} if goals.two_workers is None else {BARE_LOOP: goals.two_workers}
    limit = "two processes, each with half of the bare ones"
    halves = sides.both("step", "bare", name, envs // 2, 0, envs // 2, seconds)
    contestants = {
        OURS: ("puffer", 2),
        BARE_LOOP: ("bare", 0),
        SERIAL: ("puffer", 0),
        SYNC: ("sync", 0),
        ASYNC: ("async", 0),
    }
    row = Row(f"{name}: a step, {envs} envs, 2 workers", "us", None, {} if goals.slow_reset else ratios, limit)
    calls = {
        side: sides.ask("step", library, name, envs, workers, envs, seconds)
        for side, (library, workers) in contestants.items()
    }
    yield row, {**calls, LIMIT: lambda: halved(halves())}
    if goals.slow_reset:
        long = 20 * seconds  # so that each measurement has about the same number of resets
        halves_long = sides.both("step", "bare", name, envs // 2, 0, envs // 2, long)
        row = Row(f"{name}: a step, 2 workers, batches of half", "us", None, {ALL: 1.0, **ratios}, limit)
        calls = {
            OURS: sides.ask("step", "puffer", name, envs, 2, envs // 2, long),
            ALL: sides.ask("step", "puffer", name, envs, 2, envs, long),
            BARE_LOOP: sides.ask("step", "bare", name, envs, 0, envs, long),
            ASYNC: sides.ask("step", "async", name, envs, 0, envs, long),
        }
        yield row, {**calls, LIMIT: lambda: halved(halves_long())}


def reset_row(name: str, most_ms: float, sides: Sides) -> tuple[Row, dict[str, Measure]]:
    """Return the row of a reset."""
    calls = {
        OURS: sides.ask("reset", "puffer", name, 3 * sides.seconds),
        "bare": sides.ask("reset", "bare", name, sides.seconds),
    }
    if name.startswith("crafter"):
        calls["bare, without numba"] = sides.ask("reset_without_numba", name)
    return Row(f"{name}: a reset", "ms", most_ms), calls


if __name__ == "__main__":  # some measurements take 20 times longer
    main(__doc__, __file__, rows, CASES, minutes=10, rounds=7, seconds=0.5, quick=(1, 0.03))
