"""Examples of the document "PufferEnv", unchanged."""

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import APIUsageError, set_buffers
from pufferlib.buffers import allocate


# fmt: off
class SamplePufferEnv(pufferlib.PufferEnv):
    def __init__(self, buf=None, seed=0):
        # Define spaces BEFORE calling super()
        self.single_observation_space = gymnasium.spaces.Box(
            low=-1, high=1, shape=(1,)
        )
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.num_agents = 2

        # This creates shared buffers and joint spaces
        super().__init__(buf)

    def reset(self, seed=0):
        # Write directly to pre-allocated buffer
        self.observations[:] = self.observation_space.sample()
        return self.observations, []

    def step(self, action):
        # Update observations in-place
        self.observations[:] = self.observation_space.sample()
        infos = [{'info': 'list of dictionaries'}]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


class MultiAgentEnv(pufferlib.PufferEnv):
    def __init__(self, num_agents=16, buf=None, seed=0):
        self.single_observation_space = gymnasium.spaces.Box(
            low=0, high=1, shape=(4,)
        )
        self.single_action_space = gymnasium.spaces.Discrete(3)
        self.num_agents = num_agents
        super().__init__(buf)

    def step(self, actions):
        # actions is a numpy array of shape (num_agents,)
        for i, action in enumerate(actions):  # noqa: B007 - as in the document
            # Process each agent's action
            self.observations[i] = self.compute_observation(i)
            self.rewards[i] = self.compute_reward(i)
            self.terminals[i] = self.check_done(i)

        return self.observations, self.rewards, self.terminals, self.truncations, []


class Snake(pufferlib.PufferEnv):
    def __init__(self, num_envs=16, width=640, height=360,
            num_snakes=256, num_food=4096, vision=5,
            buf=None, seed=0):

        # Define observation space based on vision radius
        self.single_observation_space = gymnasium.spaces.Box(
            low=0, high=2, shape=(2*vision+1, 2*vision+1), dtype=np.int8
        )
        self.single_action_space = gymnasium.spaces.Discrete(4)
        self.num_agents = num_envs * num_snakes

        super().__init__(buf)

        # Initialize C++ backend that writes directly to buffers
        self.c_envs = self._init_c_backend(
            obs=self.observations,
            actions=self.actions,
            rewards=self.rewards,
            terminals=self.terminals,
            truncations=self.truncations,
            width=width,
            height=height,
            num_snakes=num_snakes
        )

    def step(self, actions):
        # C++ backend updates all buffers in-place
        self.actions[:] = actions
        binding.vec_step(self.c_envs)

        return (self.observations, self.rewards,
                self.terminals, self.truncations, [])
# fmt: on


def test_example_usage(capsys):
    # fmt: off
    # Create and use the environment
    env = SamplePufferEnv()
    observations, infos = env.reset()

    # Actions for all agents
    actions = env.action_space.sample()
    observations, rewards, terminals, truncations, infos = env.step(actions)  # noqa: RUF059

    print('Observations shape:', observations.shape)  # (2, 1)
    print('Rewards shape:', rewards.shape)  # (2,)
    print('Terminals shape:', terminals.shape)  # (2,)
    # fmt: on
    assert capsys.readouterr().out == "Observations shape: (2, 1)\nRewards shape: (2,)\nTerminals shape: (2,)\n"
    assert infos == [{"info": "list of dictionaries"}]


class CompleteMultiAgentEnv(MultiAgentEnv):
    """Environment of the document, with the methods that the document does not define."""

    def compute_observation(self, i):
        return np.full(4, i / 16)

    def compute_reward(self, i):
        return i

    def check_done(self, i):
        return i == 3


def test_example_multi_agent():
    env = CompleteMultiAgentEnv(num_agents=16)
    observations, rewards, terminals, truncations, infos = env.step(env.action_space.sample())
    assert observations.shape == (16, 4)
    assert rewards.tolist() == list(range(16))
    assert np.flatnonzero(terminals).tolist() == [3]
    assert not truncations.any()
    assert infos == []


class binding:  # noqa: N801 - replaces the compiled module of the document
    @staticmethod
    def vec_step(envs):
        envs["obs"][:] = envs["actions"][:, None, None] % 3
        envs["rewards"][:] = 1


