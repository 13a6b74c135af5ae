"""Tests of how keys are mapped to actions."""

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.ocean.types import Key
from pufferlib.play.controls import KeyMap, keys_for
from pufferlib.spaces import MixedBox

WAITING = (Key("left", 0, 1, "go left"), Key("right", 0, 2, "go right"), Key("x", 0, 9, "no such action"))
REAL_TIME = (Key("", 0, 0, "stay"), Key("up", 0, 1, "up"), Key("up+right", 0, 2, "both"), Key("right", 0, 3, "right"))


def test_keys_for_drops_actions_outside_space():
    assert keys_for(Discrete(3), WAITING) == WAITING[:2]
    assert [key.name for key in keys_for(Discrete(2), ())] == ["0", "1"]
    assert keys_for(Discrete(11), ()) == ()
    assert keys_for(MultiDiscrete([3, 3]), ()) == ()


def test_key_map_without_idle_action_waits():
    key_map = KeyMap(Discrete(3), keys_for(Discrete(3), WAITING))
    assert key_map.waits
    assert key_map.action(set()) is None
    assert key_map.action({"z"}) is None
    assert key_map.action({"left"}) == 1
    assert key_map.help() == ["left: go left", "right: go right"]


def test_key_combination_has_priority():
    key_map = KeyMap(Discrete(4), keys_for(Discrete(4), REAL_TIME))
    assert not key_map.waits
    assert [key_map.action(down) for down in ((), {"up"}, {"right"}, {"up", "right"})] == [0, 1, 3, 2]
    assert key_map.help() == ["up: up", "right: right"]


def test_multidiscrete_action_combines_keys():
    keys = (Key("", 1, 2, "rest"), Key("a", 0, 1, "grab"), Key("b", 1, 0, "run"))
    key_map = KeyMap(MultiDiscrete([2, 3]), keys_for(MultiDiscrete([2, 3]), keys))
    actions = [key_map.action(down).tolist() for down in ((), {"a"}, {"b"}, {"a", "b"})]
    assert actions == [[0, 2], [1, 2], [0, 0], [1, 0]]


def test_key_pairs_control_box_actions():
    space = Box(np.array([-2, 0], np.float32), np.array([1, 5], np.float32))
    key_map = KeyMap(space, keys_for(space, WAITING))
    assert not key_map.waits
    cases = {(): [0, 0], ("left",): [-2, 0], ("right", "up"): [1, 5], ("down",): [0, 0]}
    for down, expected in cases.items():
        action = key_map.action(down)
        assert action.dtype == np.float32
        assert action.tolist() == expected


def test_mixed_actions_have_pairs_for_reals_and_a_key_for_each_value():
    space = MixedBox(np.array([-2, 5, 0, 0]), np.array([1, 7, 3, 1]), np.array([0, 1, 0, 1], bool), np.float32)
    key_map = KeyMap(space, keys_for(space))
    cases = {
        (): [0, 5, 0, 0],
        ("left",): [-2, 5, 0, 0],
        ("up", "2"): [0, 7, 3, 0],
        ("1", "3"): [0, 6, 0, 1],
    }
    for down, expected in cases.items():
        action = key_map.action(down)
        assert action.tolist() == expected
        assert space.contains(action)
    assert key_map.help()[-3:] == ["1: number 1 is 6", "2: number 1 is 7", "3: number 3 is 1"]


def test_actions_without_keys_are_typed_as_numbers():
    key_map = KeyMap(Discrete(82), keys_for(Discrete(82), ()))
    assert key_map.types
    assert key_map.read(["4", "x"]) is None
    assert key_map.typed == "4"
    assert key_map.read(["0", "1", "backspace", "enter"]) == 40
    assert key_map.typed == ""
    assert key_map.read(["8", "2", "enter"]) is None
    assert key_map.read(["enter"]) is None
    pairs = KeyMap(MultiDiscrete([5, 20]), ())
    assert pairs.read(["4", "space", "1", "9", "enter"]).tolist() == [4, 19]
    assert pairs.read(["5", "space", "1", "enter"]) is None
    from_five = KeyMap(MultiDiscrete([3, 3], start=[5, 0]), ())
    assert from_five.read(["1", "space", "2", "enter"]).tolist() == [6, 2]
