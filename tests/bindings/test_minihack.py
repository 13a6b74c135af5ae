"""MiniHack: names, seeds, crops, images, rewards and options."""

import warnings
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import minihack
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("minihack"):
    pytest.skip(reason, allow_module_level=True)

import gymnasium

from pufferlib.bindings.minihack.env import CROPS, make_env

LEFT_OUT = ("Custom", "Boxoban", "LavaCrossing", "SimpleCrossing")


def starts(env: Any, seed: int, count: int = 3) -> list[bytes]:
    """Return the first observations of ``count`` episodes after ``reset(seed)``."""
    first = env.reset(seed=seed)[0]["glyphs"].tobytes()
    return [first, *(env.reset()[0]["glyphs"].tobytes() for _ in range(count - 1))]


def test_names_match_the_package() -> None:
    worlds = {id_ for id_ in gymnasium.registry if id_.startswith("MiniHack-")}
    assert set(minihack.names()) == {id_ for id_ in worlds if not any(word in id_ for word in LEFT_OUT)}


def test_short_names_are_accepted() -> None:
    env = minihack.env_creator("Sokoban1a")()
    assert type(env.unwrapped).__name__ == "MiniHackSokoban1a"
    env.close()
    with pytest.raises(UnknownNameError, match="did you mean"):
        minihack.env_creator("MiniHack-Room-5x6-v0")


def test_seed_reproduces_minigrid_levels() -> None:
    first, second = make_env("MiniHack-MultiRoom-N4-v0"), make_env("MiniHack-MultiRoom-N4-v0")
    levels = starts(first, 3)
    assert len(set(levels)) == 3
    assert starts(second, 3) == starts(first, 3) == levels
    assert starts(first, 4) != levels
    first.close()
    second.close()


def test_seed_decides_the_choice_among_level_seeds() -> None:
    first, second = (make_env("MiniHack-Room-Random-15x15-v0", seeds=[1, 2, 3]) for _ in range(2))
    levels = starts(first, 0, 20)
    assert len(set(levels)) == 3
    assert starts(second, 0, 20) == levels
    first.close()
    second.close()


def test_crops_show_the_area_around_the_hero() -> None:
    env = make_env("MiniHack-Room-Random-5x5-v0", observation_keys=["glyphs", "blstats", *CROPS], crop=5)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    column, row = observation["blstats"][:2]
    around = np.pad(observation["glyphs"], 2)[row : row + 5, column : column + 5]
    assert np.array_equal(observation["glyphs_crop"], around)
    env.close()


def test_image_observations() -> None:
    env = make_env("MiniHack-Room-5x5-v0", observation_keys=["pixel", "pixel_crop"], crop=3)
    observation, _ = env.reset(seed=1)
    assert list(observation) == ["pixel", "pixel_crop"]
    assert env.observation_space.contains(observation)
    assert observation["pixel_crop"].shape == (48, 48, 3)
    assert observation["pixel"].any()
    env.close()


def test_stairs_are_terminal_and_time_limit_truncates() -> None:
    env = make_env("MiniHack-Room-5x5-v0", max_episode_steps=50, reward_win=2.0, render_mode="ansi")
    env.reset(seed=0)
    towards = list(env.unwrapped.actions).index(ord("n"))  # towards the stairs in the opposite corner
    for _ in range(10):
        _, reward, terminated, truncated, info = env.step(np.int64(towards))
        if terminated:
            break
    assert (reward, terminated, truncated) == (2.0, True, False)
    assert info["success"]
    assert isinstance(env.render(), str)
    env.close()
    env = make_env("MiniHack-Room-5x5-v0", max_episode_steps=2)
    env.reset(seed=0)
    ends = [env.step(np.int64(0))[2:4] for _ in range(2)]
    assert ends == [(False, False), (False, True)]
    env.close()


def test_make_gives_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pufferlib.make("minihack/Room-5x5").close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observation_keys": ["glyphs_corp"]}, "unknown observation key 'glyphs_corp'; did you mean 'glyphs_crop'"),
        ({"crop": 4}, "crop must be odd, so that the hero is in the middle, got 4; try 5"),
        ({"crop": 0}, "crop must be an int >= 1, got 0"),
        ({"max_episode_steps": 1.5}, "max_episode_steps must be an int >= 1, got 1.5"),
        ({"reward_win": None}, "reward_win must be a finite number, got None"),
        ({"seeds": []}, "seeds must be a list of ints >= 0"),
        ({"render_mode": "human"}, "render_mode must be None, 'rgb_array' or 'ansi', got 'human'"),
        ({"obs_crop_h": 5}, "unexpected keyword argument 'obs_crop_h'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        minihack.env_creator("Room-5x5")(**options)
