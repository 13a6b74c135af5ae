"""PettingZoo environments with any spaces and any number of living agents, as fixed flat rows."""

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
    """Parallel environment with flat spaces and a fixed row for each agent, around one of PettingZoo.

    ``step``, ``done`` and ``agents`` are compiled (``_steps.pyx``).

    Every agent of ``possible_agents`` has one row of the batch, in that order. An agent that is
    not there has a zero observation, reward 0 and mask False; its action is ignored. Its
    ``terminals`` or ``truncations`` row is True only in the step in which it ended, in which its
    mask is still True. When ``buf`` is given, as by the vector layer, the observations that
    ``reset`` and ``step`` return are views of the rows, which show the newest ones only. Otherwise
    they are arrays of their own, which wrappers and learners may keep.

    Attributes:
        emulated: ``observation_dtype`` (of the flat rows), ``emulated_observation_dtype``
            (structured), as ``pufferlib.pytorch.nativize_dtype`` takes them, and
            ``observation_bounds``, the lowest and highest number of each array, in dicts by field.
        obs_dtype: The structured dtype; ``flat.view(env.obs_dtype)`` restores the fields. The
            dtype of the elements when the space has no fields.
        is_obs_emulated: Whether the observation space is another than the environment's.
        is_atn_emulated: Whether the action space is.
        agents: Those that act in the next step, in the order of ``possible_agents``.

    Args:
        env: The environment to wrap, parallel or turn-based (AEC) if it can be made parallel, or
        env_creator: a function that makes it, with
        env_args: its positional arguments and
        env_kwargs: its keyword arguments.
        buf: Arrays to write into, with one row per possible agent; None allocates new ones.
        seed: Of the first ``reset``, when that is given none; None: no two environments play alike.
        max_length: The most items of a Sequence in an observation.
        max_nodes: The most nodes of a Graph,
        max_edges: and its most edges.

    Raises:
        APIUsageError: Not exactly one of ``env`` and ``env_creator``, no ``possible_agents``, or
            spaces that differ between agents or cannot be emulated.
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
        """Recipe for copy and pickle, which the wrapped environment must allow too."""
        return self._copied_as(PettingZooPufferEnv)

    @property
    def num_agents(self) -> int:
        """Number of possible agents, which is the number of rows."""
        return len(self.possible_agents)

    def observation_space(self, agent: Agent) -> Space:
        """The flat space, which all agents share."""
        self._row(agent)
        return self.single_observation_space

    def action_space(self, agent: Agent) -> Space:
        """The flat action space, which all agents share."""
        self._row(agent)
        return self.single_action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[PerAgent, PerAgent]:
        """Start an episode. Returns a flat observation for every possible agent, and the infos."""
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
        """The global state of the wrapped environment."""
        return self.env.state()

    @property
    def unwrapped(self) -> ParallelEnv[Agent, Any, Any]:
        """The innermost environment."""
        return self.env.unwrapped


def _possible_agents(where: str, env: ParallelEnv[Agent, Any, Any]) -> list[Agent]:
    agents = list(getattr(env, "possible_agents", None) or ())
    if not agents:
        raise APIUsageError(f"{where}: {env} has no possible_agents; define the list of all agents that may ever act")
    return agents


def _common_space(where: str, name: str, env: ParallelEnv[Agent, Any, Any]) -> Space:
    """The space that all agents share."""
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
