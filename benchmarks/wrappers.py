"""Wrappers of whole batches beside Gymnasium's vector wrappers: how much longer a step of 1,024 CartPoles gets.

    python benchmarks/wrappers.py                   # a minute and a half
    python benchmarks/wrappers.py --only Normalize  # some rows
    python benchmarks/wrappers.py --quick           # to see that it works

Theirs wrap `to_gymnasium` of the environment that ours wrap. They are measured in turns, in a process of their own;
figures are medians over the rounds, ratios those of one round. Also writes benchmarks/results/wrappers.json.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import OURS, Row
from sides import Side, serve, us_per_call
from turns import Measure, parser, run

AGENTS, GYMNASIUM = 1024, "Gymnasium"
ROWS = {
    "NormalizeObservation": 2.0,
    "NormalizeReward": 2.0,
    "ClipReward": None,
    "EpisodeStatistics": 1.0,
    "FrameStack": None,
    "all three": 2.0,
}


def _ours(name: str, env: Any) -> Any:
    from pufferlib.vector import wrappers

    if name == "all three":
        env = wrappers.EpisodeStatistics(env, infos=True)
        return wrappers.NormalizeReward(wrappers.NormalizeObservation(env))
    made: dict[str, Callable[[Any], Any]] = {
        "ClipReward": lambda env: wrappers.ClipReward(env, -1, 1),
        "EpisodeStatistics": lambda env: wrappers.EpisodeStatistics(env, infos=True),  # as theirs
        "FrameStack": lambda env: wrappers.FrameStack(env, 4),
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
    """Microseconds that a wrapper adds to a step."""
    import pufferlib
    from pufferlib.vector import to_gymnasium

    actions = [pufferlib.make("cartpole", num_envs=AGENTS).action_space.sample() for _ in range(64)]
    numbers = iter(range(1 << 60))

    def us(wrap: Callable[[str, Any], Any]) -> float:
        env = pufferlib.make("cartpole", num_envs=AGENTS, seed=1, autoreset="next_step", log_interval=1 << 20)
        envs = wrap(name, env if side == OURS else to_gymnasium(env, copy=False))
        envs.reset(seed=1)
        figure = us_per_call(lambda: envs.step(actions[next(numbers) % 64]), seconds / 3)
        envs.close()
        return figure

    bare = [us(lambda _, env: env)]
    whole = us(_ours if side == OURS else _theirs)
    bare.append(us(lambda _, env: env))
    return max(0.01, whole - min(bare))


def rows(side: Side, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Each row, with what measures its contestants."""
    for name, ratio in ROWS.items():
        sides = [OURS] if name == "FrameStack" else [OURS, GYMNASIUM]
        row = Row(f"{name} adds to a step of {AGENTS:,} agents", "us", ratios={GYMNASIUM: ratio} if ratio else {})
        yield row, {each: functools.partial(side.ask, "adds", each, name, seconds) for each in sides}


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    command = parser(__doc__, "wrappers", minutes=1.5, rounds=5)
    command.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = command.parse_args()
    if options.serve:
        return serve({"adds": step_adds})
    rounds, seconds = (2, 0.1) if options.quick else (options.rounds, 1.5)
    side = Side(sys.executable, __file__)
    return run(options, rounds, rows(side, seconds), side)


if __name__ == "__main__":
    main()
