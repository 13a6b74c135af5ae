"""Rules of enduro, tested by playing. tests/native/enduro_rules.c tests rules that seldom apply."""

import numpy as np
import pytest

from pufferlib import ocean

NOTHING, ACCELERATE, RIGHT, LEFT, BRAKE, BRAKE_RIGHT, BRAKE_LEFT, ACCELERATE_RIGHT, ACCELERATE_LEFT = range(9)
X, Y, SPEED, LEFT_EDGE, RIGHT_EDGE, LAST_LEFT, LAST_RIGHT, LANE = range(8)
TURN, PUSH, PUSH_SIZE, CURVE, TIME, TO_PASS, *LANES, STUN = range(58, 68)
DAY = 13920
NO_REWARDS = {
    f"reward_{name}": 0 for name in ("pass", "repass", "day", "crash", "edge", "crashed", "free_lane", "streak")
}


def start(**kwargs):
    env = ocean.Enduro(num_envs=1, **{"frameskip": 1, **kwargs})
    return env, env.reset()[0][0]


def cars(view):
    """Return the rows of the visible cars: x, y, dx, dy, whether in the same lane."""
    slots = view[8:58].reshape(-1, 5)
    return slots[slots[:, 1] > 0]


def drive(views):
    """Return actions of careful drivers, which use the lane with the most room and brake behind other cars."""
    room = views[:, LANES]
    lane = np.rint(2 * views[:, LANE]).astype(int)
    own = np.take_along_axis(room, lane[:, None], 1)[:, 0]
    goal = np.where(own > 0.35, lane, room.argmax(1))
    goal = np.where(abs(goal - lane) == 2, np.where(room[:, 1] > 0.06, 1, lane), goal)  # never through a car
    off = (np.array([1, 3, 5])[goal] / 6 - views[:, X]) * 96
    steer = np.where(off > 2, 1, np.where(off < -2, -1, 0))
    fast = (own > 0.12) | (views[:, SPEED] < 0.3)
    return np.array([[BRAKE_LEFT, BRAKE, BRAKE_RIGHT], [ACCELERATE_LEFT, ACCELERATE, ACCELERATE_RIGHT]])[
        fast.astype(int), steer + 1
    ]


def play(env, steps):
    """Step with careful drivers, and yield after every step."""
    for _ in range(steps):
        env.step(drive(env.observations))
        yield


def test_all_68_numbers_change_and_stay_in_bounds():
    env = ocean.Enduro(num_envs=16, frameskip=4, day_frames=4000, first_quota=1, quota=1)
    env.reset(seed=1)
    low, high = env.observations.copy(), env.observations.copy()
    rng = np.random.default_rng(0)
    for _ in range(1500):
        env.step(rng.integers(0, 9, 16))
        np.minimum(low, env.observations, out=low)
        np.maximum(high, env.observations, out=high)
    assert low.shape == (16, 68)
    assert (low >= -1).all()
    assert (high <= 1).all()
    assert (high.max(0) > low.min(0)).all(), "some numbers never changed"


def test_race_starts_slowly_on_a_straight_empty_road():
    _, view = start()
    assert (view[X], view[SPEED], view[LANE], view[CURVE], view[TURN]) == (0.5, 0, 0.5, 0, 0.5)
    assert view[[LEFT_EDGE, RIGHT_EDGE]] * 152 == pytest.approx([28, 124])
    assert not len(cars(view))
    assert view[[TIME, TO_PASS, *LANES, STUN]].tolist() == [0, 1, 1, 1, 1, 0]


def test_acceleration_depends_on_gears():
    env, view = start(max_enemies=1)
    speeds = [0.0]
    while speeds[-1] < 1:
        env.step([ACCELERATE])
        speeds.append(float(view[SPEED]))
    pulls = np.diff(speeds) * 675
    assert pulls[:-1].max() == pytest.approx(4, rel=1e-2)
    assert pulls[:-1].min() == pytest.approx(2, rel=1e-2)
    shifts = np.flatnonzero(np.diff(np.rint(pulls[:-1]))) + 1
    assert [round(11.25 * speeds[i], 1) for i in shifts] == pytest.approx([4.0], abs=0.11)


