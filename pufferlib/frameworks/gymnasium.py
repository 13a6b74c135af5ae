"""Ocean environments for ``gymnasium.make`` and ``gymnasium.make_vec``."""

from typing import Any

import gymnasium
import numpy as np

from pufferlib import registry
from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.vector import GymnasiumVectorEnv, to_gymnasium

__all__ = ["GameEnv", "make_vector_env"]


class GameEnv(gymnasium.Env[Array, Any]):
    """Single game of a native environment, with the episode interface of Gymnasium.

    Args:
        name: Environment name, as for ``pufferlib.make``.
        render_mode: None, "rgb_array", "human" or "ansi".
        **kwargs: Keyword arguments of the environment.

    Raises:
        APIUsageError: The environment has more than one agent.
        UnknownKeywordError: The environment does not have one of the keyword arguments.
    """

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 15.0,
    }

    def __init__(self, name: str, render_mode: str | None = None, **kwargs: Any) -> None:
        self._env = registry.make(name, num_envs=1, render_mode=render_mode, log_interval=1, **kwargs)
        if self._env.num_agents != 1:
            agents = self._env.num_agents
            self._env.close()
            raise APIUsageError(
                f"gymnasium.make: an environment must have one agent, got {agents} in puffer/{name}; use "
                f"gymnasium.make_vec, pufferlib.make({name!r}), or pufferlib.frameworks.pettingzoo.to_pettingzoo of it"
            )
        self.observation_space = self._env.single_observation_space
        self.action_space = self._env.single_action_space
        self.render_mode = render_mode
        self.metadata = self._env.metadata

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start a new episode.

        Raises:
            APIUsageError: Options were given, which native environments do not support.
        """
        if options:
            raise APIUsageError(
                f"gymnasium.make: a native environment has keywords instead of options, got options={options!r:.80}; "
                f'give them to gymnasium.make("puffer/{self._env.name}")'
            )
        super().reset(seed=seed)
        if seed is None and self._np_random is None:
            seed = int(self.np_random.integers(2**31))
        observations, _ = self._env.reset(seed)
        return observations[0].copy(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        observations, rewards, terminals, truncations, infos = self._env.step(np.asarray(action)[None])
        terminated, truncated = bool(terminals[0]), bool(truncations[0])
        is_reset = (terminated or truncated) and self._env.autoreset == AutoresetMode.SAME_STEP
        shown = self._env.final_observations if is_reset else observations
        return shown[0].copy(), float(rewards[0]), terminated, truncated, infos[0] if infos else {}

    def render(self) -> Any:
        """Render the current frame as ``render_mode`` requires. Return None without a ``render_mode``."""
        return self._env.render() if self.render_mode else None

    def close(self) -> None:
        """Release all resources of the environment."""
        self._env.close()


def make_vector_env(name: str, num_envs: int = 1, **kwargs: Any) -> GymnasiumVectorEnv:
    """Create a vector environment of ``num_envs`` games, stepped together in C."""
    return to_gymnasium(registry.make(name, num_envs=num_envs, **kwargs))
