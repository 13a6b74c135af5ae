"""Tasks in C, compared with the Python environments that they equal, in workers."""

import numpy as np
import pytest
from gymnasium.spaces import Box

from pufferlib import envpool
from pufferlib.errors import APIUsageError, PufferError
from tests.needs import missing_binding

TASKS = ("Blackjack-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v3")
VARIED = [
    ("Blackjack-v1", {"sab": False, "natural": True}),
    ("CliffWalking-v1", {"max_episode_steps": 50}),
    ("FrozenLake-v1", {"desc": ["SFFS", "FHFF", "SFFG"]}),
    ("FrozenLake-v1", {"desc": ("SFG",), "is_slippery": False}),
    ("FrozenLake-v1", {"map_name": "8x8", "max_episode_steps": 7}),
    ("FrozenLake-v1", {"success_rate": 0.7, "reward_schedule": (5, -1, 0)}),
    ("Taxi-v3", {"is_rainy": True, "fickle_passenger": True}),
]
absent = missing_binding("minigrid")
MINIGRID = [
    pytest.param(task_id, keywords, marks=pytest.mark.skipif(bool(absent), reason=absent))
    for task_id, keywords in (
        ("MiniGrid-Dynamic-Obstacles-5x5-v0", {}),
        ("MiniGrid-Fetch-5x5-N2-v0", {"max_episode_steps": 20, "agent_view_size": 5}),
        ("MiniGrid-PutNear-6x6-N2-v0", {}),  # some episodes end with their last step
        ("BabyAI-GoToObjS4-v0", {}),
        ("BabyAI-MiniBossLevel-v0", {}),
    )
]
no_robots = missing_binding("mujoco")
ROBOTS = [
    pytest.param(task_id, keywords, marks=pytest.mark.skipif(bool(no_robots), reason=no_robots))
    for task_id, keywords in (
        ("Ant-v5", {"max_episode_steps": 40}),
        ("HalfCheetah-v5", {"max_episode_steps": 20, "ctrl_cost_weight": 0.3}),
        ("Hopper-v5", {}),
        ("Humanoid-v5", {}),
        ("HumanoidStandup-v5", {"max_episode_steps": 30}),
        ("InvertedDoublePendulum-v5", {}),
        ("InvertedPendulum-v5", {}),
        ("Pusher-v5", {"max_episode_steps": 30}),
        ("Reacher-v5", {}),
        ("Swimmer-v5", {"max_episode_steps": 30}),
        ("Walker2d-v5", {}),
    )
]
no_box2d = missing_binding("box2d")
BOX2D = [
    pytest.param(task_id, keywords, marks=pytest.mark.skipif(bool(no_box2d), reason=no_box2d))
    for task_id, keywords in (
        ("BipedalWalker-v3", {"max_episode_steps": 40}),
        ("BipedalWalkerHardcore-v3", {}),
        ("CarRacing-v2", {"max_episode_steps": 40}),
        ("LunarLander-v3", {"enable_wind": True}),
        ("LunarLanderContinuous-v2", {"max_episode_steps": 40}),
    )
]
no_suite = missing_binding("dmcontrol")
SUITE = [
    pytest.param(task_id, {"max_episode_steps": 40}, marks=pytest.mark.skipif(bool(no_suite), reason=no_suite))
    for task_id in ("CartpoleSwingup-v1", "FingerSpin-v1", "ReacherEasy-v1", "WalkerWalk-v1")
]


#: Tasks of every kind, with keywords where the kind has some. The default suite steps these 50 times, --all steps every
#: task 1000 times.
QUICK = [("Taxi-v3", {}), *VARIED[:4], MINIGRID[1], ROBOTS[1]]


def both(task_id, **keywords):
    keywords |= {"num_envs": 8, "num_threads": 1}
    return [envpool.make_gymnasium(task_id, native=native, **keywords) for native in (True, False)]


