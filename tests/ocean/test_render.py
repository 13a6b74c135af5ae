"""``render``: arrays, text, and frames between two steps."""

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.errors import APIUsageError
from pufferlib.render.terminal import HALF_BLOCK, to_text
from tests.ocean.helpers import every_env

python_env = pytest.mark.parametrize("name", ["spaces", "pymultiagent"])


# ---- Drawing --------------------------------------------------------------------------------------------


# These use sines of the C library, like Gymnasium. See docs/decisions/ocean.md.
LIKE_GYMNASIUM = {
    f"{name}.h" for name in ("acrobot", "cartpole", "mountain_car", "mountain_car_continuous", "pendulum")
}


def test_sources_use_no_functions_that_c_libraries_round_differently():
    """Results must be the same bytes everywhere. Only environments like Gymnasium's use sin and cos."""
    uses = re.compile(
        r"\b(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)[fl]?\("
    )
    sources = list(Path(ocean.__file__).parent.rglob("*.[ch]"))
    assert len(sources) > 30
    found = {(path.name, use[0]) for path in sources for use in uses.finditer(path.read_text())}
    assert {(file, use) for file, use in found if file not in LIKE_GYMNASIUM or use not in {"sin(", "cos("}} == set()


@pytest.mark.parametrize("name", ["moba", "multiagent", "nmmo3", "rware", "snake", "trash_pickup"])
def test_image_for_an_agent_marks_it(name):
    with contextlib.closing(pufferlib.make(name, num_envs=1)) as env:
        env.reset(seed=0)
        first, second, neutral = (env.render(agent=agent).tobytes() for agent in (0, 1, None))
        assert first != second
        assert env.render().tobytes() == neutral


@pytest.mark.parametrize("agent", [-1, 8, 1.5, "first"])
def test_render_refuses_wrong_agents(agent):
    with contextlib.closing(pufferlib.make("nmmo3", num_envs=2, num_players=8)) as env:
        env.reset(seed=0)
        with pytest.raises(APIUsageError, match=rf"Nmmo3.render: agent must be .* from 0 to 7, got {agent!r}"):
            env.render(agent=agent)


# ---- Text ---------------------------------------------------------------------------------------------


@every_env
def test_ansi_returns_the_image_as_text(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "21")
    env, twin = (ocean.OceanEnv(name, num_envs=3, seed=1, render_mode=mode) for mode in ("ansi", "rgb_array"))
    env.reset()
    twin.reset()
    for index in (0, 2):
        text = env.render(index)
        assert text == to_text(twin.render(index))
        assert text.count("\n") < 20
        assert max(line.count(HALF_BLOCK) for line in text.split("\n")) <= 60


@python_env
def test_python_environments_have_ansi_and_rgb_array(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "21")
    env, twin = (pufferlib.make(name, seed=1, render_mode=mode) for mode in ("ansi", "rgb_array"))
    env.reset()
    twin.reset()
    assert env.render() == to_text(twin.render())
    assert {"human", "ansi", "rgb_array"} <= set(env.metadata["render_modes"])
    with pytest.raises(pufferlib.UnknownNameError, match="unknown render_mode 'anis'; did you mean 'ansi'"):
        pufferlib.make(name, render_mode="anis")


# ---- Between two steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["breakout", "enduro"])  # a point ends a step of pong
def test_frames_renders_skipped_frames_without_side_effects(name):
    env, unrendered, slow = (pufferlib.make(name, num_envs=2, frameskip=skip) for skip in (4, 4, 1))
    for game in (env, unrendered, slow):
        game.reset(seed=3)
        game.action_space.seed(3)
    moved = 0
    for _ in range(40):
        actions = env.action_space.sample()
        images = [image.copy() for image in env.frames(actions, env_index=1)]
        assert len(images) == 3
        for image in images:
            slow.step(actions)
            np.testing.assert_array_equal(image, slow.render(1))
        slow.step(actions)
        outcome = env.step(actions)
        for got, expected in zip(outcome, unrendered.step(actions), strict=True):
            np.testing.assert_array_equal(got, expected)
        moved += (images[0] != images[2]).any()
    assert moved > 20
    assert list(slow.frames(actions)) == []
    for game in (env, unrendered, slow):
        game.close()


def test_frames_checks_actions_and_env_index():
    env = pufferlib.make("pong", num_envs=2, frameskip=2)
    with pytest.raises(APIUsageError, match="no episode has begun; call reset first"):
        next(env.frames([0, 0]))
    env.reset()
    for wrong in ([0], [[0], [0]], [0.5, 0.5]):
        with pytest.raises(APIUsageError, match="actions must be integers of shape"):
            next(env.frames(wrong, env_index=1))
    with pytest.raises(APIUsageError, match="env_index must be at least 0 and below 2, got"):
        next(env.frames([0, 0], env_index=2))
    env.close()
    with pytest.raises(APIUsageError, match="the environment is closed"):
        next(env.frames([0, 0]))


def test_frames_of_a_step_that_ends_early_include_the_last():
    env = pufferlib.make("pong", frameskip=1000)
    env.reset(seed=0)
    images = list(env.frames([0], every=100))
    assert len(images) == 9
    _, rewards, *_ = env.step([0])
    assert rewards[0], "a point must end the step"
    np.testing.assert_array_equal(images[-1], env.render())
    env.close()
