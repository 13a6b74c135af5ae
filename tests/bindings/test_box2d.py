"""Box2D: names, seeds, bounds, options and keys."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import box2d
from pufferlib.play.controls import keys_of_env
from tests.needs import missing_binding

absent = missing_binding("box2d")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)


def play(env: Any, seed: int, steps: int) -> list[Any]:
    """Return the results of random steps, which are the same in each call."""
    env.action_space.seed(0)
    seen: list[Any] = [env.reset(seed=seed)[0].tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append((observation.tobytes(), reward))
        if terminated or truncated:
            break
    return seen


def test_names_match_gymnasium() -> None:
    known = {env_id for env_id, spec in gymnasium.registry.items() if "box2d" in str(spec.entry_point)}
    assert set(box2d.names()) == known


@pytest.mark.parametrize("name", ["BipedalWalkerHardcore", "CarRacing", "LunarLanderContinuous"])
def test_seed_reproduces_the_trajectory_after_other_steps(name: str) -> None:
    env = pufferlib.make(f"box2d/{name}")
    first = play(env, seed=3, steps=40)
    play(env, seed=4, steps=60)
    assert play(env, seed=3, steps=40) == first
    env.close()


def test_steps_match_gymnasium() -> None:
    ours, theirs = pufferlib.make("box2d/BipedalWalker"), gymnasium.make("BipedalWalker-v3")
    assert play(ours, seed=3, steps=60) == play(theirs, seed=3, steps=60)
    ours.close()
    theirs.close()


def test_vectors_are_unbounded_and_images_are_bytes() -> None:
    lander, car = pufferlib.make("box2d/LunarLander"), pufferlib.make("box2d/CarRacing", continuous=False)
    assert lander.single_observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (8,), np.float32)
    assert car.single_observation_space == gymnasium.spaces.Box(0, 255, (96, 96, 3), np.uint8)
    assert car.single_action_space == gymnasium.spaces.Discrete(5)
    turned = pufferlib.make("box2d/CarRacing", channels_first=True)
    assert turned.single_observation_space == gymnasium.spaces.Box(0, 255, (3, 96, 96), np.uint8)
    for env in (lander, car, turned):
        env.close()


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    env = pufferlib.make("box2d/CarRacing", render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    env.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gravitiy": -5.0}, "LunarLander-v3: unexpected keyword argument 'gravitiy'.*'gravity'"),
        ({"gravity": 5.0}, r"LunarLander-v3: cannot be made with \{'gravity': 5.0\}: gravity \(current value: 5.0\)"),
        ({"clip_action": "yes"}, "clip_action must be True or False, got 'yes'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((pufferlib.APIUsageError, pufferlib.UnknownNameError), match=message):
        pufferlib.make("box2d/LunarLander", **options)


def test_keys_are_arrows() -> None:
    for name, options, keys in (
        ("LunarLander", {}, ",left,up,right"),
        ("CarRacing", {"continuous": False}, ",right,left,up,down"),
    ):
        env = pufferlib.make(f"box2d/{name}", **options)
        assert [key.name for key in keys_of_env(env)] == keys.split(",")
        env.close()