@pytest.mark.parametrize(
    ("action", "move", "pull"),
    [
        (NOTHING, 0, 0),
        (ACCELERATE, 0, 1),
        (RIGHT, 1, 0),
        (LEFT, -1, 0),
        (BRAKE, 0, -1),
        (BRAKE_RIGHT, 1, -1),
        (BRAKE_LEFT, -1, -1),
        (ACCELERATE_RIGHT, 1, 1),
        (ACCELERATE_LEFT, -1, 1),
        (9, 0, 0),
        (-1, 0, 0),
    ],
)
def test_actions_steer_and_change_the_speed(action, move, pull):
    env, view = start()
    for _ in range(60):
        env.step([ACCELERATE])
    speed, x = float(view[SPEED]), float(view[X])
    env.step([action])
    assert np.sign(np.float32(view[X]) - np.float32(x)) == move
    assert np.sign(np.float32(view[SPEED]) - np.float32(speed)) == pull


def test_continuous_actions_steer_and_brake_in_parts():
    env, view = start(continuous=True)
    for steering, throttle, move, speed in ((0.5, 0.5, 0.5, 2 / 675), (-9, 0, -1, 0), (0, -9, 0, -0.001)):
        env.reset(seed=0)
        for _ in range(30):
            env.step([[0, 1]])
        before = view.copy()
        env.step([[steering, throttle]])
        assert (view[X] - before[X]) * 96 == pytest.approx(move * (view[SPEED] + 0.3), abs=1e-3)
        assert view[SPEED] - before[SPEED] == pytest.approx(speed, abs=1e-5)


def test_edge_reduces_speed_and_stuns():
    env, view = start(**{**NO_REWARDS, "reward_edge": -0.5})
    while not env.rewards[0]:
        speed = view[SPEED]
        env.step([ACCELERATE_RIGHT])
    assert env.rewards[0] == -0.5
    assert view[STUN] == pytest.approx(20 / 90)
    assert view[SPEED] == pytest.approx(speed - 0.125, abs=0.007)
    for left in range(19, -1, -1):
        x = view[X]
        env.step([RIGHT])
        assert view[X] < x, "the car must bounce back"
        assert view[STUN] == pytest.approx(left / 90)


def test_cars_are_ordered_by_distance_ahead_and_then_behind():
    env = ocean.Enduro(num_envs=8, frameskip=1, seed=3)
    env.reset()
    behind_seen = 0
    for _ in play(env, 600):
        for view in env.observations:
            rows = cars(view)[:, 1]
            ahead = rows[: np.flatnonzero(np.diff(rows) > 1e-6)[0] + 1] if (np.diff(rows) > 1e-6).any() else rows
            behind = rows[len(ahead) :]
            behind_seen += len(behind)
            assert (np.diff(ahead) <= 1e-6).all()
            assert (np.diff(behind) >= -1e-6).all()
    assert behind_seen


def test_observed_velocity_matches_the_movement():
    env, view = start(seed=2, **{**NO_REWARDS, "reward_pass": 1, "reward_repass": -1})
    followed = 0
    for _ in play(env, 900):
        before = cars(view)[:1].copy()
        env.step([NOTHING])
        after = cars(view)[:1]
        if not len(before) or not len(after) or env.rewards[0]:
            continue  # the nearest car has changed
        assert after[0, 2] * 10 == pytest.approx((after[0, 0] - before[0, 0]) * 152, abs=2e-3)
        assert after[0, 3] * 10 == pytest.approx((after[0, 1] - before[0, 1]) * 210, abs=2e-3)
        followed += 1
    assert followed > 500


