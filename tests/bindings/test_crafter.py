"""Crafter: worlds compared with the package, seeds, infos, options and keys."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import crafter
from pufferlib.play.controls import keys_of_env
from tests.needs import missing_binding

absent = missing_binding("crafter")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

ACTIONS = np.random.default_rng(0).integers(17, size=20).tolist()


def play_at_night(env: Any, renders: bool) -> list[Any]:
    """Return the results of fixed actions at night, when images have random noise."""
    env.reset(seed=1)
    env.env.unwrapped._env._step = 200
    seen = []
    for action in ACTIONS:
        observation, reward, *_ = env.step(action)
        seen.append((observation.tobytes(), reward))
        if renders:
            env.render()
    return seen


@pytest.mark.parametrize(("short", "env_id"), [("reward", "CrafterReward-v1"), ("noreward", "CrafterNoReward-v1")])
def test_short_names_are_accepted(short: str, env_id: str) -> None:
    assert crafter.env_creator(short).args == crafter.env_creator(env_id).args  # type: ignore[attr-defined]


def test_steps_match_the_package() -> None:
    env = pufferlib.make("crafter/reward")
    ours = env.reset(seed=7)[0].copy()
    package = sys.modules["crafter"].Env(seed=7)
    assert np.array_equal(ours, package.reset())
    for action in ACTIONS:
        observation, reward, *_ = env.step(action)
        expected, expected_reward, *_ = package.step(action)
        assert np.array_equal(observation, expected)
        assert reward == expected_reward
    env.close()


def test_world_is_the_same_without_numba() -> None:
    code = """if True:
        import hashlib, sys
        if sys.argv[1] == "python":
            sys.modules["numba"] = None
        sys.modules["gym"] = None
        import crafter
        env = crafter.Env(area=(24, 24), seed=3)
        env.reset()
        print(hashlib.sha256(env._world._mat_map.tobytes()).hexdigest())
    """
    digests = [
        subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout
        for how in ("numba", "python")
    ]
    assert digests[0] == digests[1] != ""


def test_compiled_noise_is_cached() -> None:
    env = pufferlib.make("crafter/reward")
    env.reset(seed=0)
    env.close()
    noise = sys.modules["opensimplex.internals"]._noise3
    assert len(noise.signatures) == 1, "the environment must use the signature that is compiled first"
    assert list(Path(noise.stats.cache_path).glob("internals._noise3*.nbc"))


def test_numba_without_cache_compiles_once_per_process() -> None:
    code = """if True:
        from numba.core import caching
        caching.CacheImpl._locator_classes = []
        import pufferlib
        env = pufferlib.make("crafter/reward", area=16)
        env.reset()
        from opensimplex import internals
        print(len(internals._noise3.signatures), internals._noise3.stats.cache_path)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 None\n"


def test_creatures_of_a_chunk_are_in_order_of_creation() -> None:
    env = pufferlib.make("crafter/reward")
    env.reset(seed=0)
    world = env.env.unwrapped._env._world
    for chunk in world.chunks.values():
        assert list(chunk) == sorted(chunk, key=world._objects.index)
    env.close()


def test_render_does_not_change_the_trajectory() -> None:
    env = pufferlib.make("crafter/reward", render_mode="rgb_array", render_size=63)
    assert play_at_night(env, renders=True) == play_at_night(env, renders=False)
    env.close()


def test_last_info_has_the_achievements() -> None:
    env = pufferlib.make("crafter/reward", length=40)
    env.reset(seed=0)
    infos = [env.step(6)[4] for _ in range(40)]  # action 6 is sleep
    assert infos[:-1] == [{}] * 39
    info = infos[-1]
    names = [key for key in info if key.startswith("achievements/")]
    assert len(names) == 22
    assert info["score"] == sum(info[name] for name in names)
    assert info["perf"] == info["score"] / 22
    assert info["episode_length"] == 40
    env.close()


def test_channels_first_transposes_images() -> None:
    env, turned = (
        pufferlib.make("crafter/reward", size=36),
        pufferlib.make("crafter/reward", size=36, channels_first=True),
    )
    assert turned.single_observation_space.shape == (3, 36, 36)
    assert np.array_equal(turned.reset(seed=1)[0], env.reset(seed=1)[0].transpose(2, 0, 1))
    env.close()
    turned.close()


def test_length_truncates_and_death_is_terminal() -> None:
    env = pufferlib.make("crafter/noreward", length=2)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    env.reset(seed=0)
    env.env.unwrapped._env._player.health = 0
    assert env.step(0)[1:4] == (0.0, True, False)
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 8}, "CrafterReward-v1: size must be an int >= 9, got 8"),
        ({"view": 4}, "view must be an int >= 5, got 4"),
        ({"length": 0}, "length must be an int >= 1, got 0"),
        ({"area": "64"}, "area must be an int >= 16, got '64'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"seeds": 3}, "unexpected keyword argument 'seeds'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((pufferlib.APIUsageError, pufferlib.UnknownNameError), match=message):
        pufferlib.make("crafter/reward", **options)


def test_keys_have_action_names() -> None:
    env = pufferlib.make("crafter/reward")
    keys = {key.name: key.about for key in keys_of_env(env)}
    assert len(keys) == env.action_space.n
    assert (keys[""], keys["left"], keys["space"]) == ("noop", "move left", "do")
    env.close()
