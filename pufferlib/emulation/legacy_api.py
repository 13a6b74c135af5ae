"""Adapters for environments of APIs before Gymnasium, without importing their packages.

Old environments and their spaces are recognized by their attributes (``n``, ``nvec``, ``low`` and
``high``, ``spaces``) and by the values that ``reset`` and ``step`` return. Current environments whose
``reset`` takes no ``seed`` or no ``options`` are wrapped so that it takes both.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Sequence, Text, Tuple
from gymnasium.utils import RecordConstructorArgs
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["GymToGymnasium", "PettingZooTruncatedWrapper", "converted", "new_space"]

Info = dict[str, Any]
PerAgent = dict[Any, Any]


def converted(env: Any) -> Any:
    """Convert ``env`` to a Gymnasium or PettingZoo environment whose ``reset`` takes ``seed`` and ``options``.

    An environment that already conforms, or has no known API, is returned unchanged.

    Raises:
        APIUsageError: A turn-based environment is not marked as parallelizable.
    """
    if isinstance(env, AECEnv):
        metadata = getattr(env, "metadata", None) or {}
        if not metadata.get("is_parallelizable"):
            raise APIUsageError(
                f"emulation: the metadata of a turn-based environment must have is_parallelizable=True, got {metadata} "
                f"of {env}; set it if the world moves once per round, else pass "
                "pettingzoo.utils.conversions.turn_based_aec_to_parallel(env), where only the agent to move acts"
            )
        return env if _Reset(env).takes_both and hasattr(env, "render_mode") else SeedableAECEnv(env)
    if isinstance(env, gymnasium.Env):
        return env if _Reset(env).takes_both else SeedableEnv(env)
    if isinstance(env, ParallelEnv):
        return env if _Reset(env).takes_both and _has_space_methods(env) else SeedableParallelEnv(env)
    if isinstance(env, type) or not all(hasattr(env, name) for name in ("reset", "step")):
        return env
    if hasattr(env, "possible_agents"):
        return env if hasattr(env, "agent_iter") else PettingZooTruncatedWrapper(env)
    has_spaces = all(hasattr(getattr(env, name, None), "sample") for name in ("observation_space", "action_space"))
    return env if _is_vector(env) or not has_spaces else GymToGymnasium(env)


def _is_vector(env: Any) -> bool:
    """Return whether ``env`` is a vector environment. Some gym wrappers of a single one have ``num_envs`` 1 too."""
    is_marked = any(hasattr(env, name) for name in ("single_observation_space", "step_async"))
    return is_marked or bool(getattr(env, "is_vector_env", False)) or getattr(env, "num_envs", 1) != 1


class GymToGymnasium(gymnasium.Env[Any, Any]):
    """Gymnasium environment around an environment of any version of the gym API.

    ``step`` may return four values (``info["TimeLimit.truncated"]`` marks a time limit) or five. ``reset`` may return
    an observation with or without an info. If ``reset`` takes no ``seed``, the method ``seed`` is called. Spaces are
    converted to Gymnasium's.

    Attributes:
        env: Old environment.

    Args:
        env: Old environment.
        render_mode: Mode passed to ``render`` if that takes a ``mode``. None passes "rgb_array".

    Raises:
        APIUsageError: A space has an unknown type.
    """

    def __init__(self, env: Any, render_mode: str | None = None) -> None:
        self.env = env
        self.render_mode = render_mode or getattr(env, "render_mode", None)
        self.metadata = dict(getattr(env, "metadata", None) or {})
        self.metadata.setdefault("render_modes", self.metadata.get("render.modes", []))
        self.observation_space = new_space("observation", env.observation_space)
        self.action_space = new_space("action", env.action_space)
        self._reset = _Reset(env)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start an episode. If the environment cannot be seeded, the seed is ignored with a warning."""
        super().reset(seed=seed)
        outcome = self._reset(seed, options)
        has_info = isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[1], dict)
        if has_info and not self.observation_space.contains(outcome):  # a Tuple observation may look like a pair
            return outcome[0], outcome[1]
        return outcome, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """Take one step."""
        observation, reward, *ends, info = _outcome(self, self.env.step(action))
        info = info or {}
        if len(ends) == 2:
            return observation, reward, bool(ends[0]), bool(ends[1]), info
        truncated = bool(ends[0] and info.get("TimeLimit.truncated", False))
        return observation, reward, bool(ends[0]) and not truncated, truncated, info

    def render(self) -> Any:
        """Render the old environment."""
        return _render(self.env, self.render_mode)

    def close(self) -> None:
        """Close the old environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()


class PettingZooTruncatedWrapper(ParallelEnv[Any, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """PettingZoo parallel environment around one of PettingZoo before 1.23.

    ``step`` may return four values (no truncations) or five. ``reset`` may return the observations with or without
    infos. Spaces are converted to Gymnasium's.

    Attributes:
        env: Old environment.

    Args:
        env: Old environment.

    Raises:
        APIUsageError: A space has an unknown type.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.metadata = dict(getattr(env, "metadata", None) or {})
        self.render_mode = getattr(env, "render_mode", None)
        self.possible_agents = list(env.possible_agents)
        self.observation_spaces = _spaces_of(env, "observation")
        self.action_spaces = _spaces_of(env, "action")
        self._reset = _Reset(env)

    @property
    def agents(self) -> list[Any]:
        """Agents that currently take part."""
        return list(self.env.agents)

    def observation_space(self, agent: Any) -> Space:
        """Return the observation space of ``agent``."""
        return self.observation_spaces[agent]

    def action_space(self, agent: Any) -> Space:
        """Return the action space of ``agent``."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. If the environment cannot be seeded, the seed is ignored with a warning."""
        outcome = self._reset(seed, options)
        observations, infos = outcome if isinstance(outcome, tuple) else (outcome, {})
        return observations, {agent: infos.get(agent, {}) for agent in observations}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Take one step with every living agent."""
        outcome = _outcome(self, self.env.step(actions))
        observations, rewards, terminations, *truncations, infos = outcome
        truncated = truncations[0] if truncations else dict.fromkeys(rewards, False)
        return observations, rewards, terminations, truncated, infos

    def render(self) -> Any:
        """Render the old environment."""
        return _render(self.env, self.render_mode)

    def close(self) -> None:
        """Close the old environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()


class SeedableEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Gymnasium environment around one whose ``reset`` does not take ``seed`` or ``options``.

    The seed is passed to the environment's ``reset`` if that takes it, to its method ``seed``, or to ``np_random``.
    Options that ``reset`` does not take are an error.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._reset = _Reset(env)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> Any:
        """Start an episode."""
        return self._reset(seed, options)


class SeedableParallelEnv(BaseParallelWrapper):  # type: ignore[misc]  # pettingzoo has no types
    """``SeedableEnv`` for a PettingZoo parallel environment, which has no ``np_random``.

    Spaces may also be attributes of the environment. See ``agent_space``.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._reset = _Reset(env)

    def reset(self, seed: int | None = None, options: Info | None = None) -> Any:
        """Start an episode. If the environment cannot be seeded, the seed is ignored with a warning."""
        return self._reset(seed, options)

    def observation_space(self, agent: Any) -> Space:
        """Return the observation space of ``agent``."""
        return agent_space(self.env, "observation", agent)

    def action_space(self, agent: Any) -> Space:
        """Return the action space of ``agent``."""
        return agent_space(self.env, "action", agent)


class SeedableAECEnv(BaseWrapper):  # type: ignore[misc]
    """``SeedableParallelEnv`` for a turn-based environment (AEC), which may lack ``render_mode``."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.render_mode = getattr(env, "render_mode", None)
        self._reset = _Reset(env)

    def reset(self, seed: int | None = None, options: Info | None = None) -> None:
        """Start an episode. If the environment cannot be seeded, the seed is ignored with a warning."""
        self._reset(seed, options)


class _Reset:
    """Call of an environment's ``reset``, with or without seed and options."""

    def __init__(self, env: Any) -> None:
        self._env = env
        names = _parameters(env.reset)
        if "kwargs" in names:  # a wrapper that passes all keywords on
            names = names - {"kwargs"} | _parameters(getattr(env, "unwrapped", env).reset)
        self._takes_any = "kwargs" in names
        self._takes_seed = "seed" in names
        self._takes_options = self._takes_any or "options" in names
        self.takes_both = self._takes_options and (self._takes_seed or self._takes_any)

    def __call__(self, seed: int | None, options: Info | None) -> Any:
        kwargs: dict[str, Any] = {}
        if options is not None and not self._takes_options:
            raise APIUsageError(f"emulation: reset of {self._env} takes no options, got {options!r}; leave them out")
        if options is not None:
            kwargs["options"] = options
        if seed is not None and not self._seed(seed):
            kwargs["seed"] = seed
        return self._env.reset(**kwargs)

    def _seed(self, seed: int) -> bool:
        """Seed the environment by other means than ``reset``. Return False if ``reset`` takes the seed."""
        if self._takes_seed:
            return False
        if callable(getattr(self._env, "seed", None)):
            self._env.seed(seed)
        elif self._takes_any:
            return False
        elif isinstance(self._env, gymnasium.Env):
            gymnasium.Env.reset(self._env.unwrapped, seed=seed)  # only seeds np_random
        else:
            name = type(self._env).__name__  # not the address, so that many environments give one warning
            warnings.warn(
                f"{name} cannot be seeded: it has neither reset(seed=...) nor seed(); add one of them", stacklevel=4
            )
        return True


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of ``function``, including "kwargs" if it takes any keyword."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, without a signature
        return {"kwargs"}
    return {"kwargs" if p.kind is p.VAR_KEYWORD else p.name for p in parameters}