def test_fog_hides_distant_cars():
    env = ocean.Enduro(num_envs=4, day_frames=3200, frameskip=2, first_quota=1, quota=1, seed=1)
    env.reset()
    farthest = dict.fromkeys(range(16), 1.0)
    for _ in play(env, 1590):
        phase = int(env.observations[0][TIME] * 16)
        rows = np.concatenate([cars(view)[:, 1] for view in env.observations])
        farthest[phase] = min([farthest[phase], *rows])
    fog = [phase for phase in range(16) if farthest[phase] > 75 / 210]
    assert fog == [11, 12]


def test_careful_drivers_meet_the_quota_of_the_first_day():
    env = ocean.Enduro(num_envs=16, frameskip=4, max_days=1, log_interval=DAY // 4, seed=5)
    env.reset()
    for _ in range(DAY // 4):
        infos = env.step(drive(env.observations))[4]
    (info,) = infos
    assert info["n"] == 16
    assert info["perf"] >= 0.9


def test_missed_quota_is_terminal():
    env, view = start(day_frames=600, first_quota=1, quota=100, max_days=5, seed=3, log_interval=1)
    ends, to_pass = [], []
    for step, _ in enumerate(play(env, 1200), start=1):
        to_pass.append(float(view[TO_PASS]))
        if env.terminals[0] or env.truncations[0]:
            ends.append((step, bool(env.terminals[0]), bool(env.truncations[0])))
    assert to_pass[598] == 0, "the quota of the first day must be met"
    assert to_pass[599] == 1, "the next day must start"
    assert ends == [(1200, True, False)]


def test_max_days_truncates():
    env, _ = start(**{**NO_REWARDS, "reward_day": 1}, day_frames=600, first_quota=1, quota=1, max_days=2, seed=3)
    paid = [step for step, _ in enumerate(play(env, 1200), start=1) if env.rewards[0] == 1]
    assert paid == [600, 1200]
    assert (env.terminals[0], env.truncations[0]) == (False, True)


@pytest.mark.parametrize(("reward", "metric"), [("reward_crash", "crashes"), ("reward_edge", "edge_hits")])
def test_crashes_and_edge_hits_are_summed_over_the_episode(reward, metric):
    env = ocean.Enduro(num_envs=8, **{**NO_REWARDS, reward: -1}, day_frames=3000, frameskip=2, log_interval=1)
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(1500):
        infos = env.step(rng.integers(0, 9, 8))[4]
    (info,) = infos
    assert info["n"] == 8
    assert info[metric] == -info["episode_return"] > 0
    assert info["episode_length"] == 1500
    assert 3000 < info["score"] < 6000
    assert (info["perf"], info["days_completed"]) == (0, 0)


def test_passing_a_car_pays_once():
    env = ocean.Enduro(num_envs=8, **{**NO_REWARDS, "reward_pass": 1}, day_frames=3000, frameskip=2, log_interval=1)
    env.reset(seed=1)
    for _ in range(1500):
        infos = env.step(drive(env.observations))[4]
    (info,) = infos
    assert 0 < info["episode_return"] <= info["passed"]
    assert info["passed"] - info["episode_return"] <= info["repassed"]


def test_frameskip_repeats_the_action():
    one, view_one = start(seed=3)
    four, view_four = start(seed=3, frameskip=4)
    for _ in range(800):
        action = drive(four.observations)
        four.step(action)
        rewards = np.float32(0)
        for _ in range(4):
            one.step(action)
            rewards += one.rewards[0]
        np.testing.assert_array_equal(view_one, view_four)
        assert four.rewards[0] == pytest.approx(rewards, abs=1e-5)


def test_traffic_depends_on_the_seed():
    def traffic(seed):
        env, view = start(seed=seed)
        return b"".join(view.tobytes() for _ in play(env, 300))

    assert traffic(1) == traffic(1)
    assert traffic(1) != traffic(2)
