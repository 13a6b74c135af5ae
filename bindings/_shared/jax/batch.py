"""A batch of functional JAX environments as one PufferEnv. Runs in an isolated process."""

import hashlib
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array, BufferSource
from pufferlib.env import Infos, PufferEnv, Stepped
from pufferlib.seeding import env_seed
from pufferlib.spaces import Space

__all__ = ["JaxBatch", "JaxFunctions"]


def _processor() -> str:
    """Return a short identifier of this kind of CPU, used as a folder name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    descriptions = [line for line in lines if line.startswith(("model name", "flags", "Features"))]  # one per core
    return hashlib.blake2b("\n".join(sorted({platform.machine(), *descriptions})).encode(), digest_size=8).hexdigest()


# Compiling takes up to a minute per program. The cache is separate for each kind of CPU, because machines that share
# a home folder may not run each other's code. Hundreds of small programs, which JAX does not cache by default, would
# take a third of every start.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pufferlib" / "jax" / _processor()
    jax.config.update("jax_compilation_cache_dir", str(folder))
if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@dataclass(frozen=True)
class JaxFunctions:
    """Pure functions of one environment, which ``JaxBatch`` vectorizes and compiles.

    Attributes:
        reset: Function key -> observation, state.
        step: Function key, state, action -> observation, state, reward, terminated, truncated, metrics (a dict of
            scalars). An episode that is both was terminated.
        draw: Function from a state to an image ``(height, width, 3)``, values 0 to 255.
    """

    observation_space: Box
    action_space: Space
    reset: Callable[[jax.Array], tuple[jax.Array, Any]]
    step: Callable[[jax.Array, Any, jax.Array], tuple[Any, ...]]
    draw: Callable[[Any], jax.Array]


class JaxBatch(PufferEnv):
    """``num_envs`` environments that step together, each with its own random stream.

    The next episode starts in the step that ends the last one. Only environments that ended are reset, in groups of a
    fixed size, for which one program is compiled. The usual way, resetting every environment in every step, would be
    slow, because generating a world can cost far more than a step.

    Args:
        functions: Functions of the environment.
        num_envs: Number of environments and of rows in the batch.
        seed: Seed of the first reset.
        render_mode: None or "rgb_array", which shows the first environment.
    """

    def __init__(
        self,
        functions: JaxFunctions,
        num_envs: int,
        seed: int = 0,
        render_mode: str | None = None,
        render_fps: float = 15.0,
        buf: BufferSource = None,
    ) -> None:
        self.single_observation_space = functions.observation_space
        self.single_action_space = functions.action_space
        self.num_agents = num_envs
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": render_fps}
        super().__init__(buf)
        self._seed = seed
        self._reset = jax.jit(jax.vmap(_split_then(functions.reset)))
        self._step = jax.jit(jax.vmap(_split_then(functions.step)))
        self._scatter = jax.jit(_scatter, donate_argnums=0)
        self._draw = jax.jit(lambda states: functions.draw(jax.tree.map(lambda leaf: leaf[0], states)))
        self._group = max(1, num_envs // 16)
        self._keys: Any = None
        self._states: Any = None
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, int)

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new episodes. Without a seed, random streams continue (the first reset uses the constructor's seed)."""
        if seed is None and self._keys is None:
            seed = self._seed
        if seed is not None:
            seeds = [env_seed(seed, index) for index in range(self.num_agents)]
            self._keys = jax.vmap(jax.random.PRNGKey)(np.array(seeds))
            _, (_, states) = jax.eval_shape(self._reset, self._keys[: self._group])  # the compiled size
            rows = (self.num_agents,)
            self._states = jax.tree.map(lambda leaf: jnp.zeros(rows + leaf.shape[1:], leaf.dtype), states)
        self._restart_all(np.arange(self.num_agents))
        self.rewards[:], self.terminals[:], self.truncations[:] = 0, False, False
        self._returns[:], self._lengths[:] = 0, 0
        return self.observations, []

    def step(self, actions: Any) -> Stepped:
        """Step every environment once."""
        self._keys, (observations, self._states, rewards, terminated, truncated, metrics) = self._step(
            self._keys, self._states, jnp.asarray(actions)
        )
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        self.observations[:] = observations
        self.rewards[:] = rewards
        self.terminals[:] = terminated
        self.truncations[:] = truncated & ~terminated
        self._returns += self.rewards
        self._lengths += 1
        ended = np.flatnonzero(terminated | truncated)
        infos = self._next_episodes(ended, metrics) if len(ended) else []
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def render(self) -> Array | None:
        """Return an image of the first environment, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        return np.asarray(self._draw(self._states)).clip(0, 255).astype(np.uint8)

    def close(self) -> None:
        """Release the states."""
        self._states = None

    def _next_episodes(self, ended: Array, metrics: dict[str, Any]) -> Infos:
        infos = self._episode_infos(ended, {name: np.asarray(values)[ended] for name, values in metrics.items()})
        self.final_observations[ended] = self.observations[ended]
        self._restart_all(ended)
        self._returns[ended], self._lengths[ended] = 0, 0
        return infos

    def _restart_all(self, rows: Array) -> None:
        for start in range(0, len(rows), self._group):
            # Pad the group with its last row. Duplicates compute the same result.
            group = np.pad(rows[start : start + self._group], (0, self._group), "edge")[: self._group]
            keys, (observations, states) = self._reset(self._keys[group])
            self._keys, self._states = self._scatter((self._keys, self._states), group, (keys, states))
            self.observations[group] = observations

    def _episode_infos(self, ended: Array, metrics: dict[str, Array]) -> Infos:
        return [
            {
                "score": float(self._returns[row]),
                "episode_return": float(self._returns[row]),
                "episode_length": int(self._lengths[row]),
                **{name: float(values[number]) for name, values in metrics.items()},
            }
            for number, row in enumerate(ended)
        ]


def _split_then(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function`` so that it uses a fresh key, and return the next key along with its result."""

    def call(key: jax.Array, *arguments: Any) -> tuple[jax.Array, Any]:
        kept, used = jax.random.split(key)
        return kept, function(used, *arguments)

    return call


def _scatter(states: Any, rows: jax.Array, fresh: Any) -> Any:
    return jax.tree.map(lambda all_of, some: all_of.at[rows].set(some), states, fresh)
