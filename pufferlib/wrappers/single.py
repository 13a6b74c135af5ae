"""Small wrappers around Gymnasium and PettingZoo environments, applied before emulation.

They also convert environments with the old gym or PettingZoo API, and turn-based ones (AEC).
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
    "as_number",
]

Info = dict[str, Any]
PerAgent = dict[Any, Any]

_NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)


def as_number(value: Any) -> float | None:
    """Convert a number, or an array or tensor with one element, to a float. Return None for anything else."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if isinstance(value, np.ndarray) and value.size != 1:  # avoids a costly exception in each step
        return None
    if callable(item := getattr(value, "item", None)):
        with contextlib.suppress(Exception):  # tensors with many elements, and objects that only look like arrays
            value = item()
    return float(value) if isinstance(value, _NUMBERS) else None


class _Episode:
    """Episode return, length and last infos of one agent."""

    def __init__(self) -> None:
        self.episode_return = 0.0
        self.episode_length = 0
        self.stats: Info = {}

    def add(self, reward: Any, info: Mapping[Any, Any]) -> None:
        """Add one step, and keep the last value of each info key."""
        try:
            self.episode_return += float(reward.item() if isinstance(reward, np.ndarray) else reward)
        except (TypeError, ValueError) as error:
            several = (
                "; if it steps several environments at once, write a PufferEnv around it" if np.ndim(reward) else ""
            )
            raise APIUsageError(
                f"episode: the reward must be a number, got {reward!r:.80}; return a float{several}"
            ) from error
        self.episode_length += 1
        if not info:  # the common case
            return
        if type(info) is not dict and not isinstance(info, Mapping):  # the second check alone is slow
            raise APIUsageError(f"episode: the info must be a dict, got {info!r:.80}; return {{}} if there is none")
        for key, value in _flat_items(info):
            number = as_number(value)  # copies the value before the environment can change an array in place
            self.stats[key] = value if number is None else number

    def summary(self) -> Info:
        """Return all statistics. ``score`` is the episode return unless an info has this key."""
        own = {"episode_return": self.episode_return, "episode_length": self.episode_length}
        return {"score": self.episode_return, **self.stats, **own}


