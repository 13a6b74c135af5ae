"""Keys and click areas for people who play environments."""

import re

import numpy as np
from gymnasium.spaces import Box, Discrete

from pufferlib import ocean
from pufferlib.ocean.types import env_types
from tests.ocean.helpers import every_env

NAMES = {
    "up",
    "down",
    "left",
    "right",
    "space",
    "enter",
    "tab",
    "backspace",
    *"abcdefghijklmnopstuvwxyz",
    *"0123456789",
}


@every_env
def test_keys_have_valid_actions(name):
    space = ocean.OceanEnv(name).single_action_space
    keys = env_types()[name].keys
    if isinstance(space, Box):  # Box actions have common keys
        assert keys == ()
        return
    sizes = np.array([space.n]) if isinstance(space, Discrete) else space.nvec
    for key in keys:
        assert 0 <= key.component < len(sizes), key
        assert 0 <= key.value < sizes[key.component], key


@every_env
def test_keys_have_valid_names_and_descriptions(name):
    keys = env_types()[name].keys
    for key in keys:
        assert key.name == "" or set(key.name.split("+")) <= NAMES, f"{key}; q and r quit and reset"
        assert re.fullmatch(r"\S.{2,60}", key.about), key
    assert len({(key.name, key.component) for key in keys}) == len(keys), "a key has two actions"


def test_real_time_environments_have_an_action_without_key():
    idle = {name for name, env_type in env_types().items() if any(key.name == "" for key in env_type.keys)}
    assert {"breakout", "pong"} <= idle
    assert not idle & {"squared", "memory", "password"}


@every_env
def test_click_areas_are_inside_the_image(name):
    env = ocean.OceanEnv(name, num_envs=2)
    assert env.areas() == {}
    env.reset()
    height, width, _ = env.render(1).shape
    for action, (x, y, wide, high) in env.areas(1).items():
        assert env.single_action_space.contains(action)
        assert 0 <= x < x + wide <= width, action
        assert 0 <= y < y + high <= height, action
    env.close()


def test_columns_of_connect4_have_click_areas():
    env = ocean.Connect4()
    env.reset()
    assert sorted(env.areas()) == list(range(7))
    assert ocean.Connect4().areas(5) == {}
