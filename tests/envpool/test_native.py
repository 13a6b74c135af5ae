"""Batches of NativePool, with and without helper threads."""

from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.errors import APIUsageError
from tests.envpool.native_pools import make_busy_pool, make_pool, sample_actions

LIMIT = 20


def played(pool, rounds, batch_size=None):
    """Return the rows of each environment in order. Actions depend only on the environment and the step."""
    rows = {env_id: [] for env_id in range(pool.num_envs)}
    rngs = [np.random.default_rng(env_id) for env_id in range(pool.num_envs)]
    pool.reset()
    for _ in range(rounds):
        batch = pool.recv()
        players = pool.spec.num_players
        for row, env_id in enumerate(batch.env_id):
            own = slice(row * players, (row + 1) * players)
            flags = (batch.terminated[row], batch.truncated[row], batch.elapsed_step[row])
            rows[env_id].append((batch.observations[own].tobytes(), batch.rewards[own].tobytes(), *flags))
        actions = [sample_actions(pool.spec, rngs[env_id], 1) for env_id in batch.env_id]
        pool.send(np.concatenate(actions), batch.env_id)
    return rows


@pytest.mark.parametrize("name", ocean.names())
def test_pool_matches_single_environments(name):
    seeds = [7, 3]
    pool = make_pool(name, 2, seeds=seeds)
    alone = [pufferlib.make(name, num_envs=1, seed=seed, autoreset="next_step") for seed in seeds]
    players, rng = pool.spec.num_players, np.random.default_rng(0)
    pool.reset()
    assert np.array_equal(pool.recv().observations, np.concatenate([env.reset()[0] for env in alone]))
    for _ in range(60):
        actions = sample_actions(pool.spec, rng, 2)
        observations, rewards, terminated, truncated, info = pool.step(actions)
        parts = [env.step(actions[i * players : (i + 1) * players])[:4] for i, env in enumerate(alone)]
        expected = [np.concatenate(part) for part in zip(*parts, strict=True)]
        assert np.array_equal(observations, expected[0])
        assert np.array_equal(rewards, expected[1])
        assert observations.dtype == pool.spec.observation_space.dtype
        if players == 1:
            assert np.array_equal(terminated, expected[2])
            assert np.array_equal(truncated, expected[3])
        else:
            assert np.array_equal(info["players"]["terminated"], expected[2])
            assert np.array_equal(info["players"]["truncated"], expected[3])
            assert np.array_equal(info["players"]["mask"], np.concatenate([env.masks for env in alone]))
    for env in alone:
        env.close()


