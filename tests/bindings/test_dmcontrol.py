"""dm_control: names, steps compared with the suite, ends of episodes, images, options."""

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import dmcontrol
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("dmcontrol"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.dmcontrol import env as binding  # only with dm_control

suite: Any = binding.suite


def test_names_match_the_tasks_of_the_suite() -> None:
    assert dmcontrol.names() == tuple(sorted("-".join(task) for task in suite.ALL_TASKS))


def test_steps_match_the_suite() -> None:
    raw = suite.load("reacher", "easy", task_kwargs={"random": np.random.RandomState(7)})
    env = binding.make_env("reacher-easy")
    expected = raw.reset().observation
    observation, _ = env.reset(seed=7)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert observation.dtype == np.float32
        assert np.array_equal(observation, np.concatenate(list(expected.values())).astype(np.float32))
        action = rng.uniform(-1, 1, 2).astype(np.float32)
        time_step = raw.step(action)
        expected = time_step.observation
        observation, reward, terminated, truncated, _ = env.step(action)
        assert reward == time_step.reward
        assert not terminated
        assert not truncated


def test_mujoco_that_is_too_old_for_dm_control_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*args: Any, **keywords: Any) -> Any:
        raise AttributeError("'MjModel' object has no attribute 'B_colind'")

    monkeypatch.setattr(suite, "load", load)
    with pytest.raises(AttributeError):
        binding.make_env("reacher-easy")
    monkeypatch.setattr("mujoco.__version__", "3.3.2")
    with pytest.raises(BindingMissing, match=r"requires mujoco>=\S+, found mujoco 3\.3\.2: 'MjModel' object"):
        binding.make_env("reacher-easy")


def test_episodes_are_truncated_after_1000_steps() -> None:
    env = binding.make_env("cartpole-balance")
    env.reset(seed=1)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(1000)]
    assert ends == [(False, False)] * 999 + [(False, True)]


@pytest.mark.skipif(binding.BACKEND == "disabled", reason="neither EGL nor OSMesa is here")
def test_pixels_are_images_with_channels_first() -> None:
    env = binding.make_env("cartpole-balance", pixels=True, size=32)
    image, _ = env.reset(seed=1)
    assert env.observation_space.contains(image)
    assert image.shape == (3, 32, 32)
    assert image.std() > 1
    env.close()


def test_missing_opengl_affects_only_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "BACKEND", "disabled")
    env: Any = pufferlib.make("dmcontrol/cartpole-balance")
    env.reset(seed=0)
    assert env.metadata["render_modes"] == []
    env.close()
    for name, options in (
        ("cartpole-balance", {"pixels": True}),
        ("cartpole-balance", {"render_mode": "rgb_array"}),
        ("quadruped-escape", {}),
    ):
        with pytest.raises(pufferlib.BindingMissing, match=r"needs EGL or OSMesa .* apt-get install libegl1"):
            pufferlib.make(f"dmcontrol/{name}", **options)


def test_mujoco_gl_of_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with binding.drawing_without_a_window() as backend:
        assert backend == os.environ["MUJOCO_GL"] == "osmesa"
    assert os.environ["MUJOCO_GL"] == "osmesa"
    monkeypatch.delenv("MUJOCO_GL")
    with binding.drawing_without_a_window() as backend:
        assert os.environ["MUJOCO_GL"] == backend
    assert "MUJOCO_GL" not in os.environ


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pixels": 1}, "pixels must be True or False, got 1"),
        ({"size": 0}, "size must be an int >= 1, got 0"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=f"dmcontrol/walker-run: {message}"):
        pufferlib.make("dmcontrol/walker-run", **options)


def test_unknown_task_or_option_suggests_another() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'cheetah-run'"):
        dmcontrol.env_creator("cheetah-runs")
    with pytest.raises(UnknownNameError, match="did you mean 'pixels'"):
        pufferlib.make("dmcontrol/walker-run", pixel=True)


@pytest.mark.parametrize(
    ("backend", "before", "advice"),
    [
        ("glfw", "pass", "where there is no display unset MUJOCO_GL"),
        ("off", "pass", "; unset it, or do not request images"),
        (None, "import dm_control.suite", "with MUJOCO_GL=unset: .*; set MUJOCO_GL before that import, or do not"),
    ],
)
def test_unusable_mujoco_gl_gets_advice(backend: str | None, before: str, advice: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}
    env |= {"MUJOCO_GL": backend} if backend else {}
    code = f"{before}; import pufferlib; pufferlib.make('dmcontrol/cartpole-balance', render_mode='rgb_array')"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert "BindingMissing: dmcontrol/cartpole-balance" in done.stderr
    assert re.search(advice, done.stderr)
