"""stable-retro: names, several environments, actions, ends of episodes, and errors without a ROM."""

import re
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import retro
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("retro"):
    pytest.skip(reason, allow_module_level=True)

import stable_retro

from pufferlib.bindings.retro.env import RetroGame

FREE = "Airstriker-Genesis-v0"


def play(env: Any, steps: int, choices: int = 0) -> list[Any]:
    """Return the results of random steps, which are the same in each call."""
    rng = np.random.default_rng(choices)
    seen = []
    for _ in range(steps):
        observation, reward, *ends, _ = env.step(rng.integers(0, 2, env.action_space.n, np.int8))
        seen.append((observation.tobytes(), reward, *ends))
    return seen


def test_names_match_stable_retro() -> None:
    assert retro.names() == tuple(stable_retro.data.list_games())


def test_environments_of_one_process_are_independent() -> None:
    single = RetroGame(FREE)
    single.reset(seed=1)
    expected = play(single, 30)
    single.close()
    first, second = RetroGame(FREE), RetroGame(FREE)
    first.reset(seed=1)
    second.reset(seed=2)
    seen = []
    rng = np.random.default_rng(0)
    for _ in range(30):
        action = rng.integers(0, 2, 12, np.int8)
        observation, reward, *ends, _ = first.step(action)
        seen.append((observation.tobytes(), reward, *ends))
        second.step(action)
    assert seen == expected
    first.close()
    play(second, 2)
    second.close()
    second.close()


def test_reset_after_close_raises() -> None:
    env = RetroGame(FREE)
    env.close()
    with pytest.raises(APIUsageError, match=f"retro/{FREE}: the environment is closed"):
        env.reset(seed=0)


def test_observations_are_small_grey_and_stacked() -> None:
    env = RetroGame(FREE, size=42, stack=3, render_mode="rgb_array")
    first = env.reset(seed=0)[0].copy()
    assert first.shape == (3, 42, 42)
    second = env.step(np.zeros(12, np.int8))[0]
    assert np.array_equal(second[:2], first[1:])
    image = env.render()
    assert image is not None
    assert image.shape == (224, 320, 3)
    env.close()


def test_discrete_actions_are_button_combinations() -> None:
    env = RetroGame(FREE, actions="discrete", wait_max=0, repeat_action_probability=0)
    env.reset(seed=0)
    env.step(np.int64(env.action_space.n - 1))
    assert env._lease.game.get_action_meaning(0) == []
    env.close()


def test_max_frames_truncates() -> None:
    env = RetroGame(FREE, max_frames=10, frame_skip=4)
    env.reset(seed=0)
    assert [env.step(np.zeros(12, np.int8))[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]
    env.close()


@pytest.mark.parametrize(
    ("image", "way"),
    [
        (False, "run: python -m stable_retro.import FOLDER;"),
        (True, 'bash tank -c "python -m stable_retro.import roms && tank-entrypoint train retro/1942-Nes-v0";'),
    ],
)
def test_missing_rom_names_rom_and_import_command(monkeypatch: pytest.MonkeyPatch, image: bool, way: str) -> None:
    monkeypatch.setattr("pufferlib.bindings.retro.env.in_image", lambda: image)
    with pytest.raises(APIUsageError, match=rf"cartridge image \(SHA-1 7f57eace.*{re.escape(way)}"):
        pufferlib.make("retro/1942-Nes-v0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": "all"}, "actions must be 'buttons' or 'discrete', got 'all'"),
        ({"frame_skip": 0}, "frame_skip must be an int >= 1, got 0"),
        ({"wait_max": -1}, "wait_max must be an int >= 0, got -1"),
        ({"repeat_action_probability": 1}, r"repeat_action_probability must be in \[0, 1\), got 1"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"state": "Nowhere"}, "unknown state 'Nowhere'; known: Level1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=f"retro/{FREE}: {message}"):
        pufferlib.make(f"retro/{FREE}", **options)
    RetroGame(FREE).close()  # the emulator must be free again


def test_unknown_game_suggests_another() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'Airstriker-Genesis-v0'"):
        retro.env_creator("Airstriker-Genesis")
