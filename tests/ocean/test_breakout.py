"""Rules of breakout."""

import numpy as np
import pytest

from pufferlib import ocean

STAY, LEFT, RIGHT = range(3)
PADDLE_X, PADDLE_Y, BALL_X, BALL_Y, SPEED_X, SPEED_Y, LAUNCHED, POINTS, BALLS, PADDLE_SIZE = range(10)
BRICKS = slice(10, None)


def start(**kwargs):
    env = ocean.Breakout(num_envs=1, **{"frameskip": 1, **kwargs})
    return env, env.reset()[0][0]


def follow(view, aim=0.0):
    """Return the action with which the ball hits the paddle ``aim`` px to the right of its middle."""
    paddle = view[PADDLE_X] * 576 + 31 * view[PADDLE_SIZE]
    off = view[BALL_X] * 576 + 16 - paddle - aim
    return STAY if abs(off) < 6 else RIGHT if off > 0 else LEFT


def speed(view):
    return 512 * float(np.hypot(view[SPEED_X], view[SPEED_Y]))


def play(env, view, num_steps, aim=0.0):
    """Follow the ball, and yield after every step."""
    for _ in range(num_steps):
        env.step([follow(view, aim)])
        yield


def test_game_starts_with_all_bricks_and_a_resting_ball():
    _, view = start()
    assert view.shape == (118,)
    assert not view[BRICKS].any()
    assert view[PADDLE_X] * 576 == pytest.approx((576 - 62) / 2)
    assert view[PADDLE_Y] * 330 == pytest.approx(312)
    assert (view[BALL_X] * 576, view[BALL_Y] * 330) == pytest.approx((272, 135))
    assert view[[SPEED_X, SPEED_Y, LAUNCHED, POINTS, BALLS, PADDLE_SIZE]].tolist() == [0, 0, 0, 0, 1, 1]


def test_first_frame_launches_the_ball_downwards_to_either_side():
    directions = set()
    for seed in range(20):
        env, view = start(seed=seed)
        env.step([RIGHT])
        assert view[PADDLE_X] * 576 == pytest.approx(257), "the action of this frame is ignored"
        assert view[LAUNCHED] == 1
        assert speed(view) == pytest.approx(256, rel=1e-4)
        assert view[SPEED_Y] * 512 == pytest.approx(256 * np.cos(np.pi / 3.25), rel=1e-4)
        directions.add(float(np.sign(view[SPEED_X])))
    assert directions == {-1, 1}


@pytest.mark.parametrize(("action", "move"), [(STAY, 0), (LEFT, -1), (RIGHT, 1), (3, 0), (-1, 0)])
def test_actions_move_the_paddle(action, move):
    env, view = start()
    env.step([STAY])
    env.step([action])
    assert view[PADDLE_X] * 576 == pytest.approx(257 + move * 620 / 60, abs=1e-3)


def test_paddle_stays_in_the_field():
    env, view = start()
    for action, end in ((LEFT, 0), (RIGHT, 576 - 62)):
        for _ in range(60):
            env.step([action])
        assert view[PADDLE_X] * 576 == pytest.approx(end, abs=1e-3)


def test_continuous_actions_are_paddle_speeds():
    for action, share in ((0.5, 0.5), (-0.25, -0.25), (9, 1), (-9, -1)):
        env, view = start(continuous=True)
        env.step([[0]])
        env.step([[action]])
        assert view[PADDLE_X] * 576 == pytest.approx(257 + share * 620 / 60, abs=1e-3)


@pytest.mark.parametrize("aim", [-20, 0, 20])
def test_angle_of_a_return_depends_on_the_point_of_contact(aim):
    env, view = start()
    for _ in play(env, view, 200, aim):
        if view[SPEED_Y] < 0:
            break
    assert view[BALL_Y] * 330 == pytest.approx(312 - 32, abs=1e-2)
    middle = view[BALL_X] * 576 + 16 - view[PADDLE_X] * 576
    assert view[SPEED_X] / -view[SPEED_Y] == pytest.approx(np.clip(2 * middle / 62 - 1, -1, 1), abs=1e-3)
    assert speed(view) == pytest.approx(256, rel=1e-4)


def test_brick_pays_its_points_and_reflects_the_ball():
    env, view = start()
    for _ in play(env, view, 2000):
        if env.rewards[0]:
            break
    assert env.rewards[0] == 1, "the lowest rows pay 1"
    (brick,) = np.flatnonzero(view[BRICKS])
    assert brick // 18 == 5
    assert view[SPEED_Y] > 0
    assert view[POINTS] == pytest.approx(1 / 864)
    assert view[BALL_Y] * 330 == pytest.approx(50 + 6 * 12, abs=1e-2), "the ball stops at the wall"
    assert brick % 18 in {int(view[BALL_X] * 18), int(view[BALL_X] * 18 + 1)}


