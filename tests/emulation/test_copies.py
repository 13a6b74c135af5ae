"""Copies and pickles of emulated environments, which go on alone from where the first one is."""

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


class Counted(gymnasium.Env, EzPickle):
    """A count that ends at random; its pickle has the arguments of its constructor and nothing else."""

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
def test_an_environment_that_is_pickled_as_its_arguments_goes_on_too(how):
    env = GymnasiumPufferEnv(env=TimeLimit(Counted(3), 12))
    assert how(env).reset(seed=5)[0].tolist() == env.reset(seed=5)[0].tolist()
    for _ in range(5):
        env.step(1)
    twin = how(env)
    assert twin.env is not env.env
    assert played(twin) == played(env)


def test_its_copy_keeps_the_settings_it_was_made_with():
    gymnasium.register("Counted-v0", Counted, kwargs={"by": 2})
    try:
        env = GymnasiumPufferEnv(env=gymnasium.make("Counted-v0"))
        env.reset(seed=1)
        assert copy.deepcopy(env).env.spec == env.env.spec
    finally:
        del gymnasium.registry["Counted-v0"]


def test_one_whose_game_would_be_lost_is_not_copied():
    env = GymnasiumPufferEnv(env=Counted(3))
    env.env.lock = threading.Lock()
    copy.deepcopy(env)  # before the first episode there is nothing to lose
    env.reset(seed=1)
    with pytest.raises(APIUsageError, match=r"^a copy of GymnasiumPufferEnv: Counted must be plain data .*env\.lock"):
        copy.deepcopy(env)


@every_way
@pytest.mark.parametrize("keywords", [{}, {"repeat_action_probability": 0.0}], ids=["sticky", "not"])
def test_a_game_of_atari_goes_on(how, keywords):
    env = pufferlib.make("atari/pong", **keywords)
    env.reset(seed=2)
    played(env)
    assert played(how(env)) == played(env)


def test_an_emulator_that_hides_the_action_it_may_repeat_is_not_saved():
    env = pufferlib.make("ALE/Pong-v5")
    env.reset(seed=1)
    message = "an emulator with repeat_action_probability=0.25, which does not reveal .* repeat_action_probability=0"
    with pytest.raises(APIUsageError, match=rf"save_state: AtariEnv .* {message}"):
        env.save_state()
    with pytest.raises(APIUsageError, match=rf"a copy of .* {message}"):
        copy.deepcopy(env)
    still = pufferlib.make("ALE/Pong-v5", repeat_action_probability=0.0)
    still.reset(seed=1)
    assert played(copy.deepcopy(still)) == played(still)


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
