"""Copies and pickles of emulated environments, which go on alone from where the first one is."""

import copy
import functools
import pickle
import threading

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from tests.envs import ScriptedParallelEnv, alive

ROWS = ("observations", "rewards", "terminals", "truncations", "masks")


def by_pickle(env):
    return pickle.loads(pickle.dumps(env))


def by_cloudpickle(env):
    return pickle.loads(cloudpickle.dumps(env))


every_way = pytest.mark.parametrize("how", [copy.deepcopy, by_pickle, by_cloudpickle])


def played(env, steps=40):
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(steps):
        if env.done:
            env.reset()
        actions = rng.integers(0, 2, env.num_agents)
        env.step(actions if env.num_agents > 1 else actions[0])
        seen.append([getattr(env, name).tolist() for name in ROWS])
    return seen


class Noted(GymnasiumPufferEnv):
    """A subclass whose constructor takes something else."""

    def __init__(self, length):
        super().__init__(env=gymnasium.make("CartPole-v1", max_episode_steps=length), max_length=3)
        self.length = length


@every_way
def test_a_gymnasium_environment_goes_on_in_the_middle_of_an_episode(how):
    env = Noted(9)
    fresh = how(env)
    env.reset(seed=3)
    for _ in range(4):
        env.step(1)
    twin = how(env)
    assert (type(twin), twin.length, twin.done) == (Noted, 9, False)
    assert twin.env is not env.env
    assert played(twin) == played(env)
    assert fresh.reset(seed=3)[0].tolist() == Noted(9).reset(seed=3)[0].tolist()


@every_way
def test_a_pettingzoo_environment_goes_on_with_those_who_are_left(how):
    script = "abc", {**alive(*"abc"), "b": "dead"}, alive(*"ac"), {"a": "cut", "c": "alive"}, {"c": "dead"}
    env = PettingZooPufferEnv(env=ScriptedParallelEnv(*script, names="abc"))
    env.reset(seed=1)
    env.step([0, 0, 0])
    twin = how(env)
    assert (twin.agents, twin.masks.tolist()) == (env.agents, env.masks.tolist())
    assert played(twin) == played(env)


def test_one_that_belongs_to_a_batch_is_copied_with_rows_of_its_own():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    with pufferlib.vector.make(creator, num_envs=2, backend="Serial") as vecenv:
        vecenv.reset(seed=1)
        twin = copy.deepcopy(vecenv.envs[1])
        before = vecenv.observations.copy()
        observation, *_ = twin.step(1)
        assert np.array_equal(vecenv.observations, before)
        assert np.array_equal(vecenv.step([1, 1])[0][1], observation)


def test_an_environment_that_cannot_be_copied_says_so_itself():
    env = GymnasiumPufferEnv(env=gymnasium.make("CartPole-v1"))
    env.env.unwrapped.lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object"):
        pickle.dumps(env)
