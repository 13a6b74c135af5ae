"""Rules of pong."""

import numpy as np
import pytest

from pufferlib import ocean

STAY, UP, DOWN = range(3)
LEFT_Y, RIGHT_Y, BALL_X, BALL_Y, TO_RIGHT, SPEED_Y, LEFT_POINTS, RIGHT_POINTS = range(8)
FRAMES_TO_OUR_SIDE = 38  # from x = 93.6 with 10 px a frame beyond x = 468


def start(**kwargs):
    env = ocean.Pong(num_envs=1, **kwargs)
    return env, env.reset()[0][0]


def start_with_serve(level, **kwargs):
    """Start a match with the first seed whose serve is level, or not level."""
    return next(match for seed in range(30) if ((match := start(seed=seed, **kwargs))[1][SPEED_Y] == 0.5) == level)


def test_match_starts_with_a_serve_to_the_agent():
    vertical = set()
    for seed in range(30):
        _, view = start(seed=seed)
        np.testing.assert_allclose(view[[LEFT_Y, RIGHT_Y]], 0.5)
        assert view[BALL_X] == pytest.approx(0.2 * 468 / 500)
        assert view[BALL_Y] == pytest.approx(0.5 * 608 / 640)
        assert view[TO_RIGHT] == 1
        assert view[[LEFT_POINTS, RIGHT_POINTS]].tolist() == [0, 0]
        vertical.add(round(float(view[SPEED_Y] * 26 - 13)))
    assert vertical == {-1, 0, 1}, "a serve is level, upwards or downwards"


@pytest.mark.parametrize(("action", "move"), [(STAY, 0), (UP, 8), (DOWN, -8), (3, 0), (-7, 0)])
def test_actions_move_the_paddle(action, move):
    env, view = start()
    env.step([action])
    assert view[RIGHT_Y] * 640 == pytest.approx(320 + move)


def test_continuous_actions_are_paddle_speeds():
    for action, move in ((0.5, 4), (-0.25, -2), (7, 8), (-7, -8)):
        env, view = start(continuous=True)
        env.step([[action]])
        assert view[RIGHT_Y] * 640 == pytest.approx(320 + move)


def test_paddle_stops_when_its_middle_reaches_the_edge():
    env, view = start(width=2048, ball_speed_x=1)
    for action, end in ((UP, 1), (DOWN, 0)):
        for _ in range(100):
            env.step([action])
        assert view[RIGHT_Y] == end


def test_ball_moves_ten_px_per_frame_and_bounces_off_edges():
    env, view = start_with_serve(level=False, serve_speed_y=13)
    heights, speeds = [], []
    for _ in range(37):
        x = view[BALL_X]
        env.step([STAY])
        assert (view[BALL_X] - x) * 500 == pytest.approx(10, abs=1e-3)
        heights.append(float(view[BALL_Y] * 640))
        speeds.append(round(float(view[SPEED_Y] * 26 - 13)))
    assert {abs(speed) for speed in speeds} == {13}
    assert len(set(speeds)) == 2, "the ball must bounce"
    assert min(min(heights), 608 - max(heights)) == pytest.approx(0, abs=1e-3)


def test_return_pays_a_tenth_and_reflects_the_ball():
    env, view = start_with_serve(level=True)
    for _ in range(FRAMES_TO_OUR_SIDE - 1):
        env.step([STAY])
        assert env.rewards[0] == 0
    env.step([STAY])
    assert env.rewards[0] == pytest.approx(0.1)
    assert view[TO_RIGHT] == 0
    assert view[SPEED_Y] * 26 - 13 == pytest.approx(3), "a return must lift a level ball"


@pytest.mark.parametrize(("action", "speed"), [(UP, 3), (DOWN, -3)])
def test_moving_paddle_spins_the_ball(action, speed):
    env, view = start_with_serve(level=True)
    for frame in range(FRAMES_TO_OUR_SIDE):
        env.step([action if frame == FRAMES_TO_OUR_SIDE - 1 else STAY])
    assert env.rewards[0] == pytest.approx(0.1)
    assert view[SPEED_Y] * 26 - 13 == pytest.approx(speed)


def test_missed_ball_costs_a_point_and_is_served_again():
    env, view = start(seed=3)
    for _ in range(FRAMES_TO_OUR_SIDE):
        env.step([UP])
    assert env.rewards[0] == -1
    assert not env.terminals[0]
    assert view[LEFT_POINTS] == pytest.approx(1 / 21)
    assert view[BALL_X] == pytest.approx(0.2 * 468 / 500), "the observation must show the new serve"
    np.testing.assert_allclose(view[[LEFT_Y, RIGHT_Y]], 0.5)


def test_opponent_follows_the_ball():
    env, view = start_with_serve(level=False, serve_speed_y=5)
    for _ in range(20):
        env.step([STAY])
        assert abs(float(view[LEFT_Y] * 640 - view[BALL_Y] * 640)) <= 8 + 5 + 16


def test_spinning_the_ball_wins_points():
    env = ocean.Pong(num_envs=64, frameskip=4)
    view, _ = env.reset()
    rng = np.random.default_rng(0)
    won = 0
    for _ in range(800):
        off = view[:, BALL_Y] * 640 + 16 - view[:, RIGHT_Y] * 640
        actions = np.where(off > 8, UP, np.where(off < -8, DOWN, rng.integers(UP, DOWN + 1, 64)))
        won += (env.step(actions)[1] >= 1).sum()
    assert won > 20


def test_max_score_is_terminal():
    env, _ = start(max_score=2, log_interval=1, seed=3)
    returns = 0.0
    steps = 0
    while not env.terminals[0]:
        steps += 1
        _, rewards, _, truncations, infos = env.step([UP])
        returns += float(rewards[0])
    assert steps == 2 * FRAMES_TO_OUR_SIDE
    assert not truncations[0]
    assert infos == [
        {"score": -2, "perf": 0, "episode_return": pytest.approx(returns), "episode_length": steps, "n": 1},
    ]
    assert env.final_observations[0][LEFT_POINTS] == 1
    assert env.observations[0][LEFT_POINTS] == 0


def test_frameskip_repeats_the_action_up_to_a_point():
    one, view_one = start(seed=3)
    eight, view_eight = start(seed=3, frameskip=8)
    for _ in range(4):
        eight.step([UP])
        for _ in range(8):
            one.step([UP])
        np.testing.assert_array_equal(view_one, view_eight)
    eight.step([UP])
    assert eight.rewards[0] == -1
    assert view_eight[BALL_X] == pytest.approx(0.2 * 468 / 500), "the remaining frames must be skipped"


def test_max_frames_truncates():
    env, _ = start(max_frames=20, frameskip=8, log_interval=1)
    for _ in range(2):
        env.step([STAY])
        assert not env.truncations[0]
    infos = env.step([STAY])[4]
    assert (env.truncations[0], env.terminals[0]) == (True, False)
    assert (infos[0]["score"], infos[0]["perf"], infos[0]["episode_length"]) == (0, 0, 3)
