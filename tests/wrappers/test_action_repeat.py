"""ActionRepeat: sums of rewards up to the end of an episode, and repeats that continue in the next episode."""

import functools

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import ActionRepeat, EpisodeStatistics
from tests.envs import counting_env
from tests.wrappers.batches import make, play, varied


def counting(**options):
    """Make a creator of an environment whose observation and reward are its number of steps."""
    return varied(functools.partial(counting_env, reward=_steps_taken), **options)


def _steps_taken(env):
    return float(env.count)


@pytest.mark.parametrize("layout", ["serial", "workers"])
def test_rewards_are_summed_up_to_the_end_of_the_episode(layout):
    with ActionRepeat(make(counting(length=5), layout, num_envs=2), 3) as vecenv:
        vecenv.reset()
        steps = [[array.copy() for array in vecenv.step([0, 0])[:3]] for _ in range(3)]
        last = vecenv.final_observations.copy()
    observations, rewards, terminals = (np.array(arrays)[:, 0].ravel().tolist() for arrays in zip(*steps, strict=True))
    assert observations == [3, 1, 4]  # the third repeat of the second step is the first of the next episode
    assert rewards == [1 + 2 + 3, 4 + 5, 1 + 2 + 3 + 4]
    assert terminals == [False, True, False]
    assert last[0] == 5


def test_episodes_shorter_than_the_repeats_are_merged():
    with ActionRepeat(make(counting(length=2, info=_info), num_envs=1), 5) as vecenv:
        vecenv.reset()
        _, rewards, terminals, _, infos = vecenv.step([0])
        assert (rewards.item(), terminals.item()) == (1 + 2, True)
        assert len(infos) == len(vecenv.info_sources) == 5
        assert vecenv.observations.item() == 1
        assert vecenv.step([0])[1].item() == 1 + 2  # the repeat of the last call, and the first one of this call


def _info(env):
    return {"step": env.count}


def test_reset_discards_pending_rewards():
    with ActionRepeat(make(counting(length=5), num_envs=2), 3) as vecenv:
        for reset in (vecenv.reset, lambda: vecenv.reset(env_ids=[0, 1]), vecenv.reset):
            reset()
            for _ in range(2):
                vecenv.step([0, 0])
            assert vecenv.rewards.tolist() == [9, 9]
        vecenv.reset(env_ids=[1])
        assert vecenv.step([0, 0])[1].tolist() == [10, 6]


def test_outer_episode_statistics_count_repeated_steps():
    with EpisodeStatistics(ActionRepeat(make(counting(length=5), num_envs=1), 3)) as vecenv:
        for _ in play(vecenv, 40):
            pass
        assert set(vecenv.length_queue) <= {1, 2}
        assert vecenv.return_queue[0] == 15


def test_native_environment_repeats_actions():
    once, thrice = (pufferlib.make("cartpole", num_envs=16, seed=2) for _ in range(2))
    with ActionRepeat(thrice, 3) as vecenv:
        once.reset(5)
        vecenv.reset(5)
        for step in range(3):
            actions = np.full(16, step % 2)
            rewards = sum(once.step(actions)[1].copy() for _ in range(3))
            assert np.array_equal(vecenv.step(actions)[0], once.observations)
            assert np.array_equal(vecenv.rewards, rewards)


def test_unsupported_batches_and_repeats_are_refused():
    for options, message in (
        ({"autoreset": "next_step"}, "autoreset must be \"same_step\", got 'next_step'"),
        ({"layout": "parts"}, "a batch must have all 4 agents, got batches of 2"),
    ):
        with make(**options) as vecenv, pytest.raises(APIUsageError, match=message):
            ActionRepeat(vecenv, 2)
    with make() as vecenv, pytest.raises(APIUsageError, match=r"repeats must be an int of at least 1, got 1\.5"):
        ActionRepeat(vecenv, 1.5)
