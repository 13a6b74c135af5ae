"""Buffers of C environments: use of given memory, lifetimes, and calls at the wrong time."""

import weakref

import numpy as np
import pytest

import pufferlib
from pufferlib import buffers, ocean
from tests.ocean.helpers import actions_of, every_env, make


@every_env
def test_given_buffers_are_used_without_a_copy(name):
    model = ocean.OceanEnv(name, num_envs=3)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, model.num_agents)
    buf["observations"].fill(1)
    env = ocean.OceanEnv(name, num_envs=3, buf=buf)
    observations, _ = env.reset()
    assert observations is buf["observations"]
    np.testing.assert_array_equal(observations, model.reset()[0])
    returned = env.step(actions_of(env, np.random.default_rng(0)))
    for array, key in zip(returned, ("observations", "rewards", "terminals", "truncations"), strict=False):
        assert array is buf[key]


@pytest.mark.parametrize("key", ["observations", "actions", "rewards", "terminals"])
@pytest.mark.parametrize("fault", ["strided", "read-only"])
def test_strided_and_read_only_buffers_are_refused(key, fault):
    model = ocean.Squared(num_envs=3)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, 3)
    if fault == "strided":
        buf[key] = np.repeat(buf[key], 2, axis=0)[::2]
    else:
        buf[key].setflags(write=False)
    with pytest.raises(pufferlib.APIUsageError, match=f"{key} must be"):
        ocean.Squared(num_envs=3, buf=buf)


def test_arrays_stay_valid_after_close_and_deletion():
    env = make("squared")
    array = weakref.ref(env.rewards)
    env.rewards = None
    assert array() is not None
    observations = env.observations
    copy = observations.copy()
    env.close()
    del env
    np.testing.assert_array_equal(observations, copy)
    assert array() is None


@every_env
def test_calls_before_reset_and_after_close_raise(name):
    env = ocean.OceanEnv(name)
    actions = env.actions
    for call in (lambda: env.step(actions), env.render):
        with pytest.raises(pufferlib.APIUsageError, match="no episode has begun; call reset first"):
            call()
    env.reset()
    env.step(actions)
    env.close()
    env.close()
    for call in (lambda: env.step(actions), env.render, env.reset):
        with pytest.raises(pufferlib.APIUsageError, match="the environment is closed; make a new one"):
            call()


def test_calls_during_conversion_of_actions_raise():
    env = make("squared", num_envs=1)

    class CallingActions:
        def __array__(self, dtype=None, copy=None):
            for call in (env.close, env.reset, lambda: env.step([0])):
                with pytest.raises(pufferlib.APIUsageError, match="another thread is stepping this environment"):
                    call()
            return np.zeros(1, int)

    env.step(CallingActions())
    env.close()


def test_seeds_can_be_any_int():
    env = make("squared")
    seen = {
        env.reset(seed=seed)[0].tobytes() for seed in (0, 1, -1, 2**63, 2**64, 2**64 - 1, -(2**70) + 3, np.int64(5))
    }
    assert len(seen) == 8
    for wrong in ("a", 1.5, True):
        with pytest.raises(pufferlib.APIUsageError, match=r"Squared\.reset: seed must be an int or None, got"):
            env.reset(seed=wrong)
