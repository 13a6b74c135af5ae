"""Serial and the native backend, and the examples of the vectorization page that use them."""

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.seeding import env_seed


class SamplePufferEnv(pufferlib.PufferEnv):
    def __init__(self, foo=0, bar=1, buf=None, seed=0):
        self.single_observation_space = gymnasium.spaces.Box(low=-1, high=1, shape=(1,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.num_agents = 2
        super().__init__(buf)
        self.foo, self.bar, self.seed = foo, bar, seed

    def reset(self, seed=0):
        self.observations[:] = self.observation_space.sample()
        return self.observations, []

    def step(self, action):
        self.observations[:] = self.observation_space.sample()
        infos = [{"info": "list of dictionaries"}]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


def test_example_serial_backend():
    serial_vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, backend=pufferlib.vector.Serial)
    observations, infos = serial_vecenv.reset()
    actions = serial_vecenv.action_space.sample()
    o, r, d, t, i = serial_vecenv.step(actions)
    assert observations.shape == o.shape == (4, 1)
    assert r.dtype == np.float32
    assert d.dtype == t.dtype == bool
    assert infos == []
    assert len(i) == 2
    serial_vecenv.close()


def test_example_same_arguments():
    vecenv = pufferlib.vector.make(
        SamplePufferEnv,
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[3],
        env_kwargs={"bar": 4},
    )
    assert [(env.foo, env.bar, env.seed) for env in vecenv.envs] == [(3, 4, env_seed(0, 0)), (3, 4, env_seed(0, 1))]


def test_example_arguments_per_environment():
    vecenv = pufferlib.vector.make(
        [SamplePufferEnv, SamplePufferEnv],
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[[3], [4]],
        env_kwargs=[{"bar": 4}, {"bar": 5}],
    )
    assert [(env.foo, env.bar) for env in vecenv.envs] == [(3, 4), (4, 5)]


@pytest.mark.parametrize("backend", [pufferlib.PufferEnv, "native", "PufferEnv"])
def test_native_returns_the_environment_itself(backend):
    env = pufferlib.vector.make(SamplePufferEnv, [3], {"bar": 4}, backend=backend, seed=5)
    assert isinstance(env, SamplePufferEnv)
    assert (env.foo, env.bar, env.seed) == (3, 4, env_seed(5, 0))
    env.async_reset()
    assert len(env.recv()) == 7


def test_attributes():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=6, backend="Serial", batch_size=2)
    assert (vecenv.num_envs, vecenv.num_agents, vecenv.agents_per_batch) == (6, 12, 4)
    assert vecenv.driver_env is vecenv.envs[0]
    assert vecenv.observation_space.shape == (4, 1)
    assert vecenv.action_space.shape == (4,)
    assert vecenv.single_observation_space.shape == (1,)
    assert vecenv.single_action_space.n == 2
    assert vecenv.emulated is False
    assert vecenv.autoreset == "same_step"


def test_environments_write_into_one_set_of_arrays():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=3, backend="Serial")
    vecenv.reset()
    for index, env in enumerate(vecenv.envs):
        env.observations[:] = index
    np.testing.assert_array_equal(vecenv.observations[:, 0], [0, 0, 1, 1, 2, 2])


def test_smaller_batches_take_turns():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=4, backend="Serial", batch_size=2)
    vecenv.async_reset()
    seen = []
    for _ in range(3):
        *_, agent_ids, masks = vecenv.recv()
        assert agent_ids.dtype == np.int64
        assert masks.all()
        seen.append(agent_ids.tolist())
        vecenv.send(vecenv.action_space.sample())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]
