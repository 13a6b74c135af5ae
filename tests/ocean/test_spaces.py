"""Rules of spaces, without and with emulation."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.ocean.spaces import Spaces

forms = pytest.mark.parametrize("nested", [False, True])


def parts(value, nested):
    """Return image and flat of an observation."""
    return (value["parts"][0]["image"], value["parts"][1]) if nested else (value["image"], value["flat"])


def answer(image, flat, nested):
    return {"parts": ({"image": image}, flat)} if nested else {"image": image, "flat": flat}


@forms
def test_each_right_answer_pays_a_half(nested):
    env = Spaces(nested)
    for seed in range(50):
        image, flat = (int(part.sum() > 0) for part in parts(env.reset(seed=seed)[0], nested))
        for wrong, reward in (((0, 0), 1), ((1, 0), 0.5), ((0, 1), 0.5), ((1, 1), 0)):
            _, got, terminated, truncated, info = env.step(answer(image ^ wrong[0], flat ^ wrong[1], nested))
            assert (got, terminated, truncated) == (reward, True, False)
            assert info == {"score": reward, "perf": reward, "episode_return": reward, "episode_length": 1}


def test_sum_of_0_is_not_above_0():
    env = Spaces()
    for seed in range(200):
        if env.reset(seed=seed)[0]["flat"].sum() == 0:
            break
    assert env.step({"image": 0, "flat": 0})[1] - env.step({"image": 0, "flat": 1})[1] == 0.5


def test_answers_are_balanced():
    env = Spaces()
    env.reset(seed=0)
    sums = np.array([[part.sum() for part in parts(env.reset()[0], False)] for _ in range(1000)])
    assert 0.45 < (sums[:, 0] > 0).mean() < 0.55
    assert 0.34 < (sums[:, 1] > 0).mean() < 0.45, "a fifth of the sums is 0"


@forms
def test_gymnasium_check_env_passes(nested):
    gymnasium_check(Spaces(nested), skip_render_check=True)


@forms
def test_emulation_passes_observations_and_actions(nested):
    env = pufferlib.make("spaces", nested=nested)
    assert isinstance(env, GymnasiumPufferEnv)
    assert isinstance(env.single_action_space, gymnasium.spaces.MultiDiscrete)
    flat, _ = env.reset(seed=3)
    expected = parts(Spaces(nested).reset(seed=3)[0], nested)
    row = flat.view(env.obs_dtype)[0]
    got = (row["parts"]["f0"]["image"], row["parts"]["f1"]) if nested else (row["image"], row["flat"])
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    names = list(env.env.action_space.spaces) if not nested else ["image", "flat"]
    right = {name: int(part.sum() > 0) for name, part in zip(("image", "flat"), expected, strict=True)}
    assert env.step(np.array([right[name] for name in names]))[1] == 1
    env.close()


def test_vector_make_accepts_the_creator():
    with pufferlib.vector.make(
        pufferlib.env_creator("puffer_spaces"), env_kwargs={"nested": True}, num_envs=4, backend="Serial", seed=1
    ) as envs:
        envs.reset()
        for _ in range(20):
            *_, infos = envs.step(envs.action_space.sample())
        assert all(0 <= info["score"] <= 1 for info in infos)


def test_unknown_keyword_suggests_another():
    with pytest.raises(pufferlib.UnknownNameError, match="unexpected keyword argument 'nestde'; did you mean 'nested'"):
        pufferlib.make("spaces", nestde=True)


def test_image_shows_observation_and_result():
    env = Spaces(render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step({"image": 0, "flat": 0})
    after = env.render()
    assert before.shape == after.shape == (200, 320, 3)
    assert not np.array_equal(before[:, :20], after[:, :20])
    np.testing.assert_array_equal(before[:, 20:], after[:, 20:])