def flat(values, path=""):
    """Return the arrays of nested tuples and dicts by their path."""
    if isinstance(values, np.ndarray):
        return {path: values}
    items = values.items() if isinstance(values, dict) else enumerate(values)
    return {name: array for key, value in items for name, array in flat(value, f"{path}/{key}").items()}


def assert_same(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    assert ours.keys() >= theirs.keys()
    for name, wanted in theirs.items():
        array = ours[name]
        if "/final_" in name:  # other rows are undefined
            ended = theirs[f"{name[:2]}/_final_obs"]
            array, wanted = array[ended], wanted[ended]
        assert (array.dtype, array.shape, array.tolist()) == (wanted.dtype, wanted.shape, wanted.tolist()), name


def play_both(task_id, steps, **keywords):
    """Step both with the same random actions. Return the number of ends."""
    ours, theirs = both(task_id, **keywords)
    rng, ends = np.random.default_rng(0), 0
    try:
        assert type(ours.pool) is not type(theirs.pool)
        assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
        assert_same(ours.reset(), theirs.reset())
        for _ in range(steps):
            actions = random_actions(ours.action_space, rng)
            outcome = ours.step(actions)
            assert_same(outcome, theirs.step(actions))
            ends += int((outcome[2] | outcome[3]).sum())
    finally:
        ours.close()
        theirs.close()
    return ends


def random_actions(space, rng):
    if isinstance(space, Box):
        return rng.uniform(1.2 * space.low, 1.2 * space.high, (8, *space.shape)).astype(np.float32)
    return rng.integers(space.n, size=8)


@pytest.mark.parametrize(("task_id", "keywords"), QUICK, ids=str)
def test_results_are_those_of_the_python_environment(task_id, keywords):
    play_both(task_id, 50, autoreset="same_step", **keywords)


@pytest.mark.all
@pytest.mark.parametrize(
    ("task_id", "keywords"),
    [*((task_id, {}) for task_id in TASKS), *VARIED, *MINIGRID, *ROBOTS, *BOX2D, *SUITE],
    ids=str,
)
def test_long_play_gives_the_results_of_the_python_environment(task_id, keywords):
    steps = 100 if task_id.startswith("CarRacing") else 1000
    ends = play_both(task_id, steps, autoreset="same_step", **keywords)
    assert ends > 0 or task_id == "CliffWalking-v1"  # has no limit, and random walks hardly end


@pytest.mark.parametrize(
    ("task_id", "limit"),
    [
        ("FrozenLake-v1", 100),
        ("Blackjack-v1", 0),
        pytest.param("InvertedPendulum-v5", 1000, marks=pytest.mark.skipif(bool(no_robots), reason=no_robots)),
        pytest.param("LunarLander-v3", 40, marks=pytest.mark.skipif(bool(no_box2d), reason=no_box2d)),
    ],
)
def test_results_are_the_same_with_resets_in_the_next_step(task_id, limit):
    assert play_both(task_id, 50, max_episode_steps=limit) > 0


@pytest.mark.parametrize(
    "keywords",
    [{"desc": ["SF" * 10]}, {"desc": ["SA"]}, {"success_rate": 0.123456789}, {"reward_schedule": (1e6, 0, 0)}],
    ids=str,
)
def test_values_that_only_gymnasium_accepts_run_there(keywords):
    native, env = (envpool.make_gymnasium("FrozenLake-v1", **given) for given in ({}, keywords))
    assert type(env.pool) is not type(native.pool)
    env.close()
    native.close()


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"native": 1}, APIUsageError, "native must be True or False, got 1"),
        ({"is_slipery": True}, APIUsageError, "unexpected keyword argument 'is_slipery'; did you mean 'is_slippery'"),
        ({"map_name": "5x5"}, PufferError, "5x5"),
    ],
    ids=str,
)
def test_wrong_keywords_are_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        envpool.make_gymnasium("FrozenLake-v1", **keywords)


def test_games_render():
    env = envpool.make_gymnasium("FrozenLake-v1", num_envs=2, desc=["SFFF", "FFHG"], render_mode="rgb_array")
    env.reset()
    assert env.render([0, 1]).std() > 0
    env.close()