def test_bricks_pay_seven_four_and_one_from_the_top():
    env, view = start(frameskip=4)
    gone = np.zeros(108, bool)
    rng = np.random.default_rng(0)
    paid = {}
    for _ in range(4000):
        env.step([follow(view, rng.uniform(-25, 25))])
        new = np.flatnonzero((view[BRICKS] > 0) & ~gone)
        if env.terminals[0] or view[BRICKS].sum() < gone.sum():
            break
        if len(new) == 1:
            paid.setdefault(int(new[0]) // 18, set()).add(float(env.rewards[0]))
        gone[new] = True
    assert paid == {0: {7}, 1: {7}, 2: {4}, 3: {4}, 4: {1}, 5: {1}}


def test_reward_per_point_scales_rewards():
    plain, view = start()
    scaled, _ = start(reward_per_point=0.25)
    for _ in range(1000):
        action = follow(view)
        plain.step([action])
        scaled.step([action])
        assert scaled.rewards[0] == 0.25 * plain.rewards[0]


def test_every_fourth_return_is_faster_until_a_high_brick_is_hit():
    env, view = start()
    returns, speeds = 0, {}
    upwards = False
    for _ in play(env, view, 6000):
        if view[SPEED_Y] < 0 and not upwards and view[BALL_Y] * 330 > 250:
            returns += 1
            speeds[returns] = round(speed(view))
        upwards = view[SPEED_Y] < 0
        if view[BRICKS][:54].any() or env.terminals[0]:
            break
    expected = {n: min(256 + 64 * (n // 4), 448) for n in speeds}
    assert len(speeds) >= 8
    assert speeds == expected


def test_ceiling_halves_the_paddle_until_the_ball_is_lost():
    env, view = start(brick_rows=1, brick_columns=1)
    for _ in play(env, view, 3000, aim=12):
        if view[PADDLE_SIZE] == 0.5:
            break
    assert view[PADDLE_SIZE] == 0.5
    assert view[BALL_Y] == 0
    balls = view[BALLS]
    while view[BALLS] == balls:
        env.step([LEFT if view[BALL_X] > 0.5 else RIGHT])
    assert view[PADDLE_SIZE] == 1


def test_lost_balls_are_replaced_and_the_last_one_is_terminal():
    env, view = start(balls=2, log_interval=1)
    drops, steps, reserve = 0, 0, []
    while not env.terminals[0]:
        before = view[BALLS]
        infos = env.step([LEFT if view[BALL_X] > 0.5 else RIGHT])[4]
        steps += 1
        if view[BALLS] != before or env.terminals[0]:
            drops += 1
            reserve.append(float(view[BALLS]))
            assert view[LAUNCHED] == 0
            assert env.rewards[0] == 0
    assert drops == 3
    assert reserve == [0.5, 0, 1]
    assert not env.truncations[0]
    assert infos[0]["episode_length"] == steps
    assert env.final_observations[0][BALL_Y] > 320 / 330


def test_second_wall_appears_and_clearing_it_is_terminal():
    env, view = start(brick_rows=1, brick_columns=2, log_interval=1, max_frames=100_000)
    walls = points = 0
    rng = np.random.default_rng(2)
    for _ in range(100_000):
        standing = view[BRICKS].sum()
        infos = env.step([follow(view, rng.uniform(-28, 28) * view[PADDLE_SIZE])])[4]
        points += env.rewards[0]
        if env.terminals[0]:
            break
        if view[BRICKS].sum() < standing:
            walls += 1
            assert standing == 2
            assert view[SPEED_Y] < 0, "the wall appears when the ball is returned"
    assert (walls, points) == (1, 28)
    assert infos[0]["score"] == 28
    assert infos[0]["perf"] == 1


def test_frameskip_repeats_the_action():
    one, view_one = start(seed=3)
    four, view_four = start(seed=3, frameskip=4)
    for _ in range(500):
        action = follow(view_four)
        rewards = 0
        four.step([action])
        for _ in range(4):
            one.step([action])
            rewards += one.rewards[0]
        np.testing.assert_array_equal(view_one, view_four)
        assert four.rewards[0] == rewards


def test_max_frames_truncates():
    env, _ = start(max_frames=10, frameskip=4)
    flags = [bool(env.step([STAY])[3][0]) for _ in range(6)]
    assert flags == [False, False, True] * 2
    assert not env.terminals[0]


@pytest.mark.parametrize(
    "kwargs",
    [{"brick_columns": 19}, {"brick_rows": 8}, {"paddle_width": 600}, {"height": 200}, {"ball_size": 200}],
)
def test_sizes_that_do_not_fit_are_refused(kwargs):
    with pytest.raises(ValueError, match=r"Breakout: .* must be at most .*, got .*="):
        ocean.Breakout(**kwargs)
