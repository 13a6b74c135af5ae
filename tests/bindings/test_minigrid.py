"""MiniGrid and BabyAI: names, what is seen, and that nothing is printed."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import minigrid
from pufferlib.play.meanings import keys_of_env
from tests.needs import missing_binding

absent = missing_binding("minigrid")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

DIRECTION, IMAGE = gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(0, 10, (7, 7, 3), np.uint8)


def inner_space(name: str, **options: Any) -> Any:
    env = pufferlib.make(name, **options)
    space = env.env.observation_space
    env.close()
    return space


def test_names_are_those_of_the_package_that_it_can_make() -> None:
    # In a process of its own: minihack registers some more.
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
def test_a_name_may_lack_its_version_and_its_prefix(short: str, env_id: str) -> None:
    env = pufferlib.make(f"minigrid/{short}")
    assert env.env.unwrapped.spec.id == env_id
    env.close()


def test_image_and_direction_are_seen_with_the_bounds_that_they_have() -> None:
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
def test_views(view: str, options: dict[str, Any], shape: tuple[int, ...], high: int) -> None:
    env = pufferlib.make("minigrid/DoorKey-5x5", view=view, direction=False, **options)
    assert env.single_observation_space == gymnasium.spaces.Box(0, high, shape, np.uint8)
    observation, _ = env.reset(seed=0)
    assert (observation.max() > 10) == (high == 255)
    again = gymnasium.make(env.spec)
    assert np.array_equal(again.reset(seed=0)[0], observation)
    env.close()


def test_the_mission_is_a_text_when_asked_for() -> None:
    env = pufferlib.make("minigrid/BabyAI-GoToObj", mission=True)
    flat, _ = env.reset(seed=0)
    mission = flat.view(env.obs_dtype)["mission"].ravel()[0]
    text = bytes(mission["codes"][: mission["length"]]).decode()
    assert text == env.env.unwrapped.mission
    assert text.startswith("go to the ")
    env.close()


def test_the_longest_missions_fit() -> None:
    parts = "put the yellow ball in front of you next to the purple door in front of you"
    longest = f"{parts} and {parts}, then {parts} and {parts}"
    assert longest in inner_space("minigrid/BabyAI-BossLevel", mission=True)["mission"]


def test_levels_drawn_in_vain_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    env = pufferlib.make("minigrid/BabyAI-PutNextLocalS5N3", render_mode="rgb_array")
    for seed in range(10):
        env.reset(seed=seed)
    env.render()
    env.close()
    assert capfd.readouterr() == ("", "")


def test_max_steps_cuts_off() -> None:
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
        ({"agent_view_size": 4}, r"cannot be made with \{'agent_view_size': 4\}"),
        ({"agent_view": 3}, "unknown option 'agent_view'.*'agent_view_size'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((pufferlib.APIUsageError, pufferlib.UnknownNameError), match=message):
        pufferlib.make("minigrid/Empty-5x5", **options)


def test_a_person_plays_by_arrows() -> None:
    for name, keys in (("DoorKey-5x5", "left right up p d space o"), ("Dynamic-Obstacles-5x5", "left right up")):
        env = pufferlib.make(f"minigrid/{name}")
        assert [key.name for key in keys_of_env(env)][: env.action_space.n] == keys.split()
        env.close()
