"""MiniGrid and BabyAI: names, observations, options and keys."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import minigrid
from pufferlib.play.controls import keys_of_env
from tests.needs import missing_binding

absent = missing_binding("minigrid")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

DIRECTION, IMAGE = gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(0, 10, (7, 7, 3), np.uint8)


def inner_space(name: str, **options: Any) -> Any:
    env = pufferlib.make(name, **options)
    space = env.env.observation_space
    env.close()
    return space


def test_names_match_the_package() -> None:
    # In a new process, because minihack registers more ids.
    code = "import gymnasium, minigrid; print(*gymnasium.registry)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    known = {env_id for env_id in done.stdout.split() if env_id.startswith(("MiniGrid-", "BabyAI-"))}
    assert set(minigrid.names()) == {env_id for env_id in known if not env_id.startswith("MiniGrid-WFC-")}
    assert len(minigrid.names()) == 172


@pytest.mark.parametrize(
    ("short", "env_id"),
    [
        ("Empty-5x5", "MiniGrid-Empty-5x5-v0"),
        ("MiniGrid-MultiRoom-N4-S5", "MiniGrid-MultiRoom-N4-S5-v1"),
        ("ObstructedMaze-Full-v0", "MiniGrid-ObstructedMaze-Full-v0"),
        ("BabyAI-GoToObj", "BabyAI-GoToObj-v0"),
    ],
)
def test_version_and_prefix_are_optional(short: str, env_id: str) -> None:
    env = pufferlib.make(f"minigrid/{short}")
    assert env.env.unwrapped.spec.id == env_id
    env.close()


def test_observations_have_image_and_direction() -> None:
    assert inner_space("minigrid/DoorKey-5x5") == gymnasium.spaces.Dict(direction=DIRECTION, image=IMAGE)
    assert inner_space("minigrid/DoorKey-5x5", direction=False) == IMAGE


@pytest.mark.parametrize(
    ("view", "options", "shape", "high"),
    [
        ("full", {}, (5, 5, 3), 10),
        ("partial", {"agent_view_size": 3}, (3, 3, 3), 10),
        ("rgb", {"tile_size": 4}, (20, 20, 3), 255),
        ("rgb_partial", {}, (56, 56, 3), 255),
    ],
)
def test_view_selects_the_observation(view: str, options: dict[str, Any], shape: tuple[int, ...], high: int) -> None:
    env = pufferlib.make("minigrid/DoorKey-5x5", view=view, direction=False, **options)
    assert env.single_observation_space == gymnasium.spaces.Box(0, high, shape, np.uint8)
    observation, _ = env.reset(seed=0)
    assert (observation.max() > 10) == (high == 255)
    copy = gymnasium.make(env.spec)
    assert np.array_equal(copy.reset(seed=0)[0], observation)
    env.close()


def test_mission_is_observed_as_text() -> None:
    env = pufferlib.make("minigrid/BabyAI-GoToObj", mission=True)
    flat, _ = env.reset(seed=0)
    mission = flat.view(env.obs_dtype)["mission"].ravel()[0]
    text = bytes(mission["codes"][: mission["length"]]).decode()
    assert text == env.env.unwrapped.mission
    assert text.startswith("go to the ")
    env.close()


def test_longest_mission_fits_its_space() -> None:
    parts = "put the yellow ball in front of you next to the purple door in front of you"
    longest = f"{parts} and {parts}, then {parts} and {parts}"
    assert longest in inner_space("minigrid/BabyAI-BossLevel", mission=True)["mission"]


def test_rejected_levels_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    env = pufferlib.make("minigrid/BabyAI-PutNextLocalS5N3", render_mode="rgb_array")
    for seed in range(10):
        env.reset(seed=seed)
    env.render()
    env.close()
    assert capfd.readouterr() == ("", "")


def test_max_steps_truncates() -> None:
    env = pufferlib.make("minigrid/Empty-5x5", max_steps=2)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "top"}, "Empty-5x5-v0: view must be one of partial, full, rgb, rgb_partial, got 'top'"),
        ({"tile_size": 0}, "tile_size must be an int >= 1, got 0"),
        ({"mission": "yes"}, "mission must be True or False, got 'yes'"),
        ({"max_steps": 1.5}, "max_steps must be an int >= 1, got 1.5"),
        ({"agent_view_size": 4}, "agent_view_size must be an odd int >= 3, got 4"),
        ({"agent_view_size": 7.0}, r"agent_view_size must be an odd int >= 3, got 7\.0"),
        ({"size": 2}, r"cannot be made with \{'size': 2\}: AssertionError\(\)"),
        ({"agent_view": 3}, "unexpected keyword argument 'agent_view'.*'agent_view_size'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((pufferlib.APIUsageError, pufferlib.UnknownNameError), match=message):
        pufferlib.make("minigrid/Empty-5x5", **options)


def test_keys_have_action_names() -> None:
    for name, keys in (("DoorKey-5x5", "left right up p d space o"), ("Dynamic-Obstacles-5x5", "left right up")):
        env = pufferlib.make(f"minigrid/{name}")
        assert [key.name for key in keys_of_env(env)][: env.action_space.n] == keys.split()
        env.close()