def _outcome(wrapper: object, outcome: Any) -> tuple[Any, ...]:
    """Return the values of ``step`` as a tuple. Raise unless there are four or five."""
    if not isinstance(outcome, tuple | list) or len(outcome) not in (4, 5):
        raise APIUsageError(
            f"{type(wrapper).__name__}: step must return 4 values (observation, reward, done, info) or 5 (terminated "
            f"and truncated for done), got {outcome!r}; let the environment follow one of these"
        )
    return tuple(outcome)


def _render(env: Any, render_mode: str | None) -> Any:
    if not hasattr(env, "render"):
        raise NotImplementedError(f"{type(env).__name__} has no render()")
    if "mode" in _parameters(env.render):
        return env.render(mode=render_mode or "rgb_array")
    return env.render()


def _spaces_of(env: Any, kind: str) -> dict[Any, Space]:
    return {agent: agent_space(env, kind, agent) for agent in env.possible_agents}


def _has_space_methods(env: Any) -> bool:
    """Return whether a parallel environment defines its spaces by methods, as PettingZoo requires now."""
    return all(_is_own_method(getattr(env, f"{kind}_space", None), kind) for kind in ("observation", "action"))


def _is_own_method(space: Any, kind: str) -> bool:
    return callable(space) and getattr(space, "__func__", None) is not getattr(ParallelEnv, f"{kind}_space")


def agent_space(env: Any, kind: str, agent: Any) -> Space:
    """Return the space of ``agent`` as a Gymnasium space.

    ``observation_space`` of ``env`` may be a method, a dict by agent, a list in the order of ``possible_agents``, or
    one space for all. If it is missing, ``observation_spaces`` is used. The same applies to actions.

    Raises:
        APIUsageError: The environment defines no space for ``agent``.
    """
    agents = list(env.possible_agents)
    given: Any = getattr(env, f"{kind}_space", None)
    if _is_own_method(given, kind):
        return new_space(kind, given(agent))
    if given is None or callable(given):
        given = getattr(env, f"{kind}_spaces", None)
    spaces = getattr(given, "spaces", given)
    if isinstance(spaces, list | tuple) and len(spaces) == len(agents):
        spaces = dict(zip(agents, spaces, strict=True))
    if isinstance(spaces, Mapping) and agent in spaces:
        return new_space(kind, spaces[agent])
    if hasattr(given, "sample"):
        return new_space(kind, given)
    raise APIUsageError(
        f"emulation: {env} must have {kind}_space(agent) for each of possible_agents, got none for {agent!r} from "
        f"{given!r:.80}; define the method, or a dict {kind}_spaces by agent"
    )


def new_space(name: str, space: Any) -> Space:
    """Convert ``space`` to a Gymnasium space, recognized by its attributes.

    Raises:
        APIUsageError: The type of the space is not recognized.
    """
    if isinstance(space, gymnasium.Space):
        return space
    if hasattr(space, "spaces"):
        return _new_container(name, space.spaces)
    if hasattr(space, "nvec"):
        return MultiDiscrete(space.nvec, start=getattr(space, "start", None))
    if hasattr(space, "low") and hasattr(space, "high"):
        dtype = np.dtype(space.dtype or np.float32)
        return Box(np.asarray(space.low, dtype), np.asarray(space.high, dtype), space.shape, dtype.type)
    if hasattr(space, "n"):  # for MultiBinary, n is the shape
        return (
            MultiBinary(space.n) if getattr(space, "shape", ()) else Discrete(space.n, start=getattr(space, "start", 0))
        )
    if hasattr(space, "max_length"):
        return Text(space.max_length, min_length=space.min_length, charset=space.character_set)
    if hasattr(space, "feature_space"):
        return Sequence(new_space(f"{name}[:]", space.feature_space))
    if hasattr(space, "node_space"):
        edge = None if space.edge_space is None else new_space(f"{name}.edges", space.edge_space)
        return Graph(new_space(f"{name}.nodes", space.node_space), edge)
    raise APIUsageError(
        f"emulation: {name} space {space!r} looks like no known space: it has none of n, nvec, low and high, spaces; "
        "make it a space of Gymnasium"
    )


def _new_container(name: str, spaces: Any) -> Space:
    if isinstance(spaces, Mapping):
        return Dict({key: new_space(f"{name}[{key!r}]", child) for key, child in spaces.items()})
    return Tuple([new_space(f"{name}[{place}]", child) for place, child in enumerate(spaces)])
