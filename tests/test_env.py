"""PufferEnv: the examples of the documentation's first page, unchanged, then the contract and its errors."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import pufferlib
from pufferlib import APIUsageError
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
        for i, action in enumerate(actions):  # noqa: B007 - as the page has it
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


class Playable(MultiAgentEnv):
    """The page's environment with the functions that it leaves undefined."""

    def compute_observation(self, i):
        return np.full(4, i / 16)

    def compute_reward(self, i):
        return i

    def check_done(self, i):
        return i == 3


def test_example_multi_agent():
    env = Playable(num_agents=16)
    observations, rewards, terminals, truncations, infos = env.step(env.action_space.sample())
    assert observations.shape == (16, 4)
    assert rewards.tolist() == list(range(16))
    assert np.flatnonzero(terminals).tolist() == [3]
    assert not truncations.any()
    assert infos == []


class binding:  # noqa: N801 - stands in for the page's compiled module
    @staticmethod
    def vec_step(envs):
        envs["obs"][:] = envs["actions"][:, None, None] % 3
        envs["rewards"][:] = 1


class PlayableSnake(Snake):
    def _init_c_backend(self, **buffers):
        return buffers


def test_example_snake_writes_into_shared_buffers():
    description = PlayableSnake(num_envs=2, num_snakes=3)
    buf = allocate(description.single_observation_space, description.single_action_space, 6)
    env = PlayableSnake(num_envs=2, num_snakes=3, buf=buf)
    observations, rewards, *_ = env.step(np.arange(6) % 4)
    assert observations is buf["observations"]
    assert observations.dtype == np.int8
    assert observations[:, 0, 0].tolist() == [0, 1, 2, 0, 0, 1]
    assert rewards is buf["rewards"]
    assert (buf["rewards"] == 1).all()


class Any(pufferlib.PufferEnv):
    """Whatever attributes are asked for."""

    def __init__(self, buf=None, **attributes):
        self.single_observation_space = Box(0, 1, (3,))
        self.single_action_space = Discrete(2)
        self.num_agents = 2
        for name, value in attributes.items():
            if value is None:
                delattr(self, name)
            else:
                setattr(self, name, value)
        super().__init__(buf)

    def reset(self, seed=None):
        return self.observations, [{"seed": seed}]

    def step(self, actions):
        self.observations[:] += 1
        return self.observations, self.rewards, self.terminals, self.truncations, self.said

    def close(self):
        pass


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"single_observation_space": None}, r"Any: single_observation_space is not defined; you are calling super"),
        ({"single_action_space": None}, r"single_action_space is not defined"),
        ({"num_agents": None}, r"num_agents is not defined"),
        ({"num_agents": 0}, r"num_agents must be an int >= 1, got 0"),
        ({"num_agents": 2.0}, r"num_agents must be an int >= 1, got 2.0"),
        ({"observation_space": Box(0, 1)}, r"observation_space is derived; define only single_observation_space"),
        ({"action_space": Discrete(2)}, r"action_space is derived; define only single_action_space"),
        ({"single_observation_space": Discrete(2)}, r"single_observation_space must be a Box, got Discrete.*emulation"),
        ({"single_action_space": Dict({})}, r"single_action_space must be Discrete, MultiDiscrete or Box, got Dict"),
        ({"action_mask": slice(0, 3)}, r"action_mask must select 2 of the 3 elements .*, got slice\(0, 3, None\)"),
        ({"action_mask": slice(2, 4)}, r"action_mask must select 2 of the 3 elements"),
        ({"action_mask": slice(0, 1), "single_action_space": Box(-1, 1)}, r"a Box action can have no mask"),
    ],
)
def test_errors_of_construction(attributes, message):
    with pytest.raises(APIUsageError, match=message) as error:
        Any(**attributes)
    assert isinstance(error.value, ValueError)
    assert isinstance(error.value, RuntimeError)


def test_an_action_mask_is_a_part_of_the_observation():
    assert Any().action_mask is None
    assert Any(action_mask=slice(1, 3)).action_mask == slice(1, 3)
    assert Any(action_mask=slice(0, 3), single_action_space=MultiDiscrete([1, 2])).action_mask == slice(0, 3)


@pytest.mark.parametrize(
    ("action_space", "shape", "dtype"),
    [
        (Discrete(4), (2,), np.int32),
        (MultiDiscrete([2, 3]), (2, 2), np.int32),
        (Box(-1, 1, (3,)), (2, 3), np.float32),
        (Box(-1, 1, (), np.float64), (2,), np.float64),
    ],
)
def test_buffers_and_joint_spaces(action_space, shape, dtype):
    env = Any(single_action_space=action_space)
    assert env.observation_space.shape == env.observations.shape == env.final_observations.shape == (2, 3)
    assert env.action_space.shape == env.actions.shape == shape
    assert env.actions.dtype == dtype
    assert env.action_space.contains(env.action_space.sample())
    assert (env.rewards.dtype, env.rewards.shape) == (np.float32, (2,))
    for flags in (env.terminals, env.truncations, env.masks):
        assert (flags.dtype, flags.shape) == (bool, (2,))
    assert env.masks.all()


def test_properties():
    env = Any()
    assert env.driver_env is env
    assert (env.emulated, env.done, env.autoreset, env.agents_per_batch) == (False, False, "same_step", 2)
    assert env.agent_ids.tolist() == [0, 1]


def test_asynchronous_calls():
    env = Any()
    with pytest.raises(APIUsageError, match=r"Any.recv: nothing to receive; call async_reset or send first"):
        env.recv()
    env.async_reset(seed=3)
    observations, rewards, terminals, truncations, infos, agent_ids, masks = env.recv()
    assert infos == [{"seed": 3}]
    assert not np.concatenate([rewards, terminals, truncations]).any()
    assert agent_ids.tolist() == [0, 1]
    assert masks.all()
    env.said = []
    env.send([0, 1])
    assert (observations == 1).all()  # in place
    with pytest.raises(APIUsageError, match=r"Any.send: the next call must be recv, got send"):
        env.send([1, 0])
    assert (observations == 1).all()  # a refused call does nothing
    env.recv()
    with pytest.raises(APIUsageError, match="nothing to receive"):
        env.recv()
    env.said = {"not": "a list"}
    env.send([0, 1])
    with pytest.raises(APIUsageError, match="infos must be a list of dicts, got dict"):
        env.recv()
    env.said = []
    env.send([0, 1])  # once it has learned better
    assert env.recv()[4] == []


def test_asynchronous_calls_of_methods_that_return_too_little():
    env = Any()
    env.reset, env.step = lambda seed: env.observations, lambda actions: None
    with pytest.raises(APIUsageError, match=r"Any: reset must return observations and infos, got ndarray; return self"):
        env.async_reset()
    with pytest.raises(APIUsageError, match=r"Any: step must return observations, .* and infos, got None; return"):
        env.send([0, 1])
    with pytest.raises(APIUsageError, match="nothing to receive"):
        env.recv()


@pytest.mark.parametrize("method", ["reset", "step", "close"])
def test_methods_to_define(method):
    class Bare(Any):
        reset, step, close = pufferlib.PufferEnv.reset, pufferlib.PufferEnv.step, pufferlib.PufferEnv.close

    with pytest.raises(NotImplementedError, match=rf"Bare: define {method}"):
        getattr(Bare(), method)(*([0] if method == "step" else []))
