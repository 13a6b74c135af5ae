"""Pools of environments that are stepped in C: order of batches, seeds, refusals."""

import numpy as np
import pytest

from pufferlib import envpool
from pufferlib.envpool.stepped import SteppedPool
from pufferlib.errors import APIUsageError
from tests.needs import missing_binding

absent = missing_binding("mujoco")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)


def pool_of(num_envs=4, **keywords):
    env = envpool.make_gymnasium("InvertedPendulum-v5", num_envs=num_envs, num_threads=1, seed=5, **keywords)
    assert isinstance(env.pool, SteppedPool)
    return env


def test_batches_of_the_first_environments_have_the_steps_of_all_at_once():
    whole, parts = pool_of(), pool_of(batch_size=2)
    actions = np.full((4, 1), 0.5, np.float32)
    expected = [whole.reset()[0], *(whole.step(actions)[0] for _ in range(10))]
    parts.async_reset()
    counts = np.zeros(4, int)
    for _ in range(20):
        observations, _, _, _, info = parts.recv()
        for row, env_id in enumerate(info["env_id"].tolist()):
            assert observations[row].tobytes() == expected[counts[env_id]][env_id].tobytes()
        counts[info["env_id"]] += 1
        parts.send(actions[:2], info["env_id"])
    assert counts.tolist() == [10] * 4
    whole.close()
    parts.close()


def test_reset_with_a_seed_equals_a_new_pool():
    first, second = pool_of(), pool_of()
    expected = first.reset()[0]
    assert second.reset(seed=9)[0].tobytes() != expected.tobytes()
    assert second.reset(seed=5)[0].tobytes() == expected.tobytes()
    first.close()
    second.close()


def test_arrays_of_the_pool_change_with_the_next_batch_without_copy():
    env = pool_of(copy=False)
    first = env.reset()[0]
    second = env.step(np.zeros((4, 1), np.float32))[0]
    assert first is second
    env.close()


def test_environments_that_are_over_must_be_reset_if_autoreset_is_disabled():
    env = pool_of(autoreset="disabled", max_episode_steps=2)
    with pytest.raises(APIUsageError, match="environment 0 is over, or has not begun"):
        env.step(np.zeros((4, 1), np.float32))
    env.reset()
    env.step(np.zeros((4, 1), np.float32))
    assert env.step(np.zeros((4, 1), np.float32))[3].all()
    with pytest.raises(APIUsageError, match="environment 0 is over, or has not begun"):
        env.step(np.zeros((4, 1), np.float32))
    env.close()


@pytest.mark.parametrize(
    ("actions", "env_ids", "message"),
    [
        (np.zeros((1, 1)), [4], "env_id must be from 0 to 3, got 4"),
        (np.zeros((2, 1)), [1, 1], "env_id must name each environment once, got 1 more than once"),
        (np.zeros((2, 1)), [[1, 2]], "env_id must be one or more integers in a row"),
        (np.zeros((4, 2)), None, r"actions must have shape \(4, 1\)"),
        (np.full((4, 1), np.nan), None, "actions must be finite numbers"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(actions, env_ids, message):
    env = pool_of()
    env.reset()
    with pytest.raises(APIUsageError, match=message):
        env.send(actions, env_ids)
    env.close()


def test_calls_out_of_turn_are_refused():
    env = pool_of()
    with pytest.raises(APIUsageError, match="it would wait for ever"):
        env.recv()
    env.reset()
    env.send(np.zeros((1, 1), np.float32), [2])
    with pytest.raises(APIUsageError, match="environment 2 is in flight"):
        env.send(np.zeros((4, 1), np.float32))
    assert env.recv()[4]["env_id"].tolist() == [2]
    with pytest.raises(APIUsageError, match="render_mode='rgb_array'"):
        env.pool.render(np.array([0]))
    env.close()
    env.close()
    with pytest.raises(APIUsageError, match="closed"):
        env.reset()
