"""Families of tasks in worker processes: ids, spaces, infos, step limits and frames."""

import numpy as np
import pytest

from pufferlib.envpool.config import backend_config, checked_config, pool_seeds
from pufferlib.envpool.families import load_tasks
from pufferlib.envpool.pool import PoolTask
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError, BindingMissing
from tests.envpool.pools import send_and_recv
from tests.needs import missing_binding

WORKERS = ("box2d", "dm_control", "minigrid", "mujoco", "procgen", "toy_text", "vizdoom")

#: Family, task, keyword arguments, observation shapes, action shape, some infos and frame size.
PLAYED = [
    ("box2d", "LunarLander-v2", {}, (8,), (), (), (400, 600)),
    ("box2d", "CarRacing-v3", {}, (96, 96, 3), (3,), (), (400, 600)),
    ("dm_control", "WalkerWalk-v1", {}, {"height": (), "orientations": (14,), "velocity": (9,)}, (6,), (), (480, 480)),
    ("minigrid", "MiniGrid-DoorKey-5x5-v0", {"native": False},
     {"direction": (), "image": (7, 7, 3), "mission": (96,)}, (),
     ("agent_pos",), (160, 160)),
    ("mujoco", "Ant-v5", {"render_width": 64, "render_height": 48}, (105,), (8,), ("reward_survive", "x_velocity"),
     (48, 64)),
    ("mujoco", "Humanoid-v4", {}, (376,), (17,), ("reward_alive",), (480, 480)),
    ("procgen", "BigfishEasy-v0", {"num_levels": 3}, (3, 64, 64), (), (), (512, 512)),
    ("procgen", "CaveflyerMemory-v0", {"channel_first": False}, (64, 64, 3), (), (), (512, 512)),
    ("toy_text", "Blackjack-v1", {"native": False}, (3,), (), (), (376, 384)),
    ("toy_text", "FrozenLake-v1", {"native": False, "is_slippery": False}, (), (), ("prob",), (256, 256)),
    ("vizdoom", "HealthGathering-v1", {}, (12, 84, 84), (3,), ("HEALTH", "USER2"), (120, 160)),
    ("vizdoom", "SimplerBasic-v1", {"stack_num": 2, "img_height": 60}, (2, 60, 84), (3,), ("AMMO2",), (120, 160)),
    ("vizdoom", "MyWayHome-v1", {"use_combined_action": True}, (12, 84, 84), (), (), (120, 160)),
]  # fmt: skip
DAY = ("FrozenLake-v1",)


def tasks_of(family):
    return {task.id: task for task in load_tasks() if task.family == family}


def make_task_pool(task, **settings):
    config = checked_config("envpool.make", task, settings)
    config = backend_config(config, pool_seeds(config))
    return task.backend.make(config, task.backend.describe(config))


def shapes(observations):
    if isinstance(observations, dict):
        return {name: array.shape[1:] for name, array in observations.items()}
    return observations.shape[1:]


def test_ids_match_envpool():
    found = {family: tasks_of(family) for family in WORKERS}
    numbers = {family: len(tasks) for family, tasks in found.items()}
    assert numbers == {
        "box2d": 8, "dm_control": 51, "minigrid": 172, "mujoco": 22, "procgen": 50, "toy_text": 7, "vizdoom": 17,
    }  # fmt: skip
    for family, task_id in (
        ("dm_control", "BallInCupCatch-v1"), ("dm_control", "HumanoidCMURun-v1"), ("dm_control", "LqrLqr21-v1"),
        ("dm_control", "SwimmerSwimmer15-v1"), ("minigrid", "BabyAI-GoToObjS6-v1"), ("procgen", "LeaperExtreme-v0"),
        ("vizdoom", "DefendTheCenter-v1"), ("vizdoom", "VizdoomCustom-v1"),
    ):  # fmt: skip
        assert task_id in found[family]


def test_limits_and_thresholds_match_envpool():
    limits = {
        "mujoco": {"Reacher-v4": (50, -3.75), "Walker2d-v5": (1000, None)},
        "box2d": {"LunarLander-v2": (1000, 200)},
        "toy_text": {"Taxi-v3": (200, 8)},
        "vizdoom": {"Basic-v1": (525, None)},
    }
    for family, expected in limits.items():
        tasks = tasks_of(family)
        for task_id, numbers in expected.items():
            assert (tasks[task_id].max_episode_steps, tasks[task_id].reward_threshold) == numbers


def needed_extra(family):
    return next(iter(tasks_of(family).values())).extra


@pytest.mark.parametrize(
    ("family", "task_id", "keywords", "observation", "action", "infos", "picture"),
    [pytest.param(*case, id=case[1], marks=() if case[1] in DAY else pytest.mark.all) for case in PLAYED],
)
def test_task_steps_and_renders(family, task_id, keywords, observation, action, infos, picture):
    extra = needed_extra(family)
    if extra and (absent := missing_binding(extra)):
        pytest.skip(absent)
    pool = make_task_pool(
        tasks_of(family)[task_id], num_envs=3, num_threads=2, render_mode="rgb_array", max_episode_steps=4, **keywords
    )
    try:
        rng = np.random.default_rng(0)
        pool.spec.action_space.seed(0)
        pool.reset()
        batch = pool.recv()
        assert shapes(batch.observations) == observation
        assert batch.observations is not None
        for step in range(1, 5):
            actions = np.stack([pool.spec.action_space.sample() for _ in range(3)])
            assert actions.shape[1:] == action
            batch = send_and_recv(pool, np.clip(actions, -1, 1) if actions.dtype.kind == "f" else actions)
            playing = batch.elapsed_step == step
            assert (batch.truncated[playing] == (step == 4)).all()
        assert set(infos) <= set(batch.infos)
        pictures = pool.render(rng.permutation([0, 2]).astype(np.int32))
        assert pictures.shape == (2, *picture, 3)
        assert pictures.std() > 0
    finally:
        pool.close()


def absent():
    raise BindingMissing("mujoco/Ant-v5: needs the package mujoco, which is not installed; run: puffer install mujoco")


def test_missing_package_raises_with_install_command():
    task = PoolTask("Ant-v9", "mujoco", WorkerBackend(absent))
    with pytest.raises(BindingMissing, match="mujoco, which is not installed; run: puffer install mujoco"):
        make_task_pool(task)


def test_unknown_keyword_of_environment_suggests_the_nearest():
    with pytest.raises(APIUsageError, match="unexpected keyword argument 'is_slipery'; did you mean 'is_slippery'"):
        make_task_pool(tasks_of("toy_text")["FrozenLake-v1"], is_slipery=False)
