"""Tests of keys for environments that name their actions or have a table of keys."""

import gymnasium
import pytest
from gymnasium.spaces import Discrete

import pufferlib
from pufferlib.play.controls import KeyMap, keys_for, keys_of_env, keys_of_meanings, keys_of_table
from tests.needs import missing_binding


def test_action_names_are_mapped_to_keys():
    atari = keys_of_meanings(["NOOP", "FIRE", "UP", "RIGHT", "UPRIGHT", "DOWNLEFTFIRE"])
    assert [(key.name, key.value) for key in atari] == [
        ("", 0), ("space", 1), ("up", 2), ("right", 3), ("up+right", 4), ("down+left+space", 5)
    ]  # fmt: skip
    key_map = KeyMap(Discrete(6), keys_for(Discrete(6), atari))
    assert [key_map.action(down) for down in ((), {"up"}, {"up", "right"}, {"left"})] == [0, 2, 4, 0]
    assert key_map.help() == ["space: fire", "up: up", "right: right"]
    grid = keys_of_meanings(["left", "right", "forward", "pickup", "drop", "toggle", "done"])
    assert [key.name for key in grid] == ["left", "right", "up", "p", "d", "space", "o"]
    words = keys_of_meanings(["noop", "move_left", "left engine", "queue", "none"])
    assert [(key.name, key.value, key.about) for key in words] == [
        ("", 0, "noop"), ("left", 1, "move left"), ("l", 2, "left engine"), ("u", 3, "queue"), ("n", 4, "none")
    ]  # fmt: skip


def test_gymnasium_key_tables_are_read():
    env = gymnasium.make("MountainCar-v0")
    keys = {key.name: key.value for key in keys_of_env(env)}
    assert (keys[""], keys["left"], keys["right"]) == (1, 0, 2)
    assert [key.name for key in keys_of_table({("w", " "): 1, "a": 2, 1073741903: 3, ("q",): 4})] == [
        "w+space", "a", "right"
    ]  # fmt: skip
    assert keys_of_env(gymnasium.make("CartPole-v1")) == ()


def test_known_environments_of_gymnasium_have_keys():
    for name, keys in (
        ("FrozenLake-v1", "left down right up"),
        ("Taxi-v4", "down up right left space enter"),
        ("Blackjack-v1", "space enter"),
    ):
        assert [key.name for key in keys_of_env(pufferlib.make(name))] == keys.split()


@pytest.mark.skipif(bool(missing_binding("box2d")), reason=str(missing_binding("box2d")))
def test_known_games_of_box2d_have_keys():
    assert [key.name for key in keys_of_env(pufferlib.make("LunarLander-v3"))] == ["", "left", "up", "right"]
