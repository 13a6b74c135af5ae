"""Environments that cost what they are told to, so that only what is around them is measured.

Imported by both sides of a comparison: only gymnasium and numpy may be needed here.
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
DRAWN = 4096  # delays, after which they come again
PR_SET_TIMERSLACK = 29


class Still(gymnasium.Env[Any, Any]):
    """Returns one sample of its space for ever, after turning a loop ``turns`` times."""

    action_space = Discrete(4)

    def __init__(self, space: str = "box", turns: int = 0) -> None:
        self.observation_space = SPACES[space]
        self._sample = self.observation_space.sample()
        self._turns = turns

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The sample."""
        return self._sample, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The sample again."""
        for _ in range(self._turns):
            pass
        return self._sample, 1.0, False, False, {}


class Empty(Still):
    """Does nothing at all, not even a loop of no turns, which takes as long as the rest of a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The sample again."""
        return self._sample, 1.0, False, False, {}


def draw_delays(rng: np.random.Generator, mean: float, deviation: float) -> npt.NDArray[np.float64]:
    """Draw times with a Gamma distribution, in seconds: never negative, and every 32 of them have the mean.

    Args:
        rng: Draws them.
        mean: In seconds.
        deviation: As a share of the mean; 1 is an exponential distribution.
    """
    if not deviation:
        return np.full(DRAWN, mean)
    shape = deviation**-2
    times = rng.gamma(shape, mean / shape, (DRAWN // 32, 32))
    return (times * mean / times.mean(axis=1, keepdims=True)).ravel()


class Delayed(gymnasium.Env[Any, Any]):
    """Does nothing else than take its time, as ``draw_delays`` draws it.

    Args:
        kind: "loop" turns a loop, which needs a core; "sleep" needs none, as if every worker had one to itself.
        mean: Of a step, in seconds.
        deviation: As a share of the mean.
        turns_per_s: Of the loop.
    """

    observation_space = SPACES["box"]
    action_space = Still.action_space

    def __init__(self, kind: str, mean: float, deviation: float, turns_per_s: int) -> None:
        self.kind, self.mean, self.deviation, self.turns_per_s = kind, mean, deviation, turns_per_s
        self._sample = self.observation_space.sample()
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # else Linux adds up to 50 us to every sleep

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Draw the delays."""
        super().reset(seed=seed)
        delays = draw_delays(self.np_random, self.mean, self.deviation)
        drawn = delays.tolist() if self.kind == "sleep" else (delays * self.turns_per_s).astype(int).tolist()
        self._delays = itertools.cycle(drawn)
        return self._sample, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the next of them."""
        if self.kind == "sleep":
            time.sleep(next(self._delays))
        else:
            for _ in range(next(self._delays)):
                pass
        return self._sample, 1.0, False, False, {}


class Crowd:
    """A PettingZoo environment whose agents all see the same for ever."""

    metadata: dict[str, Any] = {"name": "crowd"}  # noqa: RUF012
    render_mode = None

    def __init__(self, num_agents: int) -> None:
        self.possible_agents = [f"agent_{index}" for index in range(num_agents)]
        self.agents = list(self.possible_agents)
        self._observations = dict.fromkeys(self.agents, np.zeros(4, np.float32))
        self._rewards, self._ends = dict.fromkeys(self.agents, 1.0), dict.fromkeys(self.agents, False)
        self._infos: dict[str, Any] = {agent: {} for agent in self.agents}

    def observation_space(self, agent: str) -> Any:
        """The same for all."""
        return SPACES["box"]

    def action_space(self, agent: str) -> Any:
        """The same for all."""
        return Still.action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Nothing to start."""
        return self._observations, self._infos

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Nothing to do."""
        return self._observations, self._rewards, self._ends, self._ends, self._infos

    def close(self) -> None:
        """Nothing to close."""


def make(kind: str, turns: int = 0) -> gymnasium.Env[Any, Any]:
    """The environment ``kind``: "empty", "cartpole" or "atari"."""
    if kind == "empty":
        return Still(turns=turns) if turns else Empty()
    if kind == "cartpole":
        return gymnasium.make("CartPole-v1")
    from pufferlib.bindings.atari.env import make_env

    return make_env("breakout")


def turns_for(seconds: float) -> int:
    """Count the turns that the loop of ``Still`` makes in this time."""
    turns, best = 20_000, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(turns):
            pass
        best = min(best, time.perf_counter() - start)
    return int(turns * seconds / best)
