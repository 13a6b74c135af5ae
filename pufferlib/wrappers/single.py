"""Small wrappers around Gymnasium and PettingZoo environments, applied before emulation.

They take environments of the old gym API, of old PettingZoo, and turn-based ones (AEC) too, and convert them.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from pettingzoo import AECEnv
from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import aec_to_parallel

from pufferlib.emulation.construct import two_values
from pufferlib.emulation.legacy_api import GymToGymnasium, PettingZooTruncatedWrapper, converted
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = [
    "ClipAction",
    "EpisodeStats",
    "GymToGymnasium",
    "MeanOverAgents",
    "MultiagentEpisodeStats",
    "PadAgents",
    "PettingZooTruncatedWrapper",
    "ResizeObservation",
]

Info = dict[str, Any]
PerAgent = dict[Any, Any]

_NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)


def as_number(value: Any) -> float | None:
    """Return a number of an info, or an array or tensor of one element, as a float. Returns None for anything else."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if isinstance(value, np.ndarray) and value.size != 1:  # without the exception, in each step
        return None
    if callable(item := getattr(value, "item", None)):
        with contextlib.suppress(Exception):  # of tensors of many elements, and of objects that only look like arrays
            value = item()
    return float(value) if isinstance(value, _NUMBERS) else None


class _Episode:
    """Return, length and last infos of one agent's episode."""

    def __init__(self) -> None:
        self.episode_return = 0.0
        self.episode_length = 0
        self.stats: Info = {}

    def add(self, reward: Any, info: Mapping[Any, Any]) -> None:
        """Count one step, and keep the last value of each key of the infos."""
        try:
            self.episode_return += float(reward.item() if isinstance(reward, np.ndarray) else reward)
        except (TypeError, ValueError) as error:
            raise APIUsageError(f"episode: the reward must be a number, got {reward!r:.80}; return a float") from error
        self.episode_length += 1
        if not info:  # as in most steps
            return
        for key, value in _flat_items(info):
            number = as_number(value)  # before an environment changes an array in place
            self.stats[key] = value if number is None else number

    def summary(self) -> Info:
        """Everything about the episode; ``score`` is its return unless the environment has its own."""
        own = {"episode_return": self.episode_return, "episode_length": self.episode_length}
        return {"score": self.episode_return, **self.stats, **own}


def _flat_items(info: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Items of nested dicts, keys joined by a slash."""
    for key, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat_items(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _has_five(outcome: Any) -> bool:
    """True if ``step`` returned five values; of what did not, the emulation around says what is wrong."""
    return isinstance(outcome, tuple | list) and len(outcome) == 5


class EpisodeStats(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Summary of each episode: infos are empty until its last step, whose info has it all.

    That info holds ``episode_return``, ``episode_length`` (steps), ``score`` (the return, unless
    the environment's infos have a ``score``), and the last value of each key that an info of the episode had.
    So a figure may be given once, at the end, or in each step, as a running total. Numbers, and arrays and
    tensors of one number, become floats. Keys of nested dicts are joined by a slash.

    Args:
        env: Of Gymnasium, or of the old gym API, which is converted. Observations, actions and rewards stay.

    Raises:
        APIUsageError: The environment is none of Gymnasium.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        inner: Any = converted(env)
        if not isinstance(inner, gymnasium.Env):
            advice = "use MultiagentEpisodeStats" if hasattr(inner, "possible_agents") else "pass an instance"
            raise APIUsageError(f"EpisodeStats: env must be a gymnasium.Env, got {inner!r:.80}; {advice}")
        super().__init__(inner)
        self._episode = _Episode()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start an episode; the info is empty."""
        observation, _ = two_values(self.env, self.env.reset(seed=seed, options=options))
        self._episode = _Episode()
        return observation, {}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, Info]:
        """Act once; the info is empty unless the episode ended."""
        outcome: Any = self.env.step(action)
        if not _has_five(outcome):
            return outcome  # type: ignore[no-any-return]
        observation, reward, terminated, truncated, info = outcome
        self._episode.add(reward, info)
        return observation, reward, terminated, truncated, self._episode.summary() if terminated or truncated else {}


