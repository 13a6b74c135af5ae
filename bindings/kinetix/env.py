"""Kinetix as a batch on JAX. Imported only in the isolated process."""

from typing import Any

# Imported first, because importing kinetix compiles programs, and this module sets the cache folder.
from .._shared.jax.batch import JaxBatch, JaxFunctions

# isort: split
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from kinetix.environment import ActionType, EnvParams, ObservationType, make_kinetix_env, static_env_params_from_size
from kinetix.environment.ued.ued import make_reset_fn_sample_kinetix_level
from kinetix.render.renderer_pixels import make_render_pixels
from kinetix.util.saving import load_from_json_file

from pufferlib.buffers import BufferSource
from pufferlib.spaces import Space

__all__ = ["make"]


def make(
    name: str,
    num_envs: int,
    seed: int,
    render_mode: str | None,
    action: str,
    max_timesteps: int,
    dense_reward: float,
    buf: BufferSource,
) -> JaxBatch:
    """Make the batch that ``pufferlib.bindings.kinetix`` describes."""
    size, _, level = name.removeprefix("random-").partition("/")
    if level:
        start, static, _ = load_from_json_file(f"{name}.json")
        params = EnvParams(max_timesteps=max_timesteps, dense_reward_scale=dense_reward)
        static = static.replace(frame_skip=static_env_params_from_size(size).frame_skip)
    else:
        params = EnvParams(max_timesteps=max_timesteps, dense_reward_scale=dense_reward)
        static = static_env_params_from_size(size)
        start = None
    env = make_kinetix_env(
        ActionType[action.upper()], ObservationType.SYMBOLIC_FLAT, None, params, static, auto_reset=False
    )
    sample = make_reset_fn_sample_kinetix_level(params, static)

    def reset(key: Any) -> tuple[Any, Any]:
        observation, state = env.reset(key, params, start if level else sample(key))
        return _finite(observation), state

    # With a later limit, the package's `done` is a touch or unstable physics, also in the last step.
    later = params.replace(max_timesteps=max_timesteps + 1)

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        observation, state, reward, terminated, info = env.step(key, state, action, later)
        truncated = state.timestep >= max_timesteps
        return _finite(observation), state, jnp.nan_to_num(reward), terminated, truncated, {"perf": info["GoalR"]}

    shape = env.observation_space(params).shape
    space = Box(-np.inf, np.inf, shape, np.float32)
    draw = make_render_pixels(params, static.replace(downscale=1))
    actions = _action_space(env, params, action)
    functions = JaxFunctions(space, actions, reset, step, lambda state: _upright(draw(state)))
    return JaxBatch(functions, num_envs, seed, render_mode, buf=buf)


def _action_space(env: Any, params: Any, action: str) -> Space:
    space = env.action_space(params)
    if action == "discrete":
        return Discrete(int(space.n))
    if action == "multi_discrete":
        return MultiDiscrete(np.asarray(space.number_of_dims_per_distribution))
    return Box(-1.0, 1.0, space.shape, np.float32)


def _finite(observation: Any) -> Any:
    """Replace NaN and infinities, which occur when unstable physics ends an episode, by 0."""
    return jnp.nan_to_num(observation, posinf=0.0, neginf=0.0)


def _upright(pixels: Any) -> Any:
    """Convert from the renderer's axes (x, then y upwards) to an image."""
    return pixels.transpose(1, 0, 2)[::-1]