def _flat_items(info: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the items of nested dicts, with keys joined by slashes."""
    for key, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat_items(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _has_five_values(outcome: Any) -> bool:
    """Return whether ``step`` returned five values. If not, the emulation reports the error."""
    return isinstance(outcome, tuple | list) and len(outcome) == 5


class EpisodeStats(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Episode statistics in the info of the last step. All other infos are empty.

    The last info holds ``episode_return``, ``episode_length`` (steps), ``score`` (the return, unless the environment
    has a ``score`` in its infos), and the last value of each key of the episode's infos. So an environment can report a
    value once, at any time, or as a running total in each step. Numbers, and arrays and tensors with one element,
    become floats. Keys of nested dicts are joined by slashes.

    Args:
        env: Gymnasium environment, or environment of the old gym API, which is converted. Observations, actions and
            rewards are unchanged.

    Raises:
        APIUsageError: ``env`` is not a Gymnasium environment.
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
        """Start an episode. The info is empty."""
        observation, _ = two_values(self.env, self.env.reset(seed=seed, options=options))
        self._episode = _Episode()
        return observation, {}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, Info]:
        """Take one step. The info is empty unless the episode ended."""
        outcome: Any = self.env.step(action)
        if not _has_five_values(outcome):
            return outcome  # type: ignore[no-any-return]
        observation, reward, terminated, truncated, info = outcome
        self._episode.add(reward, info)
        try:
            is_over = terminated or truncated
        except ValueError:  # an array, which emulation rejects with a better message
            return outcome  # type: ignore[no-any-return]
        return observation, reward, terminated, truncated, self._episode.summary() if is_over else {}


class _ParallelWrapper(BaseParallelWrapper):  # type: ignore[misc]  # pettingzoo has no types
    """Parallel wrapper that also accepts turn-based (AEC) and old environments, and converts them."""

    def __init__(self, env: Any) -> None:
        env = converted(env)
        if isinstance(env, gymnasium.Env):
            raise APIUsageError(
                f"{type(self).__name__}: env must be of PettingZoo, got {env!r:.80}; EpisodeStats is for Gymnasium"
            )
        super().__init__(aec_to_parallel(env) if isinstance(env, AECEnv) else env)


class MultiagentEpisodeStats(_ParallelWrapper):
    """``EpisodeStats`` for each agent of a parallel environment, reported when the agent's episode ends.

    Args:
        env: PettingZoo environment, parallel or turn-based (AEC) if it can be converted to parallel.

    Raises:
        APIUsageError: ``env`` is a Gymnasium environment, or cannot be converted to parallel.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. The infos are empty."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        self._episodes = {agent: _Episode() for agent in self.env.agents}
        return observations, {agent: {} for agent in infos}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Take one step. The info of an agent is empty unless its episode ended or the agent vanished."""
        outcome: Any = self.env.step(actions)
        if not _has_five_values(outcome):
            return outcome  # type: ignore[no-any-return]
        observations, rewards, terminations, truncations, infos = outcome
        present = set(self.env.agents)
        stats: PerAgent = {agent: {} for agent in rewards}
        for agent, reward in rewards.items():
            if agent in self._episodes or agent in present:  # some environments report dead agents in every step
                self._episodes.setdefault(agent, _Episode()).add(reward, infos.get(agent, {}))
        for agent in list(self._episodes):
            if agent not in present or terminations.get(agent) or truncations.get(agent):
                stats[agent] = self._episodes.pop(agent).summary()
        return observations, rewards, terminations, truncations, stats


class MeanOverAgents(_ParallelWrapper):
    """Mean infos over agents, as one dict instead of an info per agent.

    The dict has the mean of each numeric value over the agents that have it, and ``n``, the number of agents with any.
    It is empty if no info holds a number.

    Args:
        env: PettingZoo environment, parallel or turn-based (AEC) if it can be converted to parallel. Wrap
            ``MultiagentEpisodeStats`` to get one report for all agents whose episodes end in the same step.

    Raises:
        APIUsageError: ``env`` is a Gymnasium environment, or cannot be converted to parallel.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, Info]:
        """Start an episode. Return the observations and the mean infos."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        return observations, _means(infos)

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, Info]:
        """Take one step. Return the outcome with the mean infos."""
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
    """Equal spaces for all agents: the smallest spaces that contain those of every agent.

    Observations must be Boxes with the same dtype and number of axes, unless all are equal. They are padded with zeros
    at the end of each axis. For Box actions, each agent gets the part of the action with the shape of its own space,
    clipped to the bounds of this space. For Discrete actions, the largest space is used, and an action that an agent
    does not have is replaced by its first action.

    Args:
        env: PettingZoo environment, parallel or turn-based (AEC) if it can be converted to parallel.

    Raises:
        APIUsageError: The spaces of the agents differ in type, dtype, number of axes or first action. Or ``env`` is a
            Gymnasium environment, or cannot be converted to parallel.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        agents = self.env.possible_agents
        self._observations = _common_space("observation", [self.env.observation_space(agent) for agent in agents])
        self._actions = _common_space("action", [self.env.action_space(agent) for agent in agents])

    def observation_space(self, agent: Any) -> Space:
        """Return the observation space, which is the same for all agents."""
        return self._observations

    def action_space(self, agent: Any) -> Space:
        """Return the action space, which is the same for all agents."""
        return self._actions

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. Return padded observations and the infos."""
        observations, infos = two_values(self.env, self.env.reset(seed=seed, options=options))
        return self._padded(observations), infos

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Take one step. Return the outcome with padded observations."""
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
    """Return the smallest space that contains all of ``spaces``."""
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
    """Convert ``action`` of the common space to an action of ``space``."""
    if isinstance(space, Discrete):
        return action if space.start <= action < space.start + space.n else int(space.start)
    if isinstance(space, Box):
        return np.clip(action[tuple(map(slice, space.shape))], space.low, space.high)
    return action


class ClipAction(gymnasium.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Clipping of actions to the Box of the environment.

    The action space becomes the same Box without bounds.

    Args:
        env: Gymnasium environment with a Box of floats as action space.

    Raises:
        APIUsageError: The action space is not a Box of floats.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(converted(env))
        space = self.env.action_space
        if not isinstance(space, Box) or np.dtype(space.dtype).kind != "f":
            raise APIUsageError(f"ClipAction: expected a Box of floats as action space, got {space}; leave it out")
        self._low, self._high = space.low, space.high
        self.action_space = Box(-np.inf, np.inf, space.shape, np.dtype(space.dtype).type)

    def action(self, action: Any) -> Any:
        """Return ``action`` clipped to the Box."""
        return np.clip(action, self._low, self._high)


class ResizeObservation(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Smaller images ``(height, width[, channels])``, with every ``downscale``-th row and column.

    Args:
        env: Gymnasium environment with image observations of any dtype.
        downscale: Factor by which height and width are divided.

    Raises:
        APIUsageError: Observations are not images, or their height or width is not a multiple of ``downscale``.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], downscale: int = 2) -> None:
        RecordConstructorArgs.__init__(self, downscale=downscale)
        super().__init__(converted(env))
        space = self.env.observation_space
        if not isinstance(space, Box) or len(space.shape) not in (2, 3):
            raise APIUsageError(f"ResizeObservation: expected a Box (height, width[, channels]), got {space}")
        is_int = isinstance(downscale, int | np.integer) and not isinstance(downscale, bool)
        if not is_int or downscale < 1 or any(side % downscale for side in space.shape[:2]):
            raise APIUsageError(
                f"ResizeObservation: downscale must be an int that divides height and width, got {downscale} for "
                f"{space.shape[:2]}"
            )
        self._every = (slice(None, None, downscale),) * 2
        self.observation_space = Box(space.low[self._every], space.high[self._every], dtype=np.dtype(space.dtype).type)

    def observation(self, observation: Any) -> Any:
        """Return the smaller image as a contiguous array."""
        return np.ascontiguousarray(observation[self._every])
