"""Clipped observations, rewards and actions."""

import functools

import numpy as np
import pytest
from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import ClipAction, ClipObservation, ClipReward
from tests.envs import NESTED, FunctionEnv
from tests.wrappers.batches import make, play, varied


def test_clip_observation_clips_observations_and_space():
    with ClipObservation(make(), [-1, -2, -9], 0.5) as vecenv:
        assert vecenv.single_observation_space == Box(np.float32([-1, -2, -5]), np.float32([0.5] * 3))
        for observations, _, terminals, *_ in play(vecenv, 20):
            assert vecenv.observation_space.contains(observations)
            raw = vecenv.vecenv.observations
            assert np.array_equal(observations, np.clip(raw, [-1, -2, -9], 0.5))
            assert vecenv.final_observations[terminals].max(initial=-9) <= 0.5
        assert vecenv.emulated["observation_bounds"] == (-5, 0.5)


def test_clip_reward_clips_rewards():
    with ClipReward(make(), -1, 2.5) as vecenv:
        seen = {reward for _, rewards, *_ in play(vecenv, 20) for reward in rewards.tolist()}
    assert seen == {0, 1, 2, 2.5}


def test_clip_action_clips_actions_to_the_box():
    low, high = np.float32([-1, 0]), np.float32([1, 2])
    creator = varied(functools.partial(FunctionEnv, action_space=Box(low, high)))
    with ClipAction(make(creator, num_envs=2)) as vecenv:
        assert vecenv.single_action_space == Box(-np.inf, np.inf, (2,))
        assert vecenv.driver_env.single_action_space == vecenv.single_action_space
        vecenv.reset()
        vecenv.step([[-7.5, 1], [0.5, 9]])
        assert vecenv.actions.tolist() == [[-1, 1], [0.5, 2]]
        vecenv.send(np.zeros((2, 2)))
        vecenv.recv()
        with pytest.raises(APIUsageError, match=r"shape"):
            vecenv.step([1.0, 2.0, 3.0])


def test_wrong_arguments_are_refused():
    with make() as vecenv:
        with pytest.raises(APIUsageError, match="expected a Box of floats as action space, got Discrete"):
            ClipAction(vecenv)
        with pytest.raises(APIUsageError, match=r"low must be at most high, got low=1.0, high=-1"):
            ClipReward(vecenv, 1.0, -1)
        with pytest.raises(APIUsageError, match=r"must be numbers or arrays \(3,\), got \(2,\)"):
            ClipObservation(vecenv, [1, 2], 3)
    message = "ClipObservation: observations must be a Box, got a Dict or Tuple"
    with make(varied(observation_space=NESTED)) as vecenv, pytest.raises(APIUsageError, match=message):
        ClipObservation(vecenv, 0, 1)
