"""Cost of vector wrappers per step of 1,024 environments in C, compared with Gymnasium's vector wrappers.

    python benchmarks/wrappers.py                   # takes a minute and a half
    python benchmarks/wrappers.py --only Normalize  # some rows
    python benchmarks/wrappers.py --quick           # quick check

Gymnasium's wrappers wrap the same environment through `to_gymnasium`. The contestants are measured in turns and in a
separate process. Figures are medians over the rounds, and ratios compare figures of the same round. Also writes
benchmarks/results/wrappers.json.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import OURS, Row
from sides import Sides, us_per_call
from turns import Measure, main

AGENTS, GYMNASIUM = 1024, "Gymnasium"
OWN = ("FrameStack", "ClipObservation", "NoveltyReward")  # Gymnasium has no equivalent
ENVS = {"NoveltyReward": "squared"}  # it counts observations of integers. The others wrap CartPole
ROWS = {
    "NormalizeObservation": 2.0,
    "NormalizeReward": 2.0,
    "ClipReward": None,
    "EpisodeStatistics": 1.0,
    "FrameStack": None,
    "ClipObservation": None,
    "NoveltyReward": None,
    "all three": 2.0,
}


def _ours(name: str, env: Any) -> Any:
    from pufferlib.vector import wrappers

    if name == "all three":
        env = wrappers.EpisodeStatistics(env, infos=True)
        return wrappers.NormalizeReward(wrappers.NormalizeObservation(env))
    made: dict[str, Callable[[Any], Any]] = {
        "ClipReward": lambda env: wrappers.ClipReward(env, -1, 1),
        "EpisodeStatistics": lambda env: wrappers.EpisodeStatistics(env, infos=True),  # like Gymnasium's wrapper
        "FrameStack": lambda env: wrappers.FrameStack(env, 4),
        "ClipObservation": lambda env: wrappers.ClipObservation(env, -1, 1),
    }
    return made.get(name, getattr(wrappers, name))(env)


def _theirs(name: str, env: Any) -> Any:
    from gymnasium.wrappers import vector as wrappers

    if name == "all three":
        return wrappers.NormalizeReward(wrappers.NormalizeObservation(wrappers.RecordEpisodeStatistics(env)))
    made: dict[str, Callable[[Any], Any]] = {
        "NormalizeObservation": wrappers.NormalizeObservation,
        "NormalizeReward": wrappers.NormalizeReward,
        "ClipReward": lambda env: wrappers.ClipReward(env, -1, 1),
        "EpisodeStatistics": wrappers.RecordEpisodeStatistics,
    }
    return made[name](env)


def step_adds(side: str, name: str, seconds: float) -> float:
    """Return the time that a wrapper adds to a step in microseconds."""
    import pufferlib
    from pufferlib.vector import to_gymnasium

    task = ENVS.get(name, "cartpole")
    actions = [pufferlib.make(task, num_envs=AGENTS).action_space.sample() for _ in range(64)]
    numbers = iter(range(1 << 60))

    def us(wrap: Callable[[str, Any], Any]) -> float:
        env = pufferlib.make(task, num_envs=AGENTS, seed=1, autoreset="next_step", log_interval=1 << 20)
        envs = wrap(name, env if side == OURS else to_gymnasium(env, copy=False))
        envs.reset(seed=1)
        figure = us_per_call(lambda: envs.step(actions[next(numbers) % 64]), seconds / 3)
        envs.close()
        return figure

    bare = [us(lambda _, env: env)]
    whole = us(_ours if side == OURS else _theirs)
    bare.append(us(lambda _, env: env))
    return max(0.01, whole - min(bare))


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield every row with the measurements of its contestants."""
    for name, ratio in ROWS.items():
        row = Row(f"{name} adds to a step of {AGENTS:,} agents", "us", ratios={GYMNASIUM: ratio} if ratio else {})
        contestants = [OURS] if name in OWN else [OURS, GYMNASIUM]
        yield row, {each: sides.ask("step_adds", each, name, sides.seconds) for each in contestants}


if __name__ == "__main__":
    main(__doc__, __file__, rows, (step_adds,), minutes=1.5, rounds=5, seconds=1.5, quick=(2, 0.1))