@pytest.mark.parametrize("name", ["cartpole", "multiagent", "snake", "memory"])
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_results_do_not_depend_on_threads_or_batch_size(name, autoreset):
    wanted = played(make_pool(name, 6, max_episode_steps=LIMIT, autoreset=autoreset), 60)
    for threads, batch_size in ((3, 6), (1, 3), (3, 4), (2, 1)):
        pool = make_busy_pool(name, 6, batch_size, threads, max_episode_steps=LIMIT, autoreset=autoreset)
        seen = played(pool, 60 * 6 // batch_size)
        for env_id, rows in seen.items():
            common = min(len(rows), len(wanted[env_id]))
            assert common > 10 or batch_size == 1
            assert rows[:common] == wanted[env_id][:common]
        pool.close()


def test_reset_with_seeds_equals_a_new_pool():
    pool, other = make_pool("breakout", 3), make_pool("breakout", 3, seeds=[9, 8, 2**31])
    pool.step([0, 0, 0])
    pool.reset_with([9, 8, 2**31])
    other.reset()
    assert np.array_equal(pool.recv().observations, other.recv().observations)
    for _ in range(20):
        assert np.array_equal(pool.step([1, 1, 1])[0], other.step([1, 1, 1])[0])
    with pytest.raises(APIUsageError, match="there must be 3 seeds"):
        pool.reset_with([1])


def test_next_step_autoreset_follows_the_documented_table():
    pool = make_pool("cartpole", 2, max_episode_steps=3)
    steps = [pool.step(np.ones(2)) for _ in range(5)]
    assert [step[4]["elapsed_step"].tolist() for step in steps] == [[0, 0], [1, 1], [2, 2], [3, 3], [0, 0]]
    assert [step[1].tolist() for step in steps] == [[0, 0], [1, 1], [1, 1], [1, 1], [0, 0]]
    assert [step[3].any() for step in steps] == [False, False, False, True, False]
    assert not any(step[2].any() for step in steps)


def test_termination_at_the_step_limit_is_reported():
    probe = make_pool("cartpole", 1)
    probe.step([0])
    falls_after = next(i for i in range(1, 100) if probe.step([0])[2][0])
    pool = make_pool("cartpole", 1, max_episode_steps=falls_after)
    pool.step([0])
    for _ in range(falls_after - 1):
        assert not any(flags.any() for flags in pool.step([0])[2:4])
    _, _, terminated, truncated, info = pool.step([0])
    assert terminated[0]
    assert truncated[0]
    assert info["elapsed_step"][0] == falls_after


def test_player_that_ends_at_the_step_limit_terminates_no_game():
    pool = make_pool("snake", 16, max_episode_steps=LIMIT)
    rng = np.random.default_rng(0)
    pool.step(sample_actions(pool.spec, rng, 16))
    for _ in range(LIMIT):
        _, _, terminated, truncated, info = pool.step(sample_actions(pool.spec, rng, 16))
        assert not terminated.any()
    assert truncated.all()
    assert info["players"]["terminated"].any()


def test_pool_step_limit_replaces_the_environment_limit():
    assert make_pool("rware", 1, max_episode_steps=700).spec == make_pool("rware", 1).spec
    pool = make_pool("rware", 1, max_episode_steps=700)
    actions = np.zeros(pool.spec.num_players, np.int32)
    pool.step(actions)
    ends = [pool.step(actions)[3][0] for _ in range(700)]
    assert ends.index(True) == 699


@pytest.mark.parametrize("copy", [True, False])
def test_same_step_autoreset_returns_new_and_final_observations(copy):
    pool = make_pool("cartpole", 3, max_episode_steps=3, autoreset="same_step", copy=copy)
    other = make_pool("cartpole", 3, max_episode_steps=3)
    pool.reset()
    other.reset()
    assert np.array_equal(pool.recv().observations, other.recv().observations)
    for _ in range(4):
        for step in range(3):
            observations, rewards, _, truncated, info = pool.step([0, 1, 1])
            wanted = other.step([0, 1, 1])
            assert rewards.tolist() == [1, 1, 1]
            assert truncated.all() == (step == 2)
            assert info["_final_obs"].all() == (step == 2)
        assert np.array_equal(info["final_obs"], wanted[0])
        assert info["elapsed_step"].tolist() == [0, 0, 0]
        assert np.array_equal(observations, other.step([0, 0, 0])[0])


def test_truncation_sets_player_flags():
    pool = make_pool("rware", 2, max_episode_steps=4, params={"max_steps": 500})
    actions = np.zeros(2 * pool.spec.num_players, np.int32)
    pool.step(actions)
    for _ in range(3):
        assert not pool.step(actions)[3].any()
    _, _, _, truncated, info = pool.step(actions)
    assert truncated.tolist() == [True, True]
    assert info["players"]["truncated"].all()


def test_disabled_autoreset_requires_reset():
    pool = make_pool("cartpole", 2, max_episode_steps=2, autoreset="disabled")
    with pytest.raises(APIUsageError, match="reset it first"):
        pool.step([0, 0])
    pool.reset()
    pool.recv()
    for _ in range(2):
        truncated = pool.step([0, 0])[3]
    assert truncated.all()
    with pytest.raises(APIUsageError, match="environment 1 is over"):
        pool.step([0], [1])
    pool.reset([1])
    assert pool.recv().env_id.tolist() == [1]
    assert pool.step([0], [1])[4]["elapsed_step"].tolist() == [1]


@pytest.mark.parametrize("players", [2, 3])
def test_sync_batch_has_the_order_of_sending(players):
    pool = make_pool("multiagent", 5, params={"players": players})
    pool.reset([3, 1])
    pool.reset(np.array([4]))
    batch = pool.recv()
    assert batch.env_id.tolist() == [3, 1, 4]
    assert batch.player_env_id.tolist() == np.repeat([3, 1, 4], players).tolist()
    assert len(batch.observations) == len(batch.rewards) == 3 * players
    assert batch.terminated.shape == batch.truncated.shape == batch.elapsed_step.shape == (3,)
    pool.send(np.zeros(2 * players), [1, 3])
    pool.send(np.zeros(2 * players), [0, 2])
    assert pool.num_in_flight == 4
    batch = pool.recv()
    assert batch.env_id.tolist() == [1, 3, 0, 2]
    assert batch.elapsed_step.tolist() == [1, 1, 0, 0]
    assert pool.num_in_flight == 0


def test_partial_batches_contain_the_rows_of_their_environments():
    whole, parts = make_pool("cartpole", 5), make_pool("cartpole", 5)
    rng = np.random.default_rng(0)
    whole.step(np.zeros(5))
    parts.step(np.zeros(5))
    for _ in range(50):
        actions, order = rng.integers(0, 2, 5), rng.permutation(5)
        expected = whole.step(actions)
        cut = int(rng.integers(1, 5))
        parts.send(actions[order[:cut]], order[:cut])
        parts.send(actions[order[cut:]], order[cut:])
        batch = parts.recv()
        assert np.array_equal(batch.env_id, order)
        assert np.array_equal(batch.observations, expected[0][order])
        assert np.array_equal(batch.terminated, expected[2][order])
        assert np.array_equal(batch.elapsed_step, expected[4]["elapsed_step"][order])


def test_async_batch_contains_the_first_that_finish():
    pool = make_pool("cartpole", 6, 2)
    pool.reset()
    batches = [pool.recv() for _ in range(3)]
    assert sorted(np.concatenate([batch.env_id for batch in batches])) == list(range(6))
    assert pool.num_in_flight == 0
    pool.send([0, 1], [4, 2])
    pool.send([1], [0])
    assert pool.recv().env_id.tolist() == [4, 2]
    assert pool.num_in_flight == 1
    assert set(pool.step([0], [5])[4]["env_id"]) == {0, 5}


@pytest.mark.parametrize("batch_size", [8, 5])
def test_batches_are_not_overwritten(batch_size):
    pool = make_pool("cartpole", 8, batch_size)
    pool.reset()
    kept, copies = [], []
    for _ in range(20):
        batch = pool.recv()
        arrays = [*batch[:7]]
        kept.append(arrays)
        copies.append([array.copy() for array in arrays])
        assert all(array.flags.writeable and array.flags.c_contiguous for array in arrays)
        pool.send(np.ones(batch_size, np.int32), batch.env_id)
    for arrays, values in zip(kept, copies, strict=True):
        assert all(np.array_equal(array, value) for array, value in zip(arrays, values, strict=True))
    addresses = {array.ctypes.data for arrays in kept for array in arrays}
    assert len(addresses) == 7 * 20


def test_array_replaced_by_its_user_is_not_reused():
    pool = make_pool("cartpole", 4)
    for _ in range(3):
        observations = pool.step(np.ones(4))[0]
        observations.resize((2, 8), refcheck=False)
        del observations
        rewards = pool.step(np.ones(4))[1]
        rewards.setflags(write=False)
        del rewards
        observations, rewards, *_ = pool.step(np.ones(4))
        assert observations.shape == (4, 4)
        assert rewards.flags.writeable


@pytest.mark.parametrize("batch_size", [4, 2])
def test_without_copies_batches_share_arrays(batch_size):
    pool = make_pool("cartpole", 4, batch_size, copy=False)
    other = make_pool("cartpole", 4, batch_size)
    pool.reset()
    other.reset()
    ids = pool.recv().env_id.copy()
    other.recv()
    first = None
    for _ in range(30):
        step, wanted = pool.step(np.ones(batch_size), ids), other.step(np.ones(batch_size), ids)
        ids = step[4]["env_id"].copy()
        first = first or step
        assert step is first
        for i in range(4):
            assert np.array_equal(step[i], wanted[i])
        assert np.array_equal(step[4]["env_id"], wanted[4]["env_id"])


def test_render_scales_and_waits_for_environments_in_flight():
    pool = make_pool("cartpole", 4, 2, render_width=30, render_height=20)
    with pytest.raises(APIUsageError, match="environment 1 has not begun"):
        pool.render([1])
    pool.reset()
    small = pool.render([0, 3])
    assert small.shape == (2, 20, 30, 3)
    assert small.dtype == np.uint8
    assert small.any()
    assert pool.num_in_flight == 4
    assert {*pool.recv().env_id, *pool.recv().env_id} == {0, 1, 2, 3}
    native = make_pool("cartpole", 1, seeds=[3])
    native.reset()
    env = pufferlib.make("cartpole", num_envs=1, seed=3)
    env.reset()
    assert np.array_equal(native.render([0])[0], env.render())
    with pytest.raises(APIUsageError, match="from 0 to 0, got 5"):
        native.render([5])
    with pytest.raises(APIUsageError, match="camera_id must be a player from 0 to 0"):
        native.render([0], 3)


def test_c_file_as_environment(tmp_path):
    ocean_folder = Path(*ocean.__path__) / "squared"
    for part in ocean_folder.glob("*.[ch]"):
        (tmp_path / part.name).write_text(part.read_text())
    wanted, pool = make_pool("squared", 2), make_pool(str(tmp_path / "squared.c"), 2)
    for _ in range(10):
        assert np.array_equal(pool.step([1, 2])[0], wanted.step([1, 2])[0])
