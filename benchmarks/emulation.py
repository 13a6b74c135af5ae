"""What emulation adds to a step of a Python environment.

    python benchmarks/emulation.py [--repeats 15] [--steps 2000]

Each space is measured twice, in turns: the environment alone (it returns the same finished sample
every time, so a step is hardly more than the call), and the same environment inside
``GymnasiumPufferEnv``. The median of the differences is what emulation costs. Prints a table and
writes ``benchmarks/results/emulation.json``.
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from pufferlib.emulation import GymnasiumPufferEnv

RESULTS = Path(__file__).parent / "results" / "emulation.json"

SPACES: dict[str, gymnasium.Space[Any]] = {
    "Box (4,) float32": Box(-1, 1, (4,)),
    "Box (84, 84) uint8": Box(0, 255, (84, 84), np.uint8),
    "Dict of 5 small leaves": Dict(
        {
            "position": Box(-1, 1, (3,)),
            "velocity": Box(-1, 1, (3,)),
            "weapon": Discrete(5),
            "items": MultiDiscrete([4, 4, 4, 4]),
            "health": Box(0, 100, (1,), np.uint8),
        }
    ),
    "Dict of 10 leaves, like NetHack": Dict(
        {
            "glyphs": Box(0, 5976, (21, 79), np.int16),
            "chars": Box(0, 255, (21, 79), np.uint8),
            "colors": Box(0, 15, (21, 79), np.uint8),
            "specials": Box(0, 255, (21, 79), np.uint8),
            "blstats": Box(-(2**31), 2**31, (27,), np.int64),
            "message": Box(0, 255, (256,), np.uint8),
            "inv_glyphs": Box(0, 5976, (55,), np.int16),
            "inv_letters": Box(0, 127, (55,), np.uint8),
            "inv_strs": Box(0, 255, (55, 80), np.uint8),
            "misc": Box(0, 1, (3,), np.int32),
        }
    ),
}


class Still(gymnasium.Env[Any, Any]):
    """Returns one sample of its space for ever."""

    action_space = Discrete(4)

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.observation_space = space
        self._sample = space.sample()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The sample."""
        return self._sample, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The sample again."""
        return self._sample, 1.0, False, False, {}


def time_per_step_ns(env: gymnasium.Env[Any, Any], steps: int) -> float:
    """CPU time of this thread per step, in nanoseconds: time given to other processes does not count."""
    step = env.step
    start = time.thread_time_ns()
    for _ in range(steps):
        step(2)
    return (time.thread_time_ns() - start) / steps


def measure(space: gymnasium.Space[Any], repeats: int, steps: int) -> dict[str, float]:
    """Medians over ``repeats`` turns, in nanoseconds per step."""
    raw, emulated = Still(space), GymnasiumPufferEnv(Still(space))
    emulated.reset()
    turns = [(time_per_step_ns(raw, steps), time_per_step_ns(emulated, steps)) for _ in range(repeats)]
    added = [after - before for before, after in turns]
    return {
        "bytes": emulated.observations.nbytes,
        "raw_ns": statistics.median(before for before, _ in turns),
        "emulated_ns": statistics.median(after for _, after in turns),
        "added_ns": statistics.median(added),
        "added_min_ns": min(added),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--steps", type=int, default=2000, help="of each turn")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    results = {name: measure(space, args.repeats, args.steps) for name, space in SPACES.items()}
    print(f"{'observation':34}{'bytes':>8}{'raw ns':>9}{'emulated ns':>13}{'added ns':>10}{'least':>8}")
    for name, row in results.items():
        figures = f"{row['raw_ns']:9.0f}{row['emulated_ns']:13.0f}{row['added_ns']:10.0f}{row['added_min_ns']:8.0f}"
        print(f"{name:34}{row['bytes']:8}{figures}")
    machine = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count(), "load_1min": load}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "settings": vars(args), "results": results}, indent=2) + "\n")
    print(f"load {load:.1f} on {os.cpu_count()} CPUs; written to {RESULTS}")


if __name__ == "__main__":
    main()
