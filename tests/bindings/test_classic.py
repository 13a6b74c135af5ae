"""Classic control: names, options and errors."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import classic

CLASSIC_CONTROL = "gymnasium.envs.classic_control"


def test_names_match_gymnasium() -> None:
    known = {env_id for env_id, spec in gymnasium.registry.items() if str(spec.entry_point).startswith(CLASSIC_CONTROL)}
    assert {name for name in classic.names() if "NoVel" not in name} | {"CartPole-v0"} == known


@pytest.mark.parametrize(("short", "env_id"), [("CartPole", "CartPole-v1"), ("MountainCar", "MountainCar-v0")])
def test_name_without_version_is_the_newest(short: str, env_id: str) -> None:
    env = pufferlib.make(f"classic/{short}")
    assert env.env.unwrapped.spec.id == env_id
    env.close()


def test_steps_match_gymnasium() -> None:
    ours, theirs = pufferlib.make("classic/CartPole-v1"), gymnasium.make("CartPole-v1")
    assert np.array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    for action in (0, 1) * 100:
        expected, reward, *ends, _ = theirs.step(action)
        observation, *outcome, _ = ours.step(action)
        assert np.array_equal(observation, expected)
        assert outcome == [reward, *ends]
        if any(ends):
            break
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    ("name", "full", "positions"),
    [
        ("CartPoleNoVel", "CartPole", [0, 2]),
        ("MountainCarContinuousNoVel", "MountainCarContinuous", [0]),
        ("PendulumNoVel", "Pendulum", [0, 1]),
    ],
)
def test_tasks_without_velocities_observe_positions_only(name: str, full: str, positions: list[int]) -> None:
    env, whole = pufferlib.make(f"classic/{name}"), pufferlib.make(f"classic/{full}")
    assert np.array_equal(env.single_observation_space.high, whole.single_observation_space.high[positions])
    assert np.array_equal(env.reset(seed=2)[0], whole.reset(seed=2)[0][positions])
    action = whole.single_action_space.sample()
    assert np.array_equal(env.step(action)[0], whole.step(action)[0][positions])
    env.close()
    whole.close()


def test_options_are_passed_to_the_class() -> None:
    env = pufferlib.make("classic/Pendulum", g=3.5)
    assert env.env.unwrapped.g == 3.5
    env.close()


def test_max_episode_steps_truncates() -> None:
    env = pufferlib.make("classic/Pendulum", max_episode_steps=3)
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    env.close()


def test_clip_action_accepts_any_real_action() -> None:
    env = pufferlib.make("classic/Pendulum", clip_action=True)
    assert np.isinf(env.single_action_space.high).all()
    env.reset(seed=0)
    env.step(np.array([100.0], np.float32))
    assert env.env.unwrapped.last_u == 2
    env.close()
    discrete = pufferlib.make("classic/CartPole", clip_action=True)
    assert discrete.single_action_space == gymnasium.spaces.Discrete(2)
    discrete.close()


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pygame", reason="the classic extra is not installed")
    env = pufferlib.make("classic/Acrobot", render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    env.close()
    assert capfd.readouterr() == ("", "")


def test_close_does_not_quit_pygame(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame", reason="the classic extra is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()
    env = pufferlib.make("classic/CartPole", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (400, 600, 3)
    env.close()
    assert pygame.display.get_init()
    pygame.quit()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("CartPole", {"sutton_reward": True}, r"CartPole-v1: unexpected .* 'sutton_reward'.*'sutton_barto_reward'"),
        ("CartPole", {"g": 1.0}, "CartPole-v1: unexpected keyword argument 'g'"),
        ("CartPole", {"clip_action": 1}, "clip_action must be True or False, got 1"),
        ("CartPole", {"max_episode_steps": 0}, "max_episode_steps must be an int >= 1, got 0"),
        (
            "CartPole",
            {"render_mode": "human"},
            "render_mode must be None or 'rgb_array', got 'human'; puffer play opens a window",
        ),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((pufferlib.APIUsageError, pufferlib.UnknownNameError), match=message):
        pufferlib.make(f"classic/{name}", **options)


def test_unknown_name_suggests_another() -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=r"unknown environment 'classic/CartPol-v1'.*CartPole-v1"):
        pufferlib.make("classic/CartPol-v1")
