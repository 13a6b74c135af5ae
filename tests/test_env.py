"""PufferEnv: attributes, methods and errors."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import pufferlib
from pufferlib import APIUsageError


class FlexibleEnv(pufferlib.PufferEnv):
    """Environment whose attributes can be changed or, with None, removed before ``PufferEnv.__init__``."""

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
        return self.observations, self.rewards, self.terminals, self.truncations, self.infos

    def close(self):
        pass


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"single_observation_space": None},
            r"FlexibleEnv: single_observation_space is not defined; you are calling super",
        ),
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
def test_wrong_attributes_raise_in_init(attributes, message):
    with pytest.raises(APIUsageError, match=message) as error:
        FlexibleEnv(**attributes)
    assert isinstance(error.value, ValueError)
    assert isinstance(error.value, RuntimeError)


def test_action_mask_is_a_slice_of_the_observation():
    assert FlexibleEnv().action_mask is None
    assert FlexibleEnv(action_mask=slice(1, 3)).action_mask == slice(1, 3)
    assert FlexibleEnv(action_mask=slice(0, 3), single_action_space=MultiDiscrete([1, 2])).action_mask == slice(0, 3)


@pytest.mark.parametrize(
    ("action_space", "shape", "dtype"),
    [
        (Discrete(4), (2,), np.int32),
        (MultiDiscrete([2, 3]), (2, 2), np.int32),
        (Box(-1, 1, (3,)), (2, 3), np.float32),
        (Box(-1, 1, (), np.float64), (2,), np.float64),
    ],
)
def test_init_makes_buffers_and_joint_spaces(action_space, shape, dtype):
    env = FlexibleEnv(single_action_space=action_space)
    assert env.observation_space.shape == env.observations.shape == env.final_observations.shape == (2, 3)
    assert env.action_space.shape == env.actions.shape == shape
    assert env.actions.dtype == dtype
    assert env.action_space.contains(env.action_space.sample())
    assert (env.rewards.dtype, env.rewards.shape) == (np.float32, (2,))
    for flags in (env.terminals, env.truncations, env.masks):
        assert (flags.dtype, flags.shape) == (bool, (2,))
    assert env.masks.all()


def test_default_properties():
    env = FlexibleEnv()
    assert env.driver_env is env
    assert (env.emulated, env.done, env.autoreset, env.agents_per_batch) == (False, False, "same_step", 2)
    assert env.agent_ids.tolist() == [0, 1]


def test_async_reset_send_and_recv():
    env = FlexibleEnv()
    with pytest.raises(APIUsageError, match=r"FlexibleEnv.recv: nothing to receive; call async_reset or send first"):
        env.recv()
    env.async_reset(seed=3)
    observations, rewards, terminals, truncations, infos, agent_ids, masks = env.recv()
    assert infos == [{"seed": 3}]
    assert not np.concatenate([rewards, terminals, truncations]).any()
    assert agent_ids.tolist() == [0, 1]
    assert masks.all()
    env.infos = []
    env.send([0, 1])
    assert (observations == 1).all()  # in place
    with pytest.raises(APIUsageError, match=r"FlexibleEnv.send: the next call must be recv, got send"):
        env.send([1, 0])
    assert (observations == 1).all()  # a refused call does nothing
    env.recv()
    with pytest.raises(APIUsageError, match="nothing to receive"):
        env.recv()
    env.infos = {"not": "a list"}
    env.send([0, 1])
    with pytest.raises(APIUsageError, match="infos must be a list of dicts, got dict"):
        env.recv()
    env.infos = []
    env.send([0, 1])  # valid infos again
    assert env.recv()[4] == []


def test_async_calls_check_return_values():
    env = FlexibleEnv()
    env.reset, env.step = lambda seed: env.observations, lambda actions: None
    with pytest.raises(
        APIUsageError, match=r"FlexibleEnv: reset must return observations and infos, got ndarray; return self"
    ):
        env.async_reset()
    with pytest.raises(
        APIUsageError, match=r"FlexibleEnv: step must return observations, .* and infos, got None; return"
    ):
        env.send([0, 1])
    with pytest.raises(APIUsageError, match="nothing to receive"):
        env.recv()


@pytest.mark.parametrize("method", ["reset", "step", "close"])
def test_undefined_methods_raise(method):
    class Bare(FlexibleEnv):
        reset, step, close = pufferlib.PufferEnv.reset, pufferlib.PufferEnv.step, pufferlib.PufferEnv.close

    with pytest.raises(NotImplementedError, match=rf"Bare: define {method}"):
        getattr(Bare(), method)(*([0] if method == "step" else []))


def test_with_block_closes_the_environment():
    env, closed = FlexibleEnv(), []
    env.close = lambda: closed.append(env)
    with env as entered:
        assert entered is env
        assert not closed
    assert closed == [env]
