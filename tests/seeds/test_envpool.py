"""Examples of EnvPool's document "Python Interface". Only one import is changed."""

import numpy as np
import pytest

import pufferlib.envpool as envpool
from tests.needs import missing_binding


def needs(binding):
    reason = missing_binding(binding)
    return pytest.mark.skipif(bool(reason), reason=reason)


@pytest.mark.all  # the default suite renders a quicker task, in tests/envpool/test_twin_tasks.py
@needs("mujoco")
def test_render_returns_frames_of_env_ids():
    env = envpool.make(
        "Ant-v5",
        env_type="gymnasium",
        num_envs=4,
        render_mode="rgb_array",
        render_width=480,
        render_height=480,
    )
    env.reset()
    frames = env.render(env_ids=[0, 2])
    assert frames.shape == (2, 480, 480, 3)
    env.close()


@needs("dmcontrol")
def test_human_render_mode(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    viewer = envpool.make(
        "WalkerWalk-v1",
        env_type="gymnasium",
        num_envs=1,
        render_mode="human",
        render_env_id=0,
    )
    viewer.reset()
    viewer.render()
    viewer.close()


@needs("mujoco")
def test_pixel_observations():
    env = envpool.make("Ant-v5", env_type="gymnasium", num_envs=2, from_pixels=True, frame_stack=3)
    assert env.observation_space.shape == (9, 84, 84)
    assert env.reset()[0].shape == (2, 9, 84, 84)
    env.close()


@pytest.mark.parametrize("task_id", ["Breakout-v0", pytest.param("Pong-v5", marks=needs("atari"))])
def test_send_takes_actions_in_three_formats(task_id):
    """The document names the environment ``envpool``."""
    batch_size = 3
    pool = envpool.make(task_id, env_type="gymnasium", num_envs=4, batch_size=batch_size)
    pool.send(np.ones(batch_size))
    pool.recv()
    pool.send(np.ones(batch_size), env_id=np.arange(batch_size))
    pool.recv()
    pool.send(
        {
            # note: please be careful with dtype here
            "action": np.ones(batch_size, dtype=np.int32),
            "env_id": np.arange(batch_size, dtype=np.int32),
        }
    )
    assert sorted(pool.recv()[4]["env_id"].tolist()) == [0, 1, 2]
    pool.close()


def test_make_spec_needs_no_environment():
    spec = envpool.make_spec("CartPole-v1")
    assert spec.observation_space.shape == (4,)
    assert spec.action_space.n == 2


def test_make_spec_has_specs_of_dm_env():
    pytest.importorskip("dm_env", reason="dm_env is not installed; puffer install dm")
    spec = envpool.make_spec("CartPole-v1")
    assert spec.observation_spec().obs.shape == (4,)
    assert spec.action_spec().num_values == 2


def test_auto_reset():
    env = envpool.make("CartPole-v1", env_type="gymnasium", max_episode_steps=3)
    steps = [env.step(np.ones(1, int)) for _ in range(5)]
    assert [int(step[4]["elapsed_step"][0]) for step in steps] == [0, 1, 2, 3, 0]
    assert [bool(step[3][0]) for step in steps] == [False, False, False, True, False]
    assert [float(step[1][0]) for step in steps] == [0, 1, 1, 1, 0]


def test_asynchronous_batches():
    env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=8, batch_size=5, num_threads=2)
    assert env.is_async
    env.async_reset()
    for _ in range(20):
        observations, *_, info = env.recv()
        assert len(observations) == len(info["env_id"]) == 5
        env.send(np.zeros(5, int), info["env_id"])


@pytest.mark.parametrize("make", [envpool.make_gym, envpool.make_gymnasium])
def test_make_gym_and_make_gymnasium(make):
    env = make("CartPole-v1", num_envs=4, seed=[1, 2, 3, 4])
    assert env.reset()[0].shape == (4, 4)
    assert env.step(np.ones(2), env_id=np.array([2, 0]))[4]["env_id"].tolist() == [2, 0]
    assert env.reset(np.array([1]))[1]["env_id"].tolist() == [1]
