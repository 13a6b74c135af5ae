"""Steps per second of the vector backends beside Gymnasium's, interleaved in one run.

Prints a table and writes benchmarks/results/vector.json. Both sides step the same environments with
the same number of processes where they can; Gymnasium's AsyncVectorEnv has one process per environment.
"""

import argparse
import functools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv

RESULTS = Path(__file__).parent / "results" / "vector.json"


class Empty(gymnasium.Env[Any, Any]):
    """Does nothing, so that only the cost of vectorization is left."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    _observation = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Nothing to start."""
        return self._observation, {}

    def step(self, action: Any) -> Any:
        """Nothing to do."""
        return self._observation, 0.0, False, False, {}


def cartpole() -> gymnasium.Env[Any, Any]:
    """Gymnasium's CartPole-v1."""
    return gymnasium.make("CartPole-v1")


def contestants(creator: Callable[[], Any], num_envs: int) -> dict[str, Callable[[], Any]]:
    """Name and maker of every vector environment to compare."""
    ours = functools.partial(
        pufferlib.vector.make,
        functools.partial(GymnasiumPufferEnv, env_creator=creator),
        num_envs=num_envs,
        overwork=True,
    )
    return {
        "Serial": functools.partial(ours, backend="Serial"),
        "Multiprocessing, 2 workers": functools.partial(ours, backend="Multiprocessing", num_workers=2),
        "Gymnasium SyncVectorEnv": lambda: SyncVectorEnv([creator] * num_envs),
        "Gymnasium AsyncVectorEnv": lambda: AsyncVectorEnv([creator] * num_envs),
    }


def compare(creator: Callable[[], Any], num_envs: int, rounds: int, seconds: float) -> dict[str, float]:
    """Median steps of one environment per second, over rounds in which the contestants take turns."""
    makers = contestants(creator, num_envs)
    samples: dict[str, list[float]] = {name: [] for name in makers}
    actions = np.random.default_rng(0).integers(0, 2, num_envs)
    vecenvs = {name: make() for name, make in makers.items()}
    for vecenv in vecenvs.values():
        vecenv.reset(seed=0)
        vecenv.step(actions)
    for _ in range(rounds):
        for name, vecenv in vecenvs.items():
            steps, start = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - start) < seconds:
                vecenv.step(actions)
                steps += num_envs
            samples[name].append(steps / elapsed)
    for vecenv in vecenvs.values():
        vecenv.close()
    return {name: statistics.median(rates) for name, rates in samples.items()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    args = parser.parse_args()
    results: dict[str, Any] = {
        "num_envs": args.num_envs,
        "usable_cpus": pufferlib.vector.usable_cpus(),
        "load_before": os.getloadavg()[0],
    }
    for label, creator in {"empty": Empty, "CartPole-v1": cartpole}.items():
        rates = compare(creator, args.num_envs, args.rounds, args.seconds)
        results[label] = rates
        base = rates["Gymnasium SyncVectorEnv"]
        print(f"{label}, {args.num_envs} environments")
        for name, rate in rates.items():
            print(f"  {name:<28}{rate:>12,.0f} steps/s{rate / base:>8.2f} x SyncVectorEnv")
    results["load_after"] = os.getloadavg()[0]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"Load before {results['load_before']:.1f}, after {results['load_after']:.1f}. Written: {RESULTS}")


if __name__ == "__main__":
    main()
