"""Copies and pickles of emulated environments, which continue independently from the same state."""

import copy
import functools
import pickle
import threading

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import EzPickle
from gymnasium.wrappers import TimeLimit

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.errors import APIUsageError
from tests.envs import ScriptedParallelEnv, alive
from tests.tiers import once

ROWS = ("observations", "rewards", "terminals", "truncations", "masks")


def by_pickle(env):
    return pickle.loads(pickle.dumps(env))


def by_cloudpickle(env):
    return pickle.loads(cloudpickle.dumps(env))


every_way = pytest.mark.parametrize("how", [copy.deepcopy, by_pickle, by_cloudpickle])


def play(env, steps=40):
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(steps):
        if env.done:
            env.reset()
        actions = rng.integers(0, 2, env.num_agents)
        env.step(actions if env.num_agents > 1 else actions[0])
        seen.append([getattr(env, name).tolist() for name in ROWS])
    return seen


class CartPolePufferEnv(GymnasiumPufferEnv):
    """Subclass with other constructor arguments."""

    def __init__(self, length):
        super().__init__(env=gymnasium.make("CartPole-v1", max_episode_steps=length), max_length=3)
        self.length = length


@every_way
def test_copy_of_gymnasium_environment_continues_its_episode(how):
    env = CartPolePufferEnv(9)
    fresh = how(env)
    env.reset(seed=3)
    for _ in range(4):
        env.step(1)
    twin = how(env)
    assert (type(twin), twin.length, twin.done) == (CartPolePufferEnv, 9, False)
    assert twin.env is not env.env
    assert play(twin) == play(env)
    assert fresh.reset(seed=3)[0].tolist() == CartPolePufferEnv(9).reset(seed=3)[0].tolist()


class RandomCount(gymnasium.Env, EzPickle):
    """Environment with random observations, whose pickle contains only the arguments of its constructor."""

    observation_space, action_space = Box(0, 99, (2,), np.float32), Discrete(2)

    def __init__(self, by):
        EzPickle.__init__(self, by)
        self.by = by

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.float32([0, 0]), {}

    def step(self, action):
        self.count += self.by + action
        return np.float32([self.count, self.np_random.random()]), float(self.count), self.count > 50, False, {}


@every_way
def test_copy_of_ez_pickle_environment_continues_its_episode(how):
    env = GymnasiumPufferEnv(env=TimeLimit(RandomCount(3), 12))
    assert how(env).reset(seed=5)[0].tolist() == env.reset(seed=5)[0].tolist()
    for _ in range(5):
        env.step(1)
    twin = how(env)
    assert twin.env is not env.env
    assert play(twin) == play(env)


def test_copy_keeps_its_spec():
    gymnasium.register("RandomCount-v0", RandomCount, kwargs={"by": 2})
    try:
        env = GymnasiumPufferEnv(env=gymnasium.make("RandomCount-v0"))
        env.reset(seed=1)
        assert copy.deepcopy(env).env.spec == env.env.spec
    finally:
        del gymnasium.registry["RandomCount-v0"]


def test_environment_with_unsaved_state_cannot_be_copied():
    env = GymnasiumPufferEnv(env=RandomCount(3))
    env.env.lock = threading.Lock()
    copy.deepcopy(env)  # before the first episode there is no state to lose
    env.reset(seed=1)
    with pytest.raises(
        APIUsageError, match=r"^a copy of GymnasiumPufferEnv: RandomCount must be plain data .*env\.lock"
    ):
        copy.deepcopy(env)


@pytest.mark.parametrize("how", once([copy.deepcopy, by_pickle, by_cloudpickle], [by_cloudpickle]))
@pytest.mark.parametrize("keywords", [{}, {"repeat_action_probability": 0.0}], ids=["sticky", "not"])
def test_copy_of_atari_continues_its_episode(how, keywords):
    env = pufferlib.make("atari/pong", **keywords)
    env.reset(seed=2)
    play(env)
    assert play(how(env)) == play(env)


@pytest.mark.all
def test_sticky_actions_of_plain_ale_cannot_be_saved():
    env = pufferlib.make("ALE/Pong-v5")
    env.reset(seed=1)
    message = "an emulator with repeat_action_probability=0.25, which does not reveal .* repeat_action_probability=0"
    with pytest.raises(APIUsageError, match=rf"save_state: AtariEnv .* {message}"):
        env.save_state()
    with pytest.raises(APIUsageError, match=rf"a copy of .* {message}"):
        copy.deepcopy(env)
    deterministic = pufferlib.make("ALE/Pong-v5", repeat_action_probability=0.0)
    deterministic.reset(seed=1)
    assert play(copy.deepcopy(deterministic)) == play(deterministic)


@every_way
def test_copy_of_pettingzoo_environment_keeps_living_agents(how):
    script = "abc", {**alive(*"abc"), "b": "dead"}, alive(*"ac"), {"a": "cut", "c": "alive"}, {"c": "dead"}
    env = PettingZooPufferEnv(env=ScriptedParallelEnv(*script, names="abc"))
    env.reset(seed=1)
    env.step([0, 0, 0])
    twin = how(env)
    assert (twin.agents, twin.masks.tolist()) == (env.agents, env.masks.tolist())
    assert play(twin) == play(env)


def test_copy_of_environment_in_a_batch_has_its_own_arrays():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    with pufferlib.vector.make(creator, num_envs=2, backend="Serial") as vecenv:
        vecenv.reset(seed=1)
        twin = copy.deepcopy(vecenv.envs[1])
        before = vecenv.observations.copy()
        observation, *_ = twin.step(1)
        assert np.array_equal(vecenv.observations, before)
        assert np.array_equal(vecenv.step([1, 1])[0][1], observation)


def test_pickle_errors_of_the_environment_are_raised():
    env = GymnasiumPufferEnv(env=gymnasium.make("CartPole-v1"))
    env.env.unwrapped.lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object"):
        pickle.dumps(env)
