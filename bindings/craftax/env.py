"""Craftax as a batch on JAX. Imported only in the isolated process."""

import importlib
from typing import Any

import jax.numpy as jnp
import numpy as np
from craftax.craftax_env import make_craftax_env_from_name
from gymnasium.spaces import Box, Discrete

from pufferlib.buffers import BufferSource

from .._shared.jax.batch import JaxBatch, JaxFunctions

__all__ = ["make"]


def make(
    name: str, num_envs: int, seed: int, render_mode: str | None, max_timesteps: int | None, buf: BufferSource
) -> JaxBatch:
    """Make the batch that ``pufferlib.bindings.craftax`` describes."""
    env = make_craftax_env_from_name(name, auto_reset=False)
    params = env.default_params
    if max_timesteps is not None:
        params = params.replace(max_timesteps=max_timesteps)
    pixels = "Pixels" in name

    def observed(observation: Any) -> Any:
        return jnp.round(observation * 255).astype(jnp.uint8) if pixels else observation

    def reset(key: Any) -> tuple[Any, Any]:
        observation, state = env.reset(key, params)
        return observed(observation), state

    def step(key: Any, state: Any, action: Any) -> tuple[Any, ...]:
        observation, state, reward, done, info = env.step(key, state, action, params)
        achieved = {name.lower(): value / 100 for name, value in info.items() if name.startswith("Achievements/")}
        truncated = (state.timestep >= params.max_timesteps) & (state.player_health > 0)
        return observed(observation), state, reward, done & ~truncated, done & truncated, achieved

    shape = env.observation_space(params).shape
    space = Box(0, 255, shape, np.uint8) if pixels else Box(-np.inf, np.inf, shape, np.float32)
    actions = Discrete(env.action_space(params).n)
    package = "craftax.craftax_classic" if "Classic" in name else "craftax.craftax"
    functions = JaxFunctions(space, actions, reset, step, _painter(package))
    return JaxBatch(functions, num_envs, seed, render_mode, buf=buf)


def _painter(package: str) -> Any:
    constants = importlib.import_module(f"{package}.constants")
    renderer = importlib.import_module(f"{package}.renderer")
    return renderer.make_craftax_pixel_renderer(constants.BLOCK_PIXEL_SIZE_IMG)
