"""Seeds and images of every Ocean environment. ``test_pufferenv.py`` checks their contract."""

from typing import Any

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import ocean

NAMES = [*ocean.names(), *ocean.python_names()]
DETERMINISTIC = {
    "cliff_walking",
    "minigrid",
    "multiagent",
    "password",
    "pymultiagent",
    "stochastic",
}  # the seed has no effect
STEPS = 60


def make(name: str, backend: str = "Serial", seed: int = 3, **options: Any) -> Any:
    return pufferlib.vector.make(pufferlib.env_creator(name), num_envs=2, backend=backend, seed=seed, **options)


@pytest.mark.parametrize("name", NAMES)
def test_reset_with_seed_repeats_the_first_observation(name: str) -> None:
    with make(name) as envs:
        first = envs.reset(seed=5)[0].copy()
        for _ in range(20):
            envs.step(envs.action_space.sample())
        assert np.array_equal(envs.reset(seed=5)[0], first)


@pytest.mark.parametrize("name", NAMES)
def test_environments_of_a_batch_have_different_seeds(name: str) -> None:
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
    assert differ == (name not in DETERMINISTIC)


@pytest.mark.parametrize("name", NAMES)
def test_render_returns_an_image(name: str) -> None:
    env = pufferlib.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()  # type: ignore[attr-defined]
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert image.any()
    env.close()
    env.close()
