"""Environments of ours for the algorithms of RLlib, on its new API stack.

Source: Liang et al., "RLlib: Abstractions for Distributed Reinforcement Learning" (2018).
"""

import contextlib
import functools
import inspect
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium
from gymnasium.vector.utils import batch_space
from pettingzoo import ParallelEnv
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from pufferlib import registry, vector
from pufferlib.buffers import Array
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.gymnasium_vector import GymnasiumVectorEnv, check_rows
from pufferlib.frameworks.pettingzoo import ByAgent, to_pettingzoo
from pufferlib.frameworks.zero_based import zero_based_actions, zero_based_observations
from pufferlib.registry import creators

__all__ = ["RLlibMultiAgentEnv", "RLlibVectorEnv", "to_multi_agent", "to_rllib"]

Creator = Callable[..., Any]
EnvConfig = Mapping[str, Any]


def to_rllib(
    env_creator: str | Creator, *, backend: Any = None, **options: Any
) -> Callable[[EnvConfig], "RLlibVectorEnv"]:
    """Return what ``ray.tune.register_env`` takes: a function that makes the vector environment of an ``EnvRunner``.

    RLlib must be told to use it: ``config.env_runners(gym_env_vectorize_mode="vector_entry_point")``. It has a row for
    each of ``num_envs_per_env_runner`` agents. The keys of ``env_config`` are keywords of the environment.

    Args:
        env_creator: Name of an environment, as ``pufferlib.make`` takes it, a class of ``gymnasium.Env``, or a class or
            function that makes a ``PufferEnv``.
        backend: Of ``pufferlib.vector.make``; None for the native one where the environment has it, else "Serial".
        **options: More of ``pufferlib.vector.make``: ``num_workers``, ``overwork``, ``on_crash``, or a ``seed`` for
            when RLlib has none.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
    """
    creator = registry.env_creator(env_creator, "to_rllib") if isinstance(env_creator, str) else env_creator
    if inspect.isclass(creator) and issubclass(creator, gymnasium.Env) and not issubclass(creator, GymnasiumPufferEnv):
        creator = functools.partial(_emulated, creator)
    if backend is None:
        is_native = creators.batches_itself(creator) and "num_envs" in creators.own_keywords(creator)
        backend = "PufferEnv" if is_native else "Serial"
    options = {"autoreset": "next_step", "backend": backend, **options}
    return functools.partial(_make_vector_env, creator, options)


def _emulated(
    env_class: type[gymnasium.Env[Any, Any]],
    /,
    buf: Mapping[str, Array] | None = None,
    seed: int = 0,
    **keywords: Any,
) -> GymnasiumPufferEnv:
    return GymnasiumPufferEnv(env_class(**keywords), buf=buf, seed=seed)