class CompleteSnake(Snake):
    def _init_c_backend(self, **buffers):
        return buffers


def test_example_snake_writes_into_shared_buffers():
    description = CompleteSnake(num_envs=2, num_snakes=3)
    buf = allocate(description.single_observation_space, description.single_action_space, 6)
    env = CompleteSnake(num_envs=2, num_snakes=3, buf=buf)
    observations, rewards, *_ = env.step(np.arange(6) % 4)
    assert observations is buf["observations"]
    assert observations.dtype == np.int8
    assert observations[:, 0, 0].tolist() == [0, 1, 2, 0, 0, 1]
    assert rewards is buf["rewards"]
    assert (buf["rewards"] == 1).all()


def test_interface_and_properties():
    """Environments inherit properties. Methods that are not defined raise an error."""
    env = SamplePufferEnv()
    assert env.emulated is False
    assert env.done is False
    assert env.driver_env is env
    assert env.observation_space.shape == (2, 1)
    assert env.action_space.shape == (2,)
    for call, arguments in (("reset", ()), ("step", ([0],)), ("close", ())):
        with pytest.raises(NotImplementedError, match=f"define {call}"):
            getattr(pufferlib.PufferEnv, call)(env, *arguments)


def test_required_attributes():
    class Bare(pufferlib.PufferEnv):
        def __init__(self):
            # fmt: off
            self.single_observation_space = gymnasium.spaces.Box(
                low=0, high=255, shape=(84, 84), dtype=np.uint8
            )
            # fmt: on
            super().__init__()

    with pytest.raises(APIUsageError, match="single_action_space is not defined; you are calling super"):
        Bare()


def test_set_buffers():
    """Without ``buf`` the arrays are new, with the dtypes of the document. With ``buf`` they are its arrays."""
    env = SamplePufferEnv()
    set_buffers(env, None)
    for name, shape, dtype in (
        ("observations", (2, 1), np.float32),
        ("rewards", (2,), np.float32),
        ("terminals", (2,), bool),
        ("truncations", (2,), bool),
        ("masks", (2,), bool),
    ):
        assert (getattr(env, name).shape, getattr(env, name).dtype) == (shape, dtype)
        assert getattr(env, name).all() == (name == "masks")
    buf = allocate(env.single_observation_space, env.single_action_space, 2)
    set_buffers(env, buf)
    for name in ("observations", "rewards", "terminals", "truncations", "masks", "actions"):
        assert getattr(env, name) is buf[name]


def test_snake_of_ocean():
    """``Snake(num_envs=16, width=640, ...)`` is the C environment, with the rows and actions of the document."""
    env = pufferlib.ocean.Snake(
        num_envs=16, width=640, height=360, num_snakes=256, num_food=4096, vision=5, buf=None, seed=0
    )
    assert env.single_observation_space.shape == (11, 11)
    assert env.single_observation_space.dtype == np.int8
    assert env.single_action_space == gymnasium.spaces.Discrete(4)
    assert env.num_agents == 16 * 256
    env.reset()
    observations, rewards, *_, infos = env.step(env.action_space.sample())
    assert observations.any()
    assert rewards.dtype == np.float32
    assert isinstance(infos, list)
    env.close()


class ComputeEnv(SamplePufferEnv):
    """Environment whose steps follow the document's best practices only if ``is_good`` is true."""

    is_good = True

    def step(self, actions):
        if self.is_good:
            self.observations[:] = compute_observations()
        else:
            self.observations = compute_observations()  # Don't do this!
        return self.observations, self.rewards, self.terminals, self.truncations, []


def compute_observations():
    return np.full((2, 1), 0.5, np.float32)


def test_best_practices_in_place():
    vecenv = pufferlib.vector.make(ComputeEnv, num_envs=2, backend="Serial")
    vecenv.reset()
    assert (vecenv.step(np.zeros(4, int))[0] == 0.5).all()
    vecenv.envs[1].is_good = False
    with pytest.raises(APIUsageError, match="observations must be written in place"):
        vecenv.step(np.zeros(4, int))
