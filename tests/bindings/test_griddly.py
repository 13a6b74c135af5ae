"""Griddly: names, players, seeds, time limits, images, and errors instead of crashes without Vulkan."""

import ctypes
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.bindings import griddly
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.errors import APIUsageError, BindingMissing
from tests.needs import missing_binding

if reason := missing_binding("griddly"):
    pytest.skip(reason, allow_module_level=True)

import gymnasium

from pufferlib.bindings.griddly import vulkan
from pufferlib.bindings.griddly.env import make_env


def play(env: Any, steps: int, seed: int | None) -> list[Any]:
    env.action_space.seed(0)
    seen = [env.reset(seed=seed)[0].tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append((observation.tobytes(), reward, terminated, truncated))
        if terminated or truncated:
            seen.append(env.reset()[0].tobytes())
    return seen


def test_names_match_the_package() -> None:
    assert set(griddly.names()) == {id_ for id_ in gymnasium.registry if id_.startswith("GDY-")}


def test_short_names_are_accepted() -> None:
    env = griddly.env_creator("partially-observable-zelda")()
    assert env.single_observation_space.shape == (6, 5, 5)
    env.close()


@pytest.mark.parametrize("name", griddly.names())
def test_every_environment_steps(name: str) -> None:
    env = pufferlib.vector.make(pufferlib.env_creator(f"griddly/{name}"), num_envs=1, backend="Serial")
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(20):
        observations, rewards, *_ = env.step(env.action_space.sample())
        assert all(env.single_observation_space.contains(observation) for observation in observations)
        assert np.isfinite(rewards).all()
    env.close()


def test_seed_reproduces_the_trajectory_after_other_steps() -> None:
    first, second = make_env("GDY-Spiders-v0"), make_env("GDY-Spiders-v0")
    trajectory = play(first, 200, seed=3)
    play(second, 50, seed=8)
    assert play(second, 200, seed=3) == trajectory
    assert play(first, 200, seed=3) == trajectory
    assert play(first, 200, seed=4) != trajectory
    first.close()
    second.close()


def test_levels_differ_and_unknown_ones_are_refused() -> None:
    starts = {make_env("GDY-Sokoban-v0", level=level).reset(seed=0)[0].tobytes() for level in range(3)}
    assert len(starts) == 3
    with pytest.raises(APIUsageError, match="level must be from 0 to 5, got 6"):
        make_env("GDY-Sokoban-v0", level=6)


def test_max_steps_truncates() -> None:
    env = make_env("GDY-Sokoban-v0", max_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]
    env.close()
    env.close()


def test_players_are_agents() -> None:
    env = pufferlib.make("griddly/foragers")
    assert isinstance(env, PettingZooPufferEnv)
    assert env.num_agents == 4
    env.close()


def test_image_has_ten_pixels_per_cell() -> None:
    env = make_env("GDY-Sokoban-v0", render_mode="rgb_array")
    env.reset(seed=0)
    _, columns, rows = env.observation_space.shape
    image = env.render()
    assert image.shape == (10 * rows, 10 * columns, 3)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) >= 3
    env.close()


def test_missing_vulkan_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan, "LIBRARY", "libthere-is-none.so.1")
    sentence = r"libthere-is-none\.so\.1 is not installed; run: sudo apt-get install libvulkan1"
    with pytest.raises(BindingMissing, match=sentence):
        griddly.env_creator("sokoban")(observer="sprite_2d")
    griddly.env_creator("sokoban")().close()  # vector observations need no Vulkan


@pytest.mark.skipif("library" in vulkan.find_problem(), reason="there is no libvulkan.so.1")
def test_missing_vulkan_driver_raises() -> None:
    code = (
        "from pufferlib.bindings import griddly\n"
        "from pufferlib.errors import BindingMissing\n"
        "try:\n    griddly.env_creator('sokoban')(observer='block_2d')\n"
        "except BindingMissing as error:\n    print(error)\n"
    )
    nowhere = {"VK_ICD_FILENAMES": "/nonexistent.json", "VK_DRIVER_FILES": "/nonexistent.json"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | nowhere, capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 0, result.stderr
    assert "griddly/GDY-Sokoban-v0: observer='block_2d' draws with Vulkan, but it has no d" in result.stdout
    assert "mesa-vulkan-drivers" in result.stdout


@pytest.mark.skipif(bool(vulkan.find_problem()), reason=f"Vulkan: {vulkan.find_problem()}")
def test_image_observations() -> None:
    code = (
        "from pufferlib.bindings.griddly.env import make_env\n"
        "env = make_env('GDY-Sokoban-v0', observer='sprite_2d')\n"
        "observation, _ = env.reset(seed=0)\n"
        "assert env.observation_space.contains(observation) and observation.any()\n"
        "print(observation.shape)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("(3, ")


def test_vulkan_structure_has_the_right_size() -> None:
    assert ctypes.sizeof(vulkan.InstanceCreateInfo) == 64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": -1}, "level must be an int >= 0, got -1"),
        ({"max_steps": 0}, "max_steps must be an int >= 1, got 0"),
        ({"observer": "sprite"}, "unknown observer 'sprite'; did you mean 'sprite_2d'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"levels": 1}, "unexpected keyword argument 'levels'; did you mean 'level'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        griddly.env_creator("sokoban")(**options)