def _make_vector_env(creator: Creator, options: Mapping[str, Any], config: EnvConfig) -> "RLlibVectorEnv":
    keywords = dict(config)
    num_rows = keywords.pop("num_envs", None)
    if num_rows is None:
        raise APIUsageError(
            "to_rllib: RLlib must ask for a vector environment, and asked for a single one; set "
            'config.env_runners(gym_env_vectorize_mode="vector_entry_point"), or use to_multi_agent'
        )
    # Runners would all play the same episodes, from the same seed, unless RLlib gives them theirs at the first reset.
    options = {"seed": secrets.randbits(31), **options}
    vecenv = _make(creator, options, keywords, num_rows)
    try:
        check_rows("to_rllib", vecenv)
        if (agents := vecenv.num_agents // num_rows) > 1:  # of each game: as many games as have so many rows
            vecenv.close()
            if num_rows % agents:
                raise APIUsageError(
                    f"to_rllib: num_envs_per_env_runner counts agents, and must be a multiple of the {agents} of an "
                    f"environment, got {num_rows}"
                )
            vecenv = _make(creator, options, keywords, num_rows // agents)
        if vecenv.autoreset != "next_step":
            raise APIUsageError(
                f'to_rllib: autoreset must be "next_step", which RLlib expects, got {vecenv.autoreset!r}; leave the '
                "option out, or give the environment a keyword autoreset"
            )
        return RLlibVectorEnv(vecenv)
    except APIUsageError:
        vecenv.close()
        raise


def _make(creator: Creator, options: Mapping[str, Any], keywords: Mapping[str, Any], num_envs: int) -> Any:
    if options["backend"] in ("PufferEnv", "native", PufferEnv):
        return vector.make(creator, env_kwargs={**keywords, "num_envs": num_envs}, **options)
    with _without_ids_of_rllib():
        return vector.make(creator, env_kwargs=keywords, num_envs=num_envs, **options)


@contextlib.contextmanager
def _without_ids_of_rllib() -> Iterator[None]:
    """Hide what RLlib registers with Gymnasium: workers get what is registered, and would import RLlib for it."""
    hidden = {name: spec for name, spec in gymnasium.registry.items() if name.startswith("rllib-")}
    for name in hidden:
        del gymnasium.registry[name]
    try:
        yield
    finally:
        gymnasium.registry.update(hidden)


class RLlibVectorEnv(GymnasiumVectorEnv):
    """Vector environment of an ``EnvRunner``, as ``to_rllib`` makes it.

    RLlib counts integers from 0 along one axis. A Discrete or MultiDiscrete that starts elsewhere or has several axes
    is shown as one that does not, and actions are converted back. A Box of integers is shown as a Box of float32,
    whose actions are rounded.

    Args:
        vecenv: Vector environment with autoreset "next_step". It belongs to the result from now on.

    Raises:
        APIUsageError: See ``to_gymnasium``.
    """

    def __init__(self, vecenv: Any) -> None:
        super().__init__(vecenv)
        self.single_observation_space, self._counted = zero_based_observations(self.single_observation_space)
        self.single_action_space, self._own_actions = zero_based_actions("to_rllib", self.single_action_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def step(self, actions: Any) -> Any:
        """Act in every row, with actions of the spaces that RLlib sees."""
        return super().step(actions if self._own_actions is None else self._own_actions(actions))

    def _observed(self, observations: Array) -> Any:
        shown = super()._observed(observations)
        return shown if self._counted is None else self._counted(shown)


def to_multi_agent(env: Any) -> "RLlibMultiAgentEnv":
    """Give an environment with several agents RLlib's interface, for policies that differ between agents.

    Args:
        env: A parallel environment of PettingZoo, or a native one with one game; it belongs to the result from now on.

    Raises:
        APIUsageError: It is emulated or a vector environment, or spends steps on resets.
    """
    return RLlibMultiAgentEnv(env)


class RLlibMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]  # ray.rllib has no types
    """``to_multi_agent`` explains the argument.

    The episode is over when the last agent has left, truncated if one of the last was cut off. Spaces are those that
    ``RLlibVectorEnv`` shows.
    """

    def __init__(self, env: Any) -> None:
        super().__init__()
        self._env = env if isinstance(env, ParallelEnv) and not getattr(env, "emulated", False) else to_pettingzoo(env)
        self.agents = self.possible_agents = list(self._env.possible_agents)
        shown = {agent: zero_based_observations(self._env.observation_space(agent)) for agent in self.possible_agents}
        taken = {
            agent: zero_based_actions("to_multi_agent", self._env.action_space(agent)) for agent in self.possible_agents
        }
        self.observation_spaces = {agent: space for agent, (space, _) in shown.items()}
        self.action_spaces = {agent: space for agent, (space, _) in taken.items()}
        self._counted = {agent: convert for agent, (_, convert) in shown.items() if convert is not None}
        self._own_actions = {agent: convert for agent, (_, convert) in taken.items() if convert is not None}
        self.metadata = dict(getattr(self._env, "metadata", {}))
        self.render_mode = getattr(self._env, "render_mode", None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        """Start a new episode of every agent."""
        observations, infos = self._env.reset(seed=seed, options=options)
        return _converted(self._counted, observations), infos

    def step(self, action_dict: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Act with every agent that is there; "__all__" says of the episode what is said of agents."""
        observations, rewards, terminated, truncated, infos = self._env.step(_converted(self._own_actions, action_dict))
        is_over = not self._env.agents
        is_cut = is_over and any(truncated.values())
        terminated = {**terminated, "__all__": is_over and not is_cut}
        # At the end only of the episode: RLlib takes one whose agents are all done by name for terminated.
        truncated = {"__all__": True} if is_cut else {**truncated, "__all__": False}
        return _converted(self._counted, observations), rewards, terminated, truncated, infos

    def render(self) -> Any:
        """A picture, or what the ``render_mode`` shows."""
        return self._env.render()

    def close(self) -> None:
        """Close the environment behind."""
        self._env.close()


def _converted(conversions: Mapping[str, Callable[[Any], Any]], values: ByAgent) -> ByAgent:
    """Convert the values of agents that have a conversion."""
    if not conversions:
        return values
    return {agent: conversions[agent](value) if agent in conversions else value for agent, value in values.items()}
