"""PettingZoo environments with any spaces and number of living agents as environments with fixed flat rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import aec_to_parallel

from pufferlib.buffers import Array, set_buffers
from pufferlib.emulation._steps import PettingZooStep
from pufferlib.emulation.actions import ActionDecoder
from pufferlib.emulation.construct import wrapped_env
from pufferlib.emulation.emulated_env import EmulatedEnv
from pufferlib.emulation.layout import Limits
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, same_space

__all__ = ["PettingZooPufferEnv"]

Agent = Any
PerAgent = dict[Agent, Any]


class PettingZooPufferEnv(PettingZooStep, EmulatedEnv, ParallelEnv[Agent, Array, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """Parallel environment with flat spaces and a fixed row for each agent, around a PettingZoo environment.

    ``step``, ``done`` and ``agents`` are compiled (``_steps.pyx``).

    Each agent of ``possible_agents`` has one row of the batch, in this order. An absent agent has a zero observation,
    reward 0 and mask False, and its action is ignored. When an agent's episode ends, its ``terminals`` or
    ``truncations`` row is True in this step only, and its mask is still True. If ``buf`` is given, as in vector
    environments, the observations that ``reset`` and ``step`` return are views of the rows, which later steps
    overwrite. Otherwise they are new arrays, which wrappers and learners may keep.

    Attributes:
        emulated: Dict with ``observation_dtype`` (of the flat rows) and ``emulated_observation_dtype`` (structured) for
            ``pufferlib.pytorch.nativize_dtype``, and ``observation_bounds``, the lowest and highest value of each
            array, in dicts by field.
        obs_dtype: Structured dtype. ``flat.view(env.obs_dtype)`` restores the fields. If the space has no fields, the
            dtype of its elements.
        is_obs_emulated: Whether the observation space differs from the wrapped environment's.
        is_atn_emulated: Whether the action space differs from the wrapped environment's.
        agents: Agents that act in the next step, in the order of ``possible_agents``.

    Args:
        env: Environment to wrap, parallel or turn-based (AEC) if it can be converted to parallel. Pass either this or
            ``env_creator``.
        env_creator: Function that creates the environment.
        env_args: Positional arguments of ``env_creator``.
        env_kwargs: Keyword arguments of ``env_creator``.
        buf: Arrays to write into, with one row per possible agent. None allocates new ones.
        seed: Seed of the first ``reset``, if that is called without a seed. With None, every environment plays
            differently.
        max_length: Largest number of items of a Sequence in an observation.
        max_nodes: Largest number of nodes of a Graph.
        max_edges: Largest number of edges of a Graph.

    Raises:
        APIUsageError: Not exactly one of ``env`` and ``env_creator`` is given, the environment is not a PettingZoo
            environment or cannot be converted to parallel, ``possible_agents`` is missing, or spaces differ between
            agents or cannot be emulated.
    """

    def __init__(
        self,
        env: ParallelEnv[Agent, Any, Any] | AECEnv[Agent, Any, Any] | None = None,
        env_creator: Callable[..., Any] | None = None,
        env_args: Sequence[Any] = (),
        env_kwargs: Mapping[str, Any] | None = None,
        buf: Mapping[str, Array] | None = None,
        seed: int | None = None,
        max_length: int | None = None,
        max_nodes: int | None = None,
        max_edges: int | None = None,
    ) -> None:
        where = type(self).__name__
        env = wrapped_env(where, (ParallelEnv, AECEnv), env, env_creator, env_args, env_kwargs)
        self.env: ParallelEnv[Agent, Any, Any] = aec_to_parallel(env) if isinstance(env, AECEnv) else env
        self.possible_agents: list[Agent] = _possible_agents(where, self.env)
        self.metadata = getattr(self.env, "metadata", None) or {}
        self.render_mode = getattr(self.env, "render_mode", None)
        observation_space, action_space = (_common_space(where, name, self.env) for name in ("observation", "action"))
        limits = Limits(max_length, max_nodes, max_edges)
        layout, actions = self._flatten(observation_space, action_space, limits)
        decoder = ActionDecoder(f"{where}.step", actions)
        self._prepare_agents(layout, actions, decoder, self.possible_agents, is_shared=buf is not None)
        set_buffers(self, buf)
        self._first_seed = seed
        self._made_with = frozenset(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of copy and pickle, which the wrapped environment must support too."""
        return self._reduce_as(PettingZooPufferEnv)

    @property
    def num_agents(self) -> int:
        """Number of possible agents, equal to the number of rows."""
        return len(self.possible_agents)

    def observation_space(self, agent: Agent) -> Space:
        """Return the flat observation space, which is the same for all agents."""
        self._row(agent)
        return self.single_observation_space

    def action_space(self, agent: Agent) -> Space:
        """Return the flat action space, which is the same for all agents."""
        self._row(agent)
        return self.single_action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. Return a flat observation for every possible agent, and the infos."""
        observations, infos = self._reset_wrapped(seed, options)
        return self._begin(observations), infos

    def render(self) -> Any:
        """Render the wrapped environment."""
        return self.env.render()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the wrapped environment."""
        self.env.close()

    def state(self) -> Any:
        """Return the global state of the wrapped environment."""
        return self.env.state()

    @property
    def unwrapped(self) -> ParallelEnv[Agent, Any, Any]:
        """Innermost environment."""
        return self.env.unwrapped


def _possible_agents(where: str, env: ParallelEnv[Agent, Any, Any]) -> list[Agent]:
    agents = list(getattr(env, "possible_agents", None) or ())
    if twice := [agent for index, agent in enumerate(agents) if agent in agents[:index]]:
        raise APIUsageError(
            f"{where}: the names in possible_agents must differ, got {twice[0]!r} twice in {agents!r:.200}"
        )
    if not agents:
        raise APIUsageError(f"{where}: {env} has no possible_agents; define the list of all agents that may ever act")
    return agents


def _common_space(where: str, name: str, env: ParallelEnv[Agent, Any, Any]) -> Space:
    """Return the space that all agents share."""
    first, *others = env.possible_agents
    space_of: Callable[[Agent], Space] = getattr(env, f"{name}_space")
    space = space_of(first)
    for agent in others:
        if not same_space(space_of(agent), space):
            raise APIUsageError(
                f"{where}: all agents must have the same {name} space, got {space} for {first!r} "
                f"and {space_of(agent)} for {agent!r}; wrap it in pufferlib.wrappers.PadAgents"
            )
    return space
