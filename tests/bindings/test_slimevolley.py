"""Slime volleyball: steps compared with the package, seeds, ends of episodes, self-play, images, options."""

import sys
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

import pufferlib
from pufferlib.bindings import slimevolley
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.errors import APIUsageError
from tests.needs import missing_binding

if reason := missing_binding("slimevolley"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.slimevolley.env import KINDS, make_env


def play(env: Any, steps: int, seed: int | None) -> list[Any]:
    """Return the results of random steps over several episodes. The actions are the same in each call."""
    rng = np.random.default_rng(0)
    seen = [env.reset(seed=seed)[0].tolist()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(2, size=3))
        seen.append((observation.tolist(), reward, terminated, truncated))
        if terminated or truncated:
            seen.append(env.reset()[0].tolist())
    return seen


def test_names_match_the_package() -> None:
    assert set(slimevolley.names()) == set(KINDS)


def test_steps_match_the_package() -> None:
    env = make_env("SlimeVolley-v0")
    raw = KINDS["SlimeVolley-v0"]()
    raw.game.np_random, _ = np_random(3)
    observation, _ = env.reset(seed=3)
    expected = raw.reset()
    rng = np.random.default_rng(0)
    points = 0.0
    for _ in range(500):
        assert np.array_equal(observation, expected.astype(np.float32))
        action = rng.integers(2, size=3)
        observation, reward, *_ = env.step(action)
        expected, expected_reward, _, _ = raw.step(action)
        assert reward == expected_reward
        points += abs(reward)
    assert points > 0


def test_seed_reproduces_all_following_episodes() -> None:
    first, second = make_env("SlimeVolley-v0"), make_env("SlimeVolley-v0")
    trajectory = play(first, 1500, seed=3)
    assert play(second, 100, seed=4) != trajectory[:101]
    assert play(second, 1500, seed=3) == trajectory, "a reset with a seed must clear the opponent's memory"
    assert play(first, 1500, seed=3) == trajectory
    assert any(step[2] for step in trajectory if isinstance(step, tuple)), "the test must include the end of a game"


def test_max_episode_steps_truncates() -> None:
    env = make_env("SlimeVolley-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(3, int))[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]


def test_self_play_agents_see_mirrored_courts() -> None:
    env = pufferlib.make("slimevolley/SlimeVolley-v0", self_play=True)
    assert isinstance(env, PettingZooPufferEnv)
    assert env.num_agents == 2
    env.close()
    duel = make_env("SlimeVolley-v0", self_play=True)
    seen, _ = duel.reset(seed=0)
    right, left = seen["right"], seen["left"]
    assert right[5] == left[5], "both sides must observe the same height of the ball"
    assert right[4] == -left[4], "its horizontal position must be mirrored"
    total, over = 0.0, False
    while not over:
        nothing = np.zeros(3, int)
        seen, rewards, terminated, truncated, _ = duel.step({"right": nothing, "left": nothing})
        assert rewards["right"] == -rewards["left"]
        assert np.array_equal(seen["right"][:4], seen["left"][8:])
        total += abs(rewards["right"])
        over = terminated["right"] or truncated["right"]
    assert total >= 5
    assert not duel.agents


def test_both_sides_get_the_reward_for_survival() -> None:
    duel = make_env("SlimeVolleySurvivalNoFrameskip-v0", self_play=True)
    duel.reset(seed=0)
    assert duel.step({"right": 0, "left": 0})[1] == {"right": 0.01, "left": 0.01}


def test_import_changes_neither_gym_nor_numpy_print_options() -> None:
    assert "gym" not in sys.modules
    assert np.get_printoptions()["threshold"] == 1000


@pytest.mark.parametrize("name", [name for name in KINDS if name != "SlimeVolley-v0"])
def test_pixels_fit_their_space_and_are_reproduced_by_the_seed(name: str) -> None:
    seen = []
    for _ in range(2):
        env = make_env(name)
        env.action_space.seed(0)
        env.reset(seed=3)
        for _ in range(5):
            observation, reward, *_ = env.step(env.action_space.sample())
            assert env.observation_space.contains(observation)
        seen.append((observation.tobytes(), reward))
    assert seen[0] == seen[1]
    assert reward == (0.01 if "Survival" in name else 0)


def test_image_shows_both_sides() -> None:
    env = make_env("SlimeVolleyPixel-v0", render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    image = env.render()
    assert observation.shape == (84, 168, 3)
    assert image.shape == (336, 672, 3)
    for half in (image[:, :336], image[:, 336:]):
        assert len(np.unique(half.reshape(-1, 3), axis=0)) > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_episode_steps": 0}, "max_episode_steps must be an int >= 1, got 0"),
        ({"self_play": "yes"}, "self_play must be True or False, got 'yes'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"opponent": 1}, "unexpected keyword argument 'opponent'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        slimevolley.env_creator("SlimeVolley-v0")(**options)