class _ParallelWrapper(BaseParallelWrapper):  # type: ignore[misc]  # pettingzoo has no types
    """Takes a turn-based (AEC) environment too, and an old one, and converts it."""

    def __init__(self, env: Any) -> None:
        env = converted(env)
        if isinstance(env, gymnasium.Env):
            raise APIUsageError(
                f"{type(self).__name__}: env must be of PettingZoo, got {env!r:.80}; EpisodeStats is for Gymnasium"
            )
        super().__init__(aec_to_parallel(env) if isinstance(env, AECEnv) else env)


class MultiagentEpisodeStats(_ParallelWrapper):
    """``EpisodeStats`` for each agent of a parallel environment, given when that agent ends.

    Args:
        env: Of PettingZoo: parallel, or turn-based (AEC) if it can be made parallel.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode; the infos are empty."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        self._episodes = {agent: _Episode() for agent in self.env.agents}
        return observations, {agent: {} for agent in infos}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Act once; an agent's info is empty unless the agent ended, or vanished."""
        outcome: Any = self.env.step(actions)
        if not _has_five(outcome):
            return outcome  # type: ignore[no-any-return]
        observations, rewards, terminations, truncations, infos = outcome
        present = set(self.env.agents)
        stats: PerAgent = {agent: {} for agent in rewards}
        for agent, reward in rewards.items():
            if agent in self._episodes or agent in present:  # some environments report the dead again in every step
                self._episodes.setdefault(agent, _Episode()).add(reward, infos.get(agent, {}))
        for agent in list(self._episodes):
            if agent not in present or terminations.get(agent) or truncations.get(agent):
                stats[agent] = self._episodes.pop(agent).summary()
        return observations, rewards, terminations, truncations, stats


class MeanOverAgents(_ParallelWrapper):
    """Replaces the infos of all agents by one dict: the mean of each number over those that have it.

    ``n`` tells over how many agents; the dict is empty when no info holds a number.

    Args:
        env: Of PettingZoo: parallel, or turn-based (AEC) if it can be made parallel. Put it around
            ``MultiagentEpisodeStats`` to have one report of those whose episodes ended in a step.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, Info]:
        """Start an episode. Returns the observations and the means."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        return observations, _means(infos)

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, Info]:
        """Act once. Returns what the environment does, with the means as infos."""
        *rest, infos = self.env.step(actions)
        observations, rewards, terminations, truncations = rest
        return observations, rewards, terminations, truncations, _means(infos)


def _means(infos: Mapping[Any, Mapping[str, Any]]) -> Info:
    values: dict[str, list[float]] = {}
    n = 0
    for info in infos.values():
        numbers = [(key, number) for key, value in _flat_items(info) if (number := as_number(value)) is not None]
        n += bool(numbers)
        for key, number in numbers:
            values.setdefault(key, []).append(number)
    means: Info = {key: sum(numbers) / len(numbers) for key, numbers in values.items()}
    return {**means, "n": n} if n else means


class PadAgents(_ParallelWrapper):
    """Gives all agents the same spaces: the smallest that have room for those of every agent.

    Observations, Boxes of one dtype and number of axes, are filled up with zeros at the end of each
    axis. Of a Box of actions an agent gets the part that it has a place for. Of several Discrete
    spaces the largest is taken; an action that an agent does not have counts as its first.

    Args:
        env: Parallel, or turn-based (AEC) if it can be made parallel.

    Raises:
        APIUsageError: Agents see or do things of different kinds.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        agents = self.env.possible_agents
        self._observations = _common_space("observation", [self.env.observation_space(agent) for agent in agents])
        self._actions = _common_space("action", [self.env.action_space(agent) for agent in agents])

    def observation_space(self, agent: Any) -> Space:
        """Observation space of ``agent``."""
        return self._observations

    def action_space(self, agent: Any) -> Space:
        """Action space of ``agent``."""
        return self._actions

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. Returns padded observations and the infos."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        return self._padded(observations), infos

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Act once. Returns what the environment does, observations padded."""
        own = {agent: _own_part(self.env.action_space(agent), action) for agent, action in actions.items()}
        observations, *rest = self.env.step(own)
        rewards, terminations, truncations, infos = rest
        return self._padded(observations), rewards, terminations, truncations, infos

    def _padded(self, observations: PerAgent) -> PerAgent:
        space = self._observations
        if not isinstance(space, Box):
            return observations
        return {agent: _padded_array(value, space.shape) for agent, value in observations.items()}


