"""Environments with a known cost, to measure only the layers around them.

Every contestant imports this module, so it needs only gymnasium and numpy.
"""

import ctypes
import itertools
import time
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

SPACES: dict[str, gymnasium.Space[Any]] = {
    "box": Box(-1, 1, (4,)),
    "dict5": Dict(
        {
            "position": Box(-1, 1, (3,)),
            "velocity": Box(-1, 1, (3,)),
            "weapon": Discrete(5),
            "items": MultiDiscrete([4, 4, 4, 4]),
            "health": Box(0, 100, (1,), np.uint8),
        }
    ),
    "nethack": Dict(
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
DRAWN = 4096  # number of delays, after which they repeat
PR_SET_TIMERSLACK = 29


class Still(gymnasium.Env[Any, Any]):
    """Environment that always returns the same sample of its space, after a loop of ``turns`` iterations."""

    action_space = Discrete(4)

    def __init__(self, space: str = "box", turns: int = 0) -> None:
        self.observation_space = SPACES[space]
        self._sample = self.observation_space.sample()
        self._turns = turns

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Return the sample."""
        return self._sample, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Run the loop and return the sample."""
        for _ in range(self._turns):
            pass
        return self._sample, 1.0, False, False, {}


class Empty(Still):
    """Environment without any work. Even an empty loop would take as long as the rest of a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return the sample."""
        return self._sample, 1.0, False, False, {}


def draw_delays(rng: np.random.Generator, mean: float, deviation: float) -> npt.NDArray[np.float64]:
    """Draw delays in seconds from a gamma distribution, scaled so that each group of 32 has exactly the mean.

    Args:
        rng: Random number generator.
        mean: Mean in seconds.
        deviation: Standard deviation as a share of the mean. With 1, this is an exponential distribution.
    """
    if not deviation:
        return np.full(DRAWN, mean)
    shape = deviation**-2
    times = rng.gamma(shape, mean / shape, (DRAWN // 32, 32))
    return (times * mean / times.mean(axis=1, keepdims=True)).ravel()


class Delayed(gymnasium.Env[Any, Any]):
    """Environment whose steps take random times from ``draw_delays``.

    Args:
        kind: "loop" for a busy loop, which uses a core, or "sleep", as if every worker had its own core.
        mean: Mean time of a step in seconds.
        deviation: Standard deviation as a share of the mean.
        turns_per_s: Iterations of the loop per second.
    """

    observation_space = SPACES["box"]
    action_space = Still.action_space

    def __init__(self, kind: str, mean: float, deviation: float, turns_per_s: int) -> None:
        self.kind, self.mean, self.deviation, self.turns_per_s = kind, mean, deviation, turns_per_s
        self._sample = self.observation_space.sample()
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # otherwise Linux adds up to 50 us to every sleep

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Draw the delays and return the sample."""
        super().reset(seed=seed)
        delays = draw_delays(self.np_random, self.mean, self.deviation)
        drawn = delays.tolist() if self.kind == "sleep" else (delays * self.turns_per_s).astype(int).tolist()
        self._delays = itertools.cycle(drawn)
        return self._sample, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Wait for the next delay and return the sample."""
        if self.kind == "sleep":
            time.sleep(next(self._delays))
        else:
            for _ in range(next(self._delays)):
                pass
        return self._sample, 1.0, False, False, {}


class Crowd:
    """PettingZoo environment in which all agents always get the same observation."""

    metadata: dict[str, Any] = {"name": "crowd"}  # noqa: RUF012
    render_mode = None

    def __init__(self, num_agents: int) -> None:
        self.possible_agents = [f"agent_{index}" for index in range(num_agents)]
        self.agents = list(self.possible_agents)
        self._observations = dict.fromkeys(self.agents, np.zeros(4, np.float32))
        self._rewards, self._ends = dict.fromkeys(self.agents, 1.0), dict.fromkeys(self.agents, False)
        self._infos: dict[str, Any] = {agent: {} for agent in self.agents}

    def observation_space(self, agent: str) -> Any:
        """Return the space of all agents."""
        return SPACES["box"]

    def action_space(self, agent: str) -> Any:
        """Return the space of all agents."""
        return Still.action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Return the observations."""
        return self._observations, self._infos

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Return the same results as always."""
        return self._observations, self._rewards, self._ends, self._ends, self._infos

    def close(self) -> None:
        """Do nothing."""


def make(kind: str, turns: int = 0) -> gymnasium.Env[Any, Any]:
    """Create the environment ``kind``: "empty", "cartpole" or "atari"."""
    if kind == "empty":
        return Still(turns=turns) if turns else Empty()
    if kind == "cartpole":
        return gymnasium.make("CartPole-v1")
    from pufferlib.bindings.atari.env import make_env

    return make_env("breakout")


def turns_for(seconds: float) -> int:
    """Return the number of loop iterations of ``Still`` that take this time."""
    turns, best = 20_000, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(turns):
            pass
        best = min(best, time.perf_counter() - start)
    return int(turns * seconds / best)
