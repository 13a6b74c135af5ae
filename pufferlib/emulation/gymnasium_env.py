"""Gymnasium environments with any spaces, seen as one flat observation and one simple action."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from pufferlib.buffers import Array, set_buffers
from pufferlib.emulation._steps import GymnasiumStep
from pufferlib.emulation.actions import ActionDecoder
from pufferlib.emulation.construct import wrapped_env
from pufferlib.emulation.emulated_env import EmulatedEnv
from pufferlib.emulation.layout import Limits

__all__ = ["GymnasiumPufferEnv"]


class GymnasiumPufferEnv(GymnasiumStep, EmulatedEnv, gymnasium.Wrapper[Array, Any, Any, Any], RecordConstructorArgs):
    """Gymnasium environment with flat spaces around one with any spaces.

    ``step`` and ``done`` are compiled (``_steps.pyx``).

    Observations are written into ``observations``, rewards into ``rewards`` and so on: one row of
    a batch. When ``buf`` is given, as by the vector layer, ``reset`` and ``step`` return a view of
    that row, which shows the newest observation only. Otherwise each returns an array of its own,
    so that wrappers and learners may keep what they get, as of any Gymnasium environment.

    ``gymnasium.make(env.spec)`` makes it again, with arrays of its own.

    Attributes:
        emulated: ``observation_dtype`` (of the flat row), ``emulated_observation_dtype``
            (structured), as ``pufferlib.pytorch.nativize_dtype`` takes them, and
            ``observation_bounds``, the lowest and highest number of each array, in dicts by field.
        obs_dtype: The structured dtype; ``flat.view(env.obs_dtype)`` restores the fields. The
            dtype of the elements when the space has no fields.
        is_obs_emulated: Whether the observation space is another than the environment's.
        is_atn_emulated: Whether the action space is.

    Args:
        env: The environment to wrap, or
        env_creator: a function that makes it, with
        env_args: its positional arguments and
        env_kwargs: its keyword arguments.
        buf: Arrays to write into, with one row; None allocates new ones.
        seed: Of the first ``reset``, when that is given none; None: no two environments play alike.
        max_length: The most items of a Sequence in an observation.
        max_nodes: The most nodes of a Graph,
        max_edges: and its most edges.

    Raises:
        APIUsageError: Not exactly one of ``env`` and ``env_creator``, or a space that cannot be
            emulated.
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
        layout, actions = self._flatten(self.env.observation_space, self.env.action_space, limits)
        self.observation_space, self.action_space = layout.flat_space, actions.flat_space
        self._prepare(layout, actions, ActionDecoder(f"{where}.step", actions), 1, is_shared=buf is not None)
        set_buffers(self, buf)
        self._first_seed = seed
        self._made_with = frozenset(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Recipe for copy and pickle, which the wrapped environment must allow too."""
        return self._copied_as(GymnasiumPufferEnv)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode. Returns the flat observation, a view of its row if that is given, and the info."""
        observation, info = self._reset_wrapped(seed, options)
        return self._begin(observation), info