def _common_space(kind: str, spaces: list[Space]) -> Space:
    """The smallest space with room for all of ``spaces``."""
    first = spaces[0]
    if all(space == first for space in spaces):
        return first
    boxes = [space for space in spaces if isinstance(space, Box)]
    if len(boxes) == len(spaces) and len({(len(box.shape), box.dtype) for box in boxes}) == 1:
        shape = tuple(max(sides) for sides in zip(*(box.shape for box in boxes), strict=True))
        low = np.minimum.reduce([_padded_array(box.low, shape) for box in boxes])
        high = np.maximum.reduce([_padded_array(box.high, shape) for box in boxes])
        return Box(low, high, dtype=low.dtype.type)
    discrete = [space for space in spaces if isinstance(space, Discrete)]
    if kind == "action" and len(discrete) == len(spaces) and len({int(space.start) for space in discrete}) == 1:
        return max(discrete, key=lambda space: int(space.n))
    raise APIUsageError(
        f"PadAgents: {kind} spaces must be Boxes of one dtype and number of axes"
        f"{', or Discrete from one start' if kind == 'action' else ''}, got {', '.join(map(str, spaces))}; "
        "bring them closer together in a wrapper"
    )


def _padded_array(value: Any, shape: tuple[int, ...]) -> Any:
    value = np.asarray(value)
    if value.shape == shape:
        return value
    padded = np.zeros(shape, value.dtype)
    padded[tuple(map(slice, value.shape))] = value
    return padded


def _own_part(space: Space, action: Any) -> Any:
    """``action`` of the common space as one of ``space``."""
    if isinstance(space, Discrete):
        return action if space.start <= action < space.start + space.n else int(space.start)
    if isinstance(space, Box):
        return action[tuple(map(slice, space.shape))]
    return action


class ClipAction(gymnasium.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Takes any real action and clips it to the Box of the environment.

    Its own action space is that Box without bounds.

    Args:
        env: Of Gymnasium, with a Box of reals to act in.

    Raises:
        APIUsageError: The action space is no Box of reals.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(converted(env))
        space = self.env.action_space
        if not isinstance(space, Box) or np.dtype(space.dtype).kind != "f":
            raise APIUsageError(f"ClipAction: expected a Box of reals as action space, got {space}; leave it out")
        self._low, self._high = space.low, space.high
        self.action_space = Box(-np.inf, np.inf, space.shape, np.dtype(space.dtype).type)

    def action(self, action: Any) -> Any:
        """``action`` moved to the nearest allowed value."""
        return np.clip(action, self._low, self._high)


class ResizeObservation(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Keeps every ``downscale``-th row and column of an image ``(height, width[, channels])``.

    Args:
        env: Of Gymnasium, with images of any dtype to see.
        downscale: Divides height and width.

    Raises:
        APIUsageError: The observation is no image, or its sides are no multiples of ``downscale``.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], downscale: int = 2) -> None:
        RecordConstructorArgs.__init__(self, downscale=downscale)
        super().__init__(converted(env))
        space = self.env.observation_space
        if not isinstance(space, Box) or len(space.shape) not in (2, 3):
            raise APIUsageError(f"ResizeObservation: expected a Box (height, width[, channels]), got {space}")
        if downscale < 1 or any(side % downscale for side in space.shape[:2]):
            raise APIUsageError(
                f"ResizeObservation: downscale must divide height and width, got {downscale} for {space.shape[:2]}"
            )
        self._every = (slice(None, None, downscale),) * 2
        self.observation_space = Box(space.low[self._every], space.high[self._every], dtype=np.dtype(space.dtype).type)

    def observation(self, observation: Any) -> Any:
        """The smaller image, contiguous."""
        return np.ascontiguousarray(observation[self._every])
