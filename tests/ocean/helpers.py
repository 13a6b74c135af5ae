"""Helpers for tests of C environments."""

import hashlib

import gymnasium
import numpy as np
import pytest

from pufferlib import ocean
from tests.tiers import once

every_env = pytest.mark.parametrize("name", ocean.names())
# For the shared C code. The default suite sees one agent, several, agents that end, and continuous actions.
some_envs = pytest.mark.parametrize("name", once(ocean.names(), {"breakout", "multiagent", "pendulum", "snake"}))


def has_integer_actions(name):
    return ocean.OceanEnv(name, num_envs=1).single_action_space.dtype.kind == "i"


every_env_with_integer_actions = pytest.mark.parametrize("name", [*filter(has_integer_actions, ocean.names())])


def make(name, num_envs=8, **kwargs):
    env = ocean.OceanEnv(name, num_envs=num_envs, **kwargs)
    env.reset()
    return env


def actions_of(env, rng):
    """Return random actions of the joint space, int32 or float32."""
    space = env.single_action_space
    shape = env.actions.shape
    if isinstance(space, gymnasium.spaces.Box):
        return rng.uniform(-1, 1, shape).astype(np.float32)
    sizes = space.n if isinstance(space, gymnasium.spaces.Discrete) else space.nvec
    return rng.integers(0, sizes, shape, dtype=np.int32)


def outcomes(env, num_steps, seed=0, record=None):
    """Return a hash of the results of ``num_steps`` random steps. ``record`` is called with the infos of each."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256(env.observations.tobytes())
    for _ in range(num_steps):
        *arrays, infos = env.step(actions_of(env, rng))
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        if record is not None:
            record(infos)
    return digest.hexdigest()
