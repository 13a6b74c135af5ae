"""Examples of the document "PufferLib blog, 0.7 to 0.2", unchanged.

The environments ``nle`` and ``nmmo`` are replaced by small ones with the same kinds of spaces and agents.
"""

import sys
from multiprocessing import Array
from types import SimpleNamespace

import cloudpickle
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

import pufferlib
import pufferlib.emulation
import pufferlib.vectorization
from tests.envs import FunctionEnv, ScriptedParallelEnv

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


class NLE(FunctionEnv):
    """Replacement of NetHack, whose observations are a dictionary of arrays."""

    def __init__(self):
        super().__init__(Dict({"glyphs": Box(0, 5976, (3, 7), np.int16), "message": Box(0, 255, (8,), np.uint8)}))


class Nmmo(ScriptedParallelEnv):
    """Replacement of Neural MMO with two agents, one of which dies."""

    metadata: dict = {}  # noqa: RUF012
    render_mode = None

    def __init__(self):
        super().__init__("ab", {"a": "alive", "b": "dead"}, {"a": "alive"}, {"a": "alive"}, names=("a", "b"))


nle = SimpleNamespace(env=SimpleNamespace(NLE=NLE))
nmmo = SimpleNamespace(Env=Nmmo)


# fmt: off
def test_0_7_shared_memory():
    num_workers, agents_per_worker, observation_size = 2, 3, 4
    shared_mem = [
        Array('d', agents_per_worker*(3+observation_size))
        for _ in range(num_workers)
    ]

    def _unpack_shared_mem(shared_mem, n):
        np_buf = np.frombuffer(shared_mem.get_obj(), dtype=float)
        obs_arr = np_buf[:-3*n]
        rewards_arr = np_buf[-3*n:-2*n]
        terminals_arr = np_buf[-2*n:-n]
        truncated_arr = np_buf[-n:]

        return obs_arr, rewards_arr, terminals_arr, truncated_arr

    obs_arr, rewards_arr, terminals_arr, truncated_arr = _unpack_shared_mem(shared_mem[0], agents_per_worker)
    env = pufferlib.ocean.Squared(num_envs=agents_per_worker)
    obs, _ = env.reset()
    obs, reward, done, truncated, _ = env.step(env.action_space.sample())
    obs = obs[:, :observation_size]

    obs_arr[:] = obs.ravel()
    rewards_arr[:] = reward.ravel()
    terminals_arr[:] = done.ravel()
    truncated_arr[:] = truncated.ravel()
    assert np.frombuffer(shared_mem[0].get_obj())[:12].tolist() == obs.ravel().tolist()


def nmmo_creator():
    return pufferlib.emulation.PettingZooPufferEnv(env_creator=nmmo.Env)

def nethack_creator():
    return pufferlib.emulation.GymPufferEnv(env_creator=nle.env.NLE)


def test_0_4_emulation():
    env = nethack_creator()
    assert env.observation_space.shape == (3*7*2 + 8,)  # in bytes
    assert isinstance(env.action_space, Discrete)  # no longer a MultiDiscrete
    assert isinstance(env, gymnasium.Env)
    env = nmmo_creator()
    assert env.possible_agents == ["a", "b"]
    assert isinstance(env.action_space("a"), Discrete)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_0_4_vectorization(backend):
    vec = getattr(pufferlib.vectorization, backend)  # Multiprocessing # Or Serial or Ray
    envs = vec(nmmo_creator, num_workers=2, envs_per_worker=2)

    # Synchronous API
    obs = envs.reset()
    assert obs.shape == (8, 1)

    # Async API
    envs.async_reset()
    obs, _, _, _ = envs.recv()
    assert obs.shape == (8, 1)
    envs.send(np.zeros(8, int))
    _, rewards, dones, infos = envs.recv()
    assert rewards.tolist() == [1] * 8
    assert dones.tolist() == [False, True] * 4
    assert infos == []
    assert [values.shape[0] for values in envs.step(np.zeros(8, int))[:3]] == [8] * 3
    envs.close()


def test_0_4_policies():
    env = nethack_creator()
    policy = pufferlib.models.Default(env)
    cleanrl_policy = pufferlib.frameworks.cleanrl.Policy(policy)
    observations = torch.as_tensor(env.reset()[0].copy())[None]
    action, log_prob, entropy, value = cleanrl_policy.get_action_and_value(observations)
    assert (action.shape, log_prob.shape, entropy.shape, value.shape) == ((1,), (1,), (1,), (1, 1))


def nmmo_binding():
    return pufferlib.emulation.Binding(
       env_cls=nmmo.Env,
       env_name='Neural MMO',
    )


def test_0_2_binding():
    binding = nmmo_binding()
    assert str(binding) == "Binding(Neural MMO)"
    env = binding()
    assert isinstance(env, pufferlib.emulation.PettingZooPufferEnv)
    env.reset(seed=1)
    assert env.masks.tolist() == [True, True]  # a fixed number of agents, in sorted order
    gym = pufferlib.emulation.Binding(nle.env.NLE)
    assert str(gym) == "Binding(NLE)"
    assert isinstance(gym(), pufferlib.emulation.GymnasiumPufferEnv)


def test_0_2_vectorization(monkeypatch):
    """Only the interface is tested here. tests/cluster runs Ray itself."""
    backends = []

    def make(*args, backend, **kwargs):
        backends.append(backend)
        return pufferlib.vector.make(*args, backend="Serial", **kwargs)

    monkeypatch.setattr(pufferlib.vectorization, "make", make)
    binding, num_cores, envs_per_worker = nmmo_binding(), 1, 2
    envs = pufferlib.vectorization.RayVecEnv(
       binding,
       num_workers=num_cores,
       envs_per_worker=envs_per_worker
    )
    assert backends == ["Ray"]
    assert envs.reset().shape == (4, 1)
    envs.close()
# fmt: on


OCEAN = ["memory", "stochastic", "password", "bandit", "squared"]  # "Exploration" is called password since 1.0


@pytest.mark.parametrize("name", OCEAN)
def test_0_6_ocean(name):
    env = pufferlib.make(name)
    env.reset(seed=0)
    assert len(env.step(env.action_space.sample())) == 5
    env.close()
