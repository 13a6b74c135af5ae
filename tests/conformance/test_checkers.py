"""Emulated environments with checkers and learners of other libraries."""

import copy
import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from stable_baselines3 import DQN, SAC

from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from tests.conformance.checkers import run_peer_checkers
from tests.envs import FunctionEnv, ScriptedParallelEnv, alive, counting_env

SIMPLE = [
    Box(-1, 1, (3,)),
    Box(0, 1, ()),
    Box(0, 255, (4, 4, 3), np.uint8),
    Box(-1, 1, (2,), np.int64),
    Discrete(4),
    Discrete(4, start=-2),
    MultiDiscrete([3, 4]),
    MultiDiscrete([[3, 4], [2, 2]]),
    MultiBinary(3),
    Text(4),
    Dict(a=Dict(b=Discrete(3, start=1)), c=Tuple([MultiBinary(2), Discrete(2)])),
    OneOf([Discrete(2), MultiDiscrete([2, 3])]),
]
OBSERVATIONS = [
    *SIMPLE,
    Dict(a=Box(0, 1, (2,), np.float64), b=Tuple([Discrete(2), Text(3)])),
    Sequence(Discrete(3)),
    Sequence(Dict(a=Box(0, 1, (2,)), b=Discrete(2)), stack=True),
    Graph(Box(0, 1, (2,)), Discrete(3)),
    Graph(Discrete(3), None),
]
ACTIONS = [*SIMPLE, Dict(a=Box(-1, 1, (2,)), b=Tuple([Box(-1, 1, (1,))]))]


@pytest.mark.parametrize(
    ("observations", "actions"),
    [*((space, Discrete(2)) for space in OBSERVATIONS), *((Box(-1, 1, (3,)), space) for space in ACTIONS)],
    ids=str,
)
def test_peer_checkers_accept_any_space(observations, actions):
    make = functools.partial(FunctionEnv, observations, actions, reward=lambda env: np.float32(env.np_random.random()))
    spec = EnvSpec("Function-v0", entry_point=make, disable_env_checker=True, order_enforce=False)
    run_peer_checkers(GymnasiumPufferEnv(gymnasium.make(spec), max_length=50, max_nodes=50, max_edges=200), make)


# In every step one of two agents leaves and another one joins.
RELAY = [alive("a", "b")] + [{"abcdef"[i]: "dead", **alive(*"abcdef"[i + 1 : i + 3])} for i in range(6)]


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_pettingzoo_checkers_accept_any_space(space):
    def make():
        own = copy.deepcopy(space)  # a copy that can be seeded
        relay = ScriptedParallelEnv(
            *RELAY, names="abcdef", space=own, action_space=Discrete(2, start=3), observe=lambda *_: own.sample()
        )
        return PettingZooPufferEnv(relay, max_length=50, max_nodes=50, max_edges=200)

    run_peer_checkers(make(), make)


@pytest.mark.parametrize(
    ("learner", "actions", "truncates"), [(DQN, Discrete(2), False), (SAC, Box(-1, 1, (1,)), True)], ids=["DQN", "SAC"]
)
def test_replay_buffers_have_the_observed_transitions(learner, actions, truncates):
    env = GymnasiumPufferEnv(counting_env(5, action_space=actions, truncates=truncates))
    model = learner("MlpPolicy", env, buffer_size=50, learning_starts=100, device="cpu")
    model.learn(20)
    buffer = model.replay_buffer
    assert buffer.observations[:20].ravel().tolist() == [0, 1, 2, 3, 4] * 4
    assert buffer.next_observations[:20].ravel().tolist() == [1, 2, 3, 4, 5] * 4
    assert buffer.dones[:20].ravel().tolist() == [0, 0, 0, 0, 1] * 4
    assert buffer.timeouts[:20].ravel().tolist() == [0, 0, 0, 0, truncates] * 4
