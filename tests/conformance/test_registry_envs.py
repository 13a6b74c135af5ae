"""The contract, over every environment of Ocean; test_bindings.py is its sister for the bindings."""

from typing import Any

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from pufferlib.testing import check_env

NAMES = [*ocean.names(), *ocean.python_names()]
WITHOUT_CHANCE = {"multiagent", "password", "pymultiagent", "stochastic"}  # the same whatever the seed
STEPS = 60


def make(name: str, backend: str = "Serial", seed: int = 3, **options: Any) -> Any:
    return pufferlib.vector.make(pufferlib.env_creator(name), num_envs=2, backend=backend, seed=seed, **options)


@pytest.mark.parametrize("name", NAMES)
def test_it_meets_the_contract(name: str) -> None:
    check_env(pufferlib.env_creator(name), steps=STEPS)


@pytest.mark.parametrize("name", NAMES)
def test_reset_with_a_seed_starts_over(name: str) -> None:
    with make(name) as envs:
        first = envs.reset(seed=5)[0].copy()
        for _ in range(20):
            envs.step(envs.action_space.sample())
        assert np.array_equal(envs.reset(seed=5)[0], first)


@pytest.mark.parametrize("name", NAMES)
def test_environments_of_one_batch_go_their_own_ways(name: str) -> None:
    with make(name) as envs:
        envs.reset()
        rows = envs.num_agents // 2
        envs.action_space.seed(0)
        differ = False
        for _ in range(STEPS):
            actions = envs.action_space.sample()[:rows]
            observations, rewards, *_ = envs.step(np.concatenate([actions, actions]))
            for array in (observations, rewards):
                differ = differ or not np.array_equal(array[:rows], array[rows:])
    assert differ == (name not in WITHOUT_CHANCE)


@pytest.mark.parametrize("name", NAMES)
def test_render_gives_a_picture(name: str) -> None:
    env = pufferlib.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()  # type: ignore[attr-defined]
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert picture.any()
    env.close()
    env.close()
