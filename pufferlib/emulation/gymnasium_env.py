"""Gymnasium environments with any spaces as environments with one flat observation and one simple action."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from pufferlib.buffers import Array, set_buffers
from pufferlib.emulation._steps import GymnasiumStep
from pufferlib.emulation.actions import ActionDecoder
from pufferlib.emulation.construct import space_of, wrapped_env
from pufferlib.emulation.emulated_env import EmulatedEnv
from pufferlib.emulation.layout import Limits

__all__ = ["GymnasiumPufferEnv"]


class GymnasiumPufferEnv(GymnasiumStep, EmulatedEnv, gymnasium.Wrapper[Array, Any, Any, Any], RecordConstructorArgs):
    """Gymnasium environment with flat spaces around an environment with any spaces.

    ``step`` and ``done`` are compiled (``_steps.pyx``).

    The arrays ``observations``, ``rewards`` and so on are one row of a batch. If ``buf`` is given, as in vector
    environments, ``reset`` and ``step`` return a view of this row, which later steps overwrite. Otherwise each returns
    its own array, which wrappers and learners may keep, as with any Gymnasium environment.

    ``gymnasium.make(env.spec)`` creates the environment again, with its own arrays.

    Attributes:
        emulated: Dict with ``observation_dtype`` (of the flat row) and ``emulated_observation_dtype`` (structured) for
            ``pufferlib.pytorch.nativize_dtype``, and ``observation_bounds``, the lowest and highest value of each
            array, in dicts by field.
        obs_dtype: Structured dtype. ``flat.view(env.obs_dtype)`` restores the fields. If the space has no fields, the
            dtype of its elements.
        is_obs_emulated: Whether the observation space differs from the wrapped environment's.
        is_atn_emulated: Whether the action space differs from the wrapped environment's.

    Args:
        env: Environment to wrap. Pass either this or ``env_creator``.
        env_creator: Function that creates the environment.
        env_args: Positional arguments of ``env_creator``.
        env_kwargs: Keyword arguments of ``env_creator``.
        buf: Arrays to write into, with one row. None allocates new ones.
        seed: Seed of the first ``reset``, if that is called without a seed. With None, every environment plays
            differently.
        max_length: Largest number of items of a Sequence in an observation.
        max_nodes: Largest number of nodes of a Graph.
        max_edges: Largest number of edges of a Graph.

    Raises:
        APIUsageError: Not exactly one of ``env`` and ``env_creator`` is given, the environment is not a Gymnasium
            environment, or a space is missing or cannot be emulated.
    """

    num_agents = 1

    def __init__(
        self,
        env: gymnasium.Env[Any, Any] | None = None,
        env_creator: Callable[..., gymnasium.Env[Any, Any]] | None = None,
        env_args: Sequence[Any] = (),
        env_kwargs: Mapping[str, Any] | None = None,
        buf: Mapping[str, Array] | None = None,
        seed: int | None = None,
        max_length: int | None = None,
        max_nodes: int | None = None,
        max_edges: int | None = None,
    ) -> None:
        where = type(self).__name__
        RecordConstructorArgs.__init__(self, seed=seed, max_length=max_length, max_nodes=max_nodes, max_edges=max_edges)
        super().__init__(wrapped_env(where, (gymnasium.Env,), env, env_creator, env_args, env_kwargs))
        limits = Limits(max_length, max_nodes, max_edges)
        spaces = [space_of(where, self.env, name) for name in ("observation_space", "action_space")]
        layout, actions = self._flatten(spaces[0], spaces[1], limits)
        self.observation_space, self.action_space = layout.flat_space, actions.flat_space
        self._prepare(layout, actions, ActionDecoder(f"{where}.step", actions), 1, is_shared=buf is not None)
        set_buffers(self, buf)
        self._first_seed = seed
        self._made_with = frozenset(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of copy and pickle, which the wrapped environment must support too."""
        return self._reduce_as(GymnasiumPufferEnv)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode. Return the flat observation, a view of its row if ``buf`` was given, and the info."""
        observation, info = self._reset_wrapped(seed, options)
        return self._begin(observation), info
