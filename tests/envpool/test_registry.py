"""Built-in tasks and tasks of the user."""

import pytest

import pufferlib.envpool as envpool
from pufferlib import ocean
from pufferlib.envpool.families import load_tasks
from pufferlib.envpool.make import find_task
from pufferlib.errors import APIUsageError, UnknownKeywordError, UnknownNameError
from pufferlib.ocean.files import write_template
from tests.envpool.counting import CountingBackend, register_counting

CLASSIC = {
    "Acrobot-v1": (500, -100.0),
    "CartPole-v0": (200, 195.0),
    "CartPole-v1": (500, 475.0),
    "MountainCar-v0": (200, -110.0),
    "MountainCarContinuous-v0": (999, 90.0),
    "Pendulum-v0": (200, None),
    "Pendulum-v1": (200, None),
    "phys2d/CartPole-v1": (500, 475.0),
}


def test_list_all_envs_is_sorted_and_unique():
    ids = envpool.list_all_envs()
    assert ids == sorted({*ids})
    assert {"Breakout-v0", "CartPole-v1", "TripleTriad-v0", "PyMultiagent-v0", "Spaces-v0"} <= {*ids}


@pytest.mark.parametrize("task_id", CLASSIC)
def test_classic_control_limits_match_gymnasium(task_id):
    spec = envpool.make_spec(task_id)
    assert (spec.config.max_episode_steps, spec.reward_threshold) == CLASSIC[task_id]


def test_every_ocean_environment_is_a_task():
    found = {find_task("test", task_id).backend for task_id in envpool.list_all_envs()}
    assert {backend.name for backend in found if hasattr(backend, "name")} >= {*ocean.names()}


def test_task_ids_are_unique():
    ids = [task.id for task in load_tasks()]
    assert len(ids) == len({*ids})


def test_register():
    task_id = register_counting()
    assert task_id in envpool.list_all_envs()
    envpool.register("Counted-v0", CountingBackend(), max_episode_steps=3, reward_threshold=2.5)
    config = envpool.make("Counted-v0", env_type="gym").config
    assert (config["max_episode_steps"], config["reward_threshold"]) == (3, 2.5)


def test_unknown_keyword_of_a_registered_c_file_raises(tmp_path):
    source, _ = write_template("corridor", tmp_path)
    envpool.register("Corridor-v0", str(source))
    with pytest.raises(UnknownKeywordError, match="did you mean 'length'"):
        envpool.make_gymnasium("Corridor-v0", lenght=5)


@pytest.mark.parametrize(
    ("task_id", "env", "message"),
    [
        ("Breakout-v0", CountingBackend(), "task_id must be new, got 'Breakout-v0', which there is"),
        ("", CountingBackend(), "task_id must be a text"),
        (3, CountingBackend(), "task_id must be a text, as in 'Forage-v0', got 3"),
        ("Mine-v0", 3, "env must be a class, a function, a name as 'mypkg.envs:Forage', or a Backend, got 3"),
        ("Mine-v0", None, "env must be a class, a function"),
    ],
)
def test_register_with_invalid_arguments_raises(task_id, env, message):
    with pytest.raises(APIUsageError, match=message):
        envpool.register(task_id, env)


def test_register_with_negative_limit_raises():
    with pytest.raises(APIUsageError, match=r"register: max_episode_steps must be an int from 0 to \d+, got -1"):
        envpool.register("Mine-v0", CountingBackend(), max_episode_steps=-1)


def test_register_twice_requires_replace():
    task_id = register_counting()
    with pytest.raises(APIUsageError, match=r"task_id must be new, .* or replace yours by replace=True"):
        envpool.register(task_id, CountingBackend())
    envpool.register(task_id, CountingBackend(), max_episode_steps=7, replace=True)
    assert find_task("test", task_id).max_episode_steps == 7
    with pytest.raises(APIUsageError, match=r"got 'Pong-v0', which there is; choose another$"):
        envpool.register("Pong-v0", CountingBackend(), replace=True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pong", "Pong-v"),
        ("atari/breakout", "Breakout-v"),
        ("PongNoFrameskip-v4", "Pong-v"),
        ("ALE/Breakout-v5", "Breakout-v"),
        ("Cartpole-v1", "CartPole-v1"),
        ("cart_pole", "CartPole-v1"),
    ],
)
def test_names_of_other_libraries_suggest_the_id(name, meant):
    with pytest.raises(UnknownNameError, match=f"did you mean '{meant}"):
        find_task("test", name)
