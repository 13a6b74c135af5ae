"""Frames that ``render`` returns, and image observations."""

import numpy as np
import pytest

import pufferlib.envpool as envpool
from pufferlib.errors import APIUsageError, BindingMissing, PufferError
from tests.envpool.counting import END, register_counting

TASK = register_counting()


def make(num_envs=4, **keywords):
    return envpool.make_gymnasium(keywords.pop("task", TASK), num_envs=num_envs, seed=0, **keywords)


def test_render_returns_frames():
    env = make(render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    assert env.render().shape == (1, 10, 20, 3)  # before the first reset
    env.reset()
    env.step([1, 1, 1, 1])
    assert env.render()[:, 0, 0].tolist() == [[0, 1, 0]]
    assert env.render(1)[:, 0, 0].tolist() == [[1, 1, 0]]
    assert env.render([2, 0])[:, 0, 0].tolist() == [[2, 1, 0], [0, 1, 0]]
    assert env.render(np.array([3, 3]))[:, 0, 0].tolist() == [[3, 1, 0]] * 2
    assert env.render(np.int64(2))[:, 0, 0].tolist() == [[2, 1, 0]]
    assert env.render(camera_id=4)[:, 0, 0].tolist() == [[0, 1, 5]]
    assert env.render().dtype == np.uint8


def test_render_settings():
    env = make(render_mode="rgb_array", render_env_id=3, render_width=40, render_height=5, render_camera_id=2)
    env.reset()
    pictures = env.render(env_ids=[0, 3])
    assert pictures.shape == (2, 5, 40, 3)
    assert pictures[1, 2, 2].tolist() == env.render()[0, 2, 2].tolist() == [3, 0, 3]
    assert make(render_mode="rgb_array", render_width=7).render().shape == (1, 10, 7, 3)


def test_render_while_environments_are_in_flight():
    env = make(render_mode="rgb_array")
    env.async_reset()
    assert env.render([0, 1]).shape == (2, 10, 20, 3)


@pytest.mark.parametrize("env_ids", [4, -1, [0, 4], [], [0.5], "0", [[0]], True, 1.0, 2**40], ids=repr)
def test_invalid_ids_raise(env_ids):
    env = make(render_mode="rgb_array")
    env.reset()
    with pytest.raises(APIUsageError, match="env_ids must"):
        env.render(env_ids)


def test_render_without_frames_raises():
    with pytest.raises(APIUsageError, match='render_mode must be "rgb_array" or "human", got None'):
        make().render()
    with pytest.raises(APIUsageError, match="the environment must draw pictures"):
        make(task=register_counting(draws=False), render_mode="rgb_array").render()
    with pytest.raises(APIUsageError, match="camera_id must be an int from -1"):
        make(render_mode="rgb_array").render(camera_id=-5)
    with pytest.raises(APIUsageError, match="a window shows one environment"):
        make(render_mode="human").render([0, 1])


def test_human_mode_without_display_raises(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((PufferError, BindingMissing), match="Window"):
        make(render_mode="human").render()


def test_human_mode_shows_one_environment(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = make(render_mode="human", render_env_id=2)
    env.reset()
    assert env.render() is None
    assert env.render(1) is None
    env.close()


def test_from_pixels_observations():
    env = make(from_pixels=True, render_width=16, render_height=12)
    assert env.observation_space.shape == (3, 12, 16)
    observations, info = env.reset()
    assert observations.shape == (4, 3, 12, 16)
    assert observations.dtype == np.uint8
    assert observations.flags.c_contiguous
    assert observations[:, :, 3, 3].tolist() == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]
    assert info["count"].tolist() == [0, 0, 0, 0]
    observations, rewards, *_ = env.step([1, 1], env_id=[3, 1])
    assert observations[:, :, 3, 3].tolist() == [[3, 1, 0], [1, 1, 0]]
    assert rewards.tolist() == np.float32([1.1, 1.1]).tolist()


def test_camera_id_and_render_size_apply_to_pixels():
    env = make(from_pixels=True, render_camera_id=6, render_mode="rgb_array")
    assert env.reset()[0][0, :, 40, 40].tolist() == [0, 0, 7]
    assert env.render().shape == (1, 84, 84, 3)


def test_frame_stack_of_pixels():
    env = make(from_pixels=True, frame_stack=2, num_envs=2)
    assert env.reset()[0].shape == (2, 6, 84, 84)
    steps = [env.step(actions)[0][:, :, 9, 9].tolist() for actions in ([1, 1], [END, 1], [1, 1], [1, 1])]
    assert steps == [
        [[0, 0, 0, 0, 1, 0], [1, 0, 0, 1, 1, 0]],
        [[0, 1, 0, 0, 2, 0], [1, 1, 0, 1, 2, 0]],
        [[0, 0, 0, 0, 0, 0], [1, 2, 0, 1, 3, 0]],  # a new episode of the first environment
        [[0, 0, 0, 0, 1, 0], [1, 3, 0, 1, 4, 0]],
    ]


def test_frame_stack_of_states():
    env = make(frame_stack=3, num_envs=2)
    assert env.reset()[0].shape == (2, 3, 4)
    env.step([1, 2])
    assert env.step([2, 1])[0][1].tolist() == [[1, 0, 0, 0], [1, 0, 1, 2], [1, 0, 2, 1]]
    assert env.reset([1])[0].tolist() == [[[1, 1, 0, 0]] * 3]
    assert env.step([1, 1])[0][0, :, 2].tolist() == [1, 2, 3]


def test_final_observations_are_stacked():
    env = make(frame_stack=2, num_envs=2, autoreset="same_step")
    env.reset()
    env.step([1, 1])
    observations, *_, info = env.step([END, 1])
    assert info["final_obs"][0].tolist() == [[0, 0, 1, 1], [0, 0, 2, END]]
    assert observations[0].tolist() == [[0, 1, 0, 0]] * 2
    assert observations[1, :, 2].tolist() == [1, 2]


def test_earlier_stacks_are_not_overwritten():
    env = make(frame_stack=2, num_envs=2)
    first = env.reset()[0]
    kept = first.copy()
    env.step([1, 1])
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("frame_stack", [1, 2])
def test_players_of_one_environment_get_the_same_pixels(frame_stack):
    env = make(task=register_counting(players=2), from_pixels=True, frame_stack=frame_stack, num_envs=2)
    env.reset()
    observations, *_ = env.step([1, 1, 1, 1])
    assert observations.shape == (4, 3 * frame_stack, 84, 84)
    assert observations[:, -3, 5, 5].tolist() == [0, 0, 1, 1]


def test_frame_stack_of_async_batches():
    env = make(frame_stack=2, batch_size=3, from_pixels=True)
    env.async_reset()
    for _ in range(5):
        observations, *_, info = env.recv()
        assert observations[:, -3, 0, 0].tolist() == info["env_id"].tolist()
        assert observations[:, -2, 0, 0].tolist() == info["elapsed_step"].tolist()
        env.send(np.ones(3), info["env_id"])
