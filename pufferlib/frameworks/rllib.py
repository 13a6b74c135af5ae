"""Adapters to RLlib's environment interfaces, for its new API stack.

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
from pufferlib.env import AutoresetMode, PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.gymnasium_vector import GymnasiumVectorEnv
from pufferlib.frameworks.pettingzoo import ByAgent, to_pettingzoo
from pufferlib.frameworks.rows import check_rows
from pufferlib.frameworks.zero_based import zero_based_actions, zero_based_observations
from pufferlib.registry import creators
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["RLlibMultiAgentEnv", "RLlibVectorEnv", "to_multi_agent", "to_rllib"]

Creator = Callable[..., Any]
EnvConfig = Mapping[str, Any]


def to_rllib(
    env_creator: str | Creator, *, backend: Any = None, **options: Any
) -> Callable[[EnvConfig], "RLlibVectorEnv"]:
    """Return a function for ``ray.tune.register_env`` that creates the vector environment of an ``EnvRunner``.

    Set ``config.env_runners(gym_env_vectorize_mode="vector_entry_point")``, so that RLlib uses it. The vector
    environment has one row for each of ``num_envs_per_env_runner`` agents. The keys of ``env_config`` are keyword
    arguments of the environment.

    Args:
        env_creator: Environment name, as for ``pufferlib.make``, a ``gymnasium.Env`` class, or a class or function that
            creates a ``PufferEnv``.
        backend: Backend of ``pufferlib.vector.make``. None uses the native one if the environment supports it, else
            "Serial".
        **options: Further arguments of ``pufferlib.vector.make``: ``num_workers``, ``overwork``, ``on_crash``, or a
            ``seed`` that is used if RLlib sets none.

    Raises:
        UnknownNameError: No environment has this name. The closest matches are suggested.
    """
    creator = registry.env_creator(env_creator, "to_rllib") if isinstance(env_creator, str) else env_creator
    if inspect.isclass(creator) and issubclass(creator, gymnasium.Env) and not issubclass(creator, GymnasiumPufferEnv):
        creator = functools.partial(_emulated, creator)
    if backend is None:
        is_native = creators.batches_itself(creator) and "num_envs" in creators.own_keywords(creator)
        backend = "PufferEnv" if is_native else "Serial"
    options = {"autoreset": AutoresetMode.NEXT_STEP, "backend": backend, **options}
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
    # Without a random seed, all runners would play the same episodes until RLlib seeds them at the first reset.
    options = {"seed": secrets.randbits(31), **options}
    vecenv = _make(creator, options, keywords, num_rows)
    try:
        check_rows("to_rllib", vecenv)
        if (agents := vecenv.num_agents // num_rows) > 1:  # RLlib counts rows, so fewer environments are needed
            vecenv.close()
            if num_rows % agents:
                raise APIUsageError(
                    f"to_rllib: num_envs_per_env_runner counts agents, and must be a multiple of the {agents} of an "
                    f"environment, got {num_rows}"
                )
            vecenv = _make(creator, options, keywords, num_rows // agents)
        if vecenv.autoreset != AutoresetMode.NEXT_STEP:
            raise APIUsageError(
                f'to_rllib: autoreset must be "next_step", which RLlib expects, got {vecenv.autoreset!r}; leave the '
                "option out, or give the environment a keyword autoreset"
            )
        return RLlibVectorEnv(vecenv)
    except BaseException:
        vecenv.close()
        raise


def _make(creator: Creator, options: Mapping[str, Any], keywords: Mapping[str, Any], num_envs: int) -> Any:
    if options["backend"] in ("PufferEnv", "native", PufferEnv):
        return vector.make(creator, env_kwargs={**keywords, "num_envs": num_envs}, **options)
    with _without_ids_of_rllib():
        return vector.make(creator, env_kwargs=keywords, num_envs=num_envs, **options)


@contextlib.contextmanager
def _without_ids_of_rllib() -> Iterator[None]:
    """Hide RLlib's own entries of Gymnasium's registry. Workers get a copy and would have to import RLlib for them."""
    hidden = {name: spec for name, spec in gymnasium.registry.items() if name.startswith("rllib-")}
    for name in hidden:
        del gymnasium.registry[name]
    try:
        yield
    finally:
        gymnasium.registry.update(hidden)


class RLlibVectorEnv(GymnasiumVectorEnv):
    """Vector environment of an ``EnvRunner``, created by ``to_rllib``.

    RLlib expects integers that start at 0 and have one axis. Other Discrete and MultiDiscrete spaces are converted to
    such spaces, and actions are converted back. A Box of integers becomes a Box of float32, and its actions are
    rounded.

    Args:
        vecenv: Vector environment with autoreset "next_step". The result owns it.

    Raises:
        APIUsageError: The environments do not fit Gymnasium's vector interface. See ``to_gymnasium``.
    """

    def __init__(self, vecenv: AnyVectorEnv) -> None:
        super().__init__(vecenv)
        self.single_observation_space, self._to_zero_based = zero_based_observations(self.single_observation_space)
        self.single_action_space, self._from_zero_based = zero_based_actions("to_rllib", self.single_action_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def step(self, actions: Any) -> Any:
        """Take one step in every row, with actions from the spaces that RLlib sees."""
        return super().step(actions if self._from_zero_based is None else self._from_zero_based(actions))

    def _prepare_observations(self, observations: Array) -> Any:
        shown = super()._prepare_observations(observations)
        return shown if self._to_zero_based is None else self._to_zero_based(shown)


def to_multi_agent(env: Any) -> "RLlibMultiAgentEnv":
    """Wrap an environment with several agents for RLlib, which can then train a different policy for each agent.

    Args:
        env: PettingZoo parallel environment, or native environment with one game. The result owns it.

    Raises:
        APIUsageError: ``env`` is emulated or a vector environment, or its autoreset mode is "next_step".
    """
    return RLlibMultiAgentEnv(env)


class RLlibMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]  # ray.rllib has no types
    """RLlib multi-agent environment, created by ``to_multi_agent``.

    The episode ends when the last agent has left. It counts as truncated if one of the last agents was truncated.
    Spaces are converted as in ``RLlibVectorEnv``.
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
        self._to_zero_based = {agent: convert for agent, (_, convert) in shown.items() if convert is not None}
        self._from_zero_based = {agent: convert for agent, (_, convert) in taken.items() if convert is not None}
        self.metadata = dict(getattr(self._env, "metadata", {}))
        self.render_mode = getattr(self._env, "render_mode", None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        """Start a new episode of every agent."""
        observations, infos = self._env.reset(seed=seed, options=options)
        return _converted(self._to_zero_based, observations), infos

    def step(self, action_dict: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Take one step with every present agent. The key "__all__" holds the end of the episode."""
        observations, rewards, terminated, truncated, infos = self._env.step(
            _converted(self._from_zero_based, action_dict)
        )
        is_over = not self._env.agents
        is_cut = is_over and any(truncated.values())
        terminated = {**terminated, "__all__": is_over and not is_cut}
        # Only "__all__" at the end of a truncated episode: if RLlib finds all agents by name, it assumes termination.
        truncated = {"__all__": True} if is_cut else {**truncated, "__all__": False}
        return _converted(self._to_zero_based, observations), rewards, terminated, truncated, infos

    def render(self) -> Any:
        """Render the current frame as ``render_mode`` requires."""
        return self._env.render()

    def close(self) -> None:
        """Close the wrapped environment."""
        self._env.close()


def _converted(conversions: Mapping[str, Callable[[Any], Any]], values: ByAgent) -> ByAgent:
    """Convert the values of agents that have a conversion."""
    if not conversions:
        return values
    return {agent: conversions[agent](value) if agent in conversions else value for agent, value in values.items()}
