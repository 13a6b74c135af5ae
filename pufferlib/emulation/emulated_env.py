"""Base of emulated environments: flat spaces, rows of a batch, and the seed of the first episode."""

from typing import Any, Self, cast

from gymnasium.spaces import Box

from pufferlib.buffers import RowArrays
from pufferlib.emulation.construct import two_values
from pufferlib.emulation.layout import Layout, Limits, action_layout, observation_layout
from pufferlib.spaces import Space

__all__ = ["EmulatedEnv"]


class EmulatedEnv(RowArrays):
    """State that Gymnasium's and PettingZoo's emulated environments have alike."""

    env: Any
    single_observation_space: Box
    single_action_space: Space
    _first_seed: int | None = None

    def _flatten(self, observation_space: Space, action_space: Space, limits: Limits) -> tuple[Layout, Layout]:
        """Set the spaces of one agent and the attributes that describe them; return the layouts of both."""
        observations, actions = observation_layout(observation_space, limits), action_layout(action_space)
        self.single_observation_space = cast(Box, observations.flat_space)
        self.single_action_space = actions.flat_space
        self.is_obs_emulated = observations.is_emulated
        self.is_atn_emulated = actions.is_emulated
        self.obs_dtype = observations.dtype.base
        self.emulated = observations.emulated
        return observations, actions

    def _reset_wrapped(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Any]:
        """Reset the wrapped environment, without a ``seed`` by that of the constructor, once."""
        if self._first_seed is not None:
            seed = self._first_seed if seed is None else seed
            self._first_seed = None
        return two_values(self.env, self.env.reset(seed=seed, options=options))

    def notify(self) -> None:
        """Hear of ``vecenv.notify()``: call ``notify()`` of the wrapped environment, past wrappers that have none.

        Raises:
            NotImplementedError: It has none.
        """
        env = self.env
        while not hasattr(env, "notify") and hasattr(env, "env"):
            env = env.env
        if not hasattr(env, "notify"):
            raise NotImplementedError(f"{type(env).__name__}: define notify()")
        env.notify()

    @property
    def driver_env(self) -> Self:
        """Itself, as the environment that describes the batch."""
        return self
