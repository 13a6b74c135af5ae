"""Pools in worker processes: steps, ends of episodes, batches and their arrays."""

import functools
import os
import sys
from concurrent.futures import ThreadPoolExecutor, wait

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text
from gymnasium.wrappers import TimeLimit

from pufferlib.errors import APIUsageError
from tests.envpool.pools import config, open_pool, send_and_recv
from tests.envs import MIXED, NESTED, FunctionEnv, ScriptedParallelEnv, TargetEnv, VariedEnv, alive, counting_env
from tests.tiers import once

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

CARTPOLE = functools.partial(gymnasium.make, "CartPole-v1")


def numbers(batch):
    return batch.observations.ravel().tolist()


def test_next_step_autoreset_uses_the_action_to_reset():
    with open_pool(functools.partial(counting_env, None), 1, max_episode_steps=3) as pool:
        rows = [send_and_recv(pool, [1]) for _ in range(5)]
    assert [row.elapsed_step[0] for row in rows] == [0, 1, 2, 3, 0]
    assert [row.rewards[0] for row in rows] == [0, 1, 1, 1, 0]
    assert [bool(row.truncated[0]) for row in rows] == [False, False, False, True, False]
    assert not any(row.terminated[0] for row in rows)
    assert [numbers(row)[0] for row in rows] == [0, 1, 2, 3, 0]


def test_pool_matches_gymnasium():
    with open_pool(CARTPOLE, 3) as pool:
        pool.reset()
        batch = pool.recv()
        envs = [CARTPOLE() for _ in range(3)]
        seen = [env.reset(seed=42 + i)[0] for i, env in enumerate(envs)]
        ended = [False] * 3
        rng = np.random.default_rng(0)
        for _ in range(150):
            np.testing.assert_array_equal(batch.observations, seen)
            actions = rng.integers(2, size=3)
            batch = send_and_recv(pool, actions)
            for i, env in enumerate(envs):
                if ended[i]:
                    seen[i], ended[i] = env.reset()[0], False
                else:
                    seen[i], _, terminated, truncated, _ = env.step(int(actions[i]))
                    ended[i] = terminated or truncated
            assert batch.terminated.tolist() == ended


@pytest.mark.parametrize(("batch_size", "num_threads"), once([(6, 1), (6, 4), (2, 1), (4, 3)], [(4, 3)]))
def test_results_do_not_depend_on_workers_or_batch_size(batch_size, num_threads):
    def played(batch_size, num_threads):
        seen = {env: [] for env in range(6)}
        with open_pool(VariedEnv, 6, batch_size, num_threads=num_threads) as pool:
            pool.reset()
            while min(map(len, seen.values())) < 30:
                batch = pool.recv()
                for env, row, reward in zip(batch.env_id, batch.observations, batch.rewards, strict=True):
                    seen[env].append([*row, reward])
                pool.send(np.ones(len(batch.env_id), int), batch.env_id)
        return np.array([rows[:30] for rows in seen.values()])

    np.testing.assert_array_equal(played(batch_size, num_threads), played(6, 2))


def test_sync_batch_has_the_order_of_sending():
    with open_pool(functools.partial(counting_env, None), 4) as pool:
        pool.reset()
        assert pool.recv().env_id.tolist() == [0, 1, 2, 3]
        assert send_and_recv(pool, [1, 1], [3, 0]).env_id.tolist() == [3, 0]
        pool.send(np.ones(2), np.array([2, 0], np.int32))
        pool.reset(np.array([3], np.int32))
        pool.send(np.ones(1), np.array([1], np.int32))
        assert pool.num_in_flight == 4
        batch = pool.recv()
        assert batch.env_id.tolist() == [2, 0, 3, 1]
        assert numbers(batch) == [1, 2, 0, 1]
        assert batch.elapsed_step.tolist() == [1, 2, 0, 1]


def test_sync_batch_waits_for_the_environments_sent_first(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def env(seed):
        return FunctionEnv(observe=functools.partial(wait_for_fifo, str(fifo) if seed == 43 else None))

    with open_pool(env, 3, num_threads=3) as pool, ThreadPoolExecutor(1) as threads:
        pool.reset()
        pool.recv()
        pool.send(np.ones(2), np.array([0, 1], np.int32))  # the second one waits for the file
        received = threads.submit(pool.recv)
        text = ""
        while "one thread at a time" not in text:  # until then, the error is about environment 7
            with pytest.raises(APIUsageError) as error:
                pool.render([7])
            text = str(error.value)
        pool.send(np.ones(1), np.array([2], np.int32))
        assert not wait([received], 0.3).done
        fifo.write_text("go on")
        batch = received.result()
        assert (batch.env_id.tolist(), batch.elapsed_step.tolist()) == ([0, 1], [1, 1])
        assert pool.recv().env_id.tolist() == [2]


def wait_for_fifo(path, env):
    if path is not None and env.count == 1:
        with open(path) as file:
            file.read()
    return np.zeros(1, np.float32)


def test_async_batch_contains_the_first_that_finish(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    slow = {"seed": 42}

    def env(seed):
        return FunctionEnv(observe=functools.partial(wait_for_fifo, str(fifo) if seed == slow["seed"] else None))

    with open_pool(env, 4, 2, num_threads=4) as pool:
        pool.reset()
        first = [*pool.recv().env_id, *pool.recv().env_id]
        assert sorted(first) == [0, 1, 2, 3]
        pool.send(np.ones(4))
        before = pool.recv().env_id.tolist()
        assert 0 not in before
        assert 0 not in send_and_recv(pool, [1, 1], before).env_id
        fifo.write_text("go on")
        rest = pool.recv().env_id.tolist()
        assert 0 in rest


def test_same_step_autoreset_starts_the_next_episode():
    with open_pool(functools.partial(counting_env, 2), 2, autoreset="same_step") as pool:
        pool.reset()
        pool.recv()
        send_and_recv(pool, [1, 1])
        batch = send_and_recv(pool, [1, 1])
        assert numbers(batch) == [0, 0]
        assert batch.final_observations.ravel().tolist() == [2, 2]
        assert batch.terminated.all()
        assert batch.rewards.tolist() == [1, 1]
        assert batch.elapsed_step.tolist() == [0, 0]
        batch = send_and_recv(pool, [1, 1])
        assert (batch.elapsed_step.tolist(), numbers(batch), batch.terminated.any()) == ([1, 1], [1, 1], False)


def test_disabled_autoreset_requires_reset():
    with open_pool(functools.partial(counting_env, 1), 1, autoreset="disabled") as pool:
        with pytest.raises(APIUsageError, match=r"must be reset before their first action .* got env_id \[0\]"):
            send_and_recv(pool, [1])
        pool.reset()
        pool.recv()
        assert send_and_recv(pool, [1]).terminated.all()
        with pytest.raises(APIUsageError, match="must be reset"):
            send_and_recv(pool, [1])
        pool.reset()
        assert numbers(pool.recv()) == [0]
        assert send_and_recv(pool, [1]).rewards[0] == 1


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_pool_autoreset_mode_overrides_native_environments(autoreset):
    kwargs = {"num_agents": 2, "choices": 3, "length": 3}
    with open_pool(functools.partial(TargetEnv, **kwargs), 1, autoreset=autoreset, env_seed=[7]) as pool:
        own = TargetEnv(**kwargs, seed=7)
        own.reset(7)
        pool.reset()
        np.testing.assert_array_equal(pool.recv().observations, own.observations)
        for step in range(1, 4):
            batch = send_and_recv(pool, [1, 1])
            own.step(np.array([1, 1]))
            assert bool(batch.terminated[0]) == (step == 3)
            np.testing.assert_array_equal(batch.rewards, own.rewards)
            shown = own.observations if step < 3 or autoreset == "same_step" else own.final_observations
            np.testing.assert_array_equal(batch.observations, shown)
        if autoreset == "same_step":
            np.testing.assert_array_equal(batch.final_observations, own.final_observations)
        if autoreset == "next_step":
            batch = send_and_recv(pool, [1, 1])
            np.testing.assert_array_equal(batch.observations, own.observations)
            assert (batch.elapsed_step[0], batch.rewards.any()) == (0, False)
        if autoreset == "disabled":
            with pytest.raises(APIUsageError, match="must be reset"):
                send_and_recv(pool, [1, 1])
            return
        batch = send_and_recv(pool, [1, 1])
        own.step(np.array([1, 1]))
        np.testing.assert_array_equal(batch.observations, own.observations)
        assert batch.elapsed_step[0] == 1


def test_players_have_rows_and_flags():
    script = [("a", "b"), alive("a", "b"), {"a": "dead", "b": "alive"}, {"b": "cut"}]
    env = functools.partial(ScriptedParallelEnv, *script, names=("a", "b"))
    with open_pool(env, 2) as pool:
        assert pool.spec.num_players == 2
        pool.reset()
        assert pool.recv().player_env_id.tolist() == [0, 0, 1, 1]
        send_and_recv(pool, [1] * 4)
        batch = send_and_recv(pool, [1] * 4)
        assert batch.infos["players.terminated"].tolist() == [True, False] * 2
        assert not batch.terminated.any()
        batch = send_and_recv(pool, [1, 1], [1])
        assert batch.player_env_id.tolist() == [1, 1]
        assert batch.rewards.tolist() == [0, 3]
        assert (batch.terminated.tolist(), batch.truncated.tolist()) == ([False], [True])
        assert batch.infos["players.mask"].tolist() == [False, True]


def sample_of(env):
    return env.observation_space.sample()


def test_observations_match_the_space():
    with open_pool(functools.partial(FunctionEnv, NESTED), 2) as pool:
        pool.reset()
        seen = pool.recv().observations
        assert pool.spec.observation_space == NESTED
        for i in range(2):
            NESTED.seed(42 + i)
            sample = NESTED.sample()
            np.testing.assert_array_equal(seen["map"][i], sample["map"])
            np.testing.assert_array_equal(seen["hero"][1][i], sample["hero"][1])
            assert seen["hero"][0][i] == sample["hero"][0]
            np.testing.assert_array_equal(seen["flags"][i], sample["flags"])
            assert seen["gold"][i] == sample["gold"]
        assert seen["map"].shape == (2, 3, 5)
        assert seen["hero"][1].dtype == np.float64


def test_text_observations_become_character_codes():
    space = Dict({"mission": Text(8), "room": Discrete(4)})
    with open_pool(functools.partial(FunctionEnv, space, observe=lambda env: {"mission": "go", "room": 2}), 1) as pool:
        pool.reset()
        seen = pool.recv().observations
    assert bytes(seen["mission"]["codes"][0][:2].astype(np.uint8)) == b"go"
    assert seen["mission"]["length"].tolist() == [2]


def test_infos_are_arrays_with_masks():
    def info(env):
        return {"lives": 4 - env.count, "speed": [1.0, env.count], "note": "odd"} if env.count % 2 else {"lives": 4}

    declared = {"lives": Discrete(5), "absent": Box(-1, 1, (2,))}
    env = functools.partial(counting_env, None, info=info)
    with open_pool(env, 3, backend={"infos": declared}) as pool:
        pool.reset()
        assert pool.recv().infos["lives"].tolist() == [0, 0, 0]
        send_and_recv(pool, [1], [1])
        batch = send_and_recv(pool, [1, 1, 1])
    assert batch.infos["lives"].tolist() == [3, 4, 3]
    assert batch.infos["absent"].shape == (3, 2)
    assert batch.infos["speed"].tolist() == [[1, 1], [0, 0], [1, 1]]
    assert batch.infos["_speed"].tolist() == [True, False, True]
    assert batch.infos["note"].tolist() == ["odd", None, "odd"]


def test_infos_named_like_pool_infos_get_a_prefix():
    def info(env):
        return {"env_id": 7, "players": 2, "elapsed_step": -1, "players.env_id": 3, "_final_obs": 4, "level": 1}

    with open_pool(functools.partial(counting_env, None, info=info), 2) as pool:
        send_and_recv(pool, [1, 1])
        batch = send_and_recv(pool, [1, 1])
    named = [name for name in batch.infos if not name.startswith("_")]
    assert named == ["env.env_id", "env.players", "env.elapsed_step", "env.players.env_id", "env._final_obs", "level"]
    assert batch.infos["env.players"].tolist() == [2, 2]
    assert batch.env_id.tolist() == [0, 1]


def test_batches_are_overwritten_only_without_copies():
    with open_pool(functools.partial(counting_env, None), 2) as pool:
        first, second = send_and_recv(pool, [1, 1]), send_and_recv(pool, [1, 1])
        assert (numbers(first), numbers(second)) == ([0, 0], [1, 1])
    with open_pool(functools.partial(counting_env, None), 2, copy=False) as pool:
        first, second = send_and_recv(pool, [1, 1]), send_and_recv(pool, [1, 1])
        assert np.shares_memory(first.observations, second.observations)
        assert send_and_recv(pool, [1], [1]).env_id.tolist() == [1]


def test_pool_step_limit_replaces_gymnasium_time_limit():
    env = functools.partial(lambda: TimeLimit(counting_env(None), 2))
    with open_pool(env, 1, max_episode_steps=5) as pool:
        assert [bool(send_and_recv(pool, [1]).truncated[0]) for _ in range(6)] == [False] * 5 + [True]
    with open_pool(env, 1) as pool:
        assert [bool(send_and_recv(pool, [1]).truncated[0]) for _ in range(3)] == [False] * 2 + [True]


def test_reset_without_seed_keeps_the_generator():
    with open_pool(CARTPOLE, 2) as pool:
        env = CARTPOLE()
        expected = [env.reset(seed=42)[0], env.reset()[0], env.reset(seed=3)[0]]
        for seeds, start in zip((None, None, [3, None]), expected, strict=True):
            pool.reset(seeds=seeds)
            np.testing.assert_array_equal(pool.recv().observations[0], start)


def test_registry_names_and_gymnasium_ids_are_accepted():
    for name in ("classic/CartPole-v1", "CartPole-v1"):
        with open_pool(name, 1, max_episode_steps=7, render_mode=None) as pool:
            rows = [send_and_recv(pool, [step % 2]) for step in range(8)]
            assert rows[-1].truncated[0]
            assert rows[-1].infos == {}
            assert pool.spec.reward_threshold == 475


def test_own_keywords_reach_the_environment():
    with open_pool("Pendulum-v1", 1, g=0.0) as pool:
        assert pool.spec.action_space == Box(-2, 2, (1,))
    with open_pool(counting_env, 1, length=2) as pool:
        assert [bool(send_and_recv(pool, [0]).terminated[0]) for _ in range(3)] == [False, False, True]


def test_num_threads_sets_the_number_of_processes():
    for num_threads, processes in ((1, 1), (3, 3), (9, 4)):
        with open_pool(counting_env, 4, num_threads=num_threads) as pool:
            assert len(pool.worker_pids) == processes
    settings = config(4, 2, num_threads=0)
    with open_pool(counting_env, **settings) as pool:
        assert len(pool.worker_pids) == min(2, len(os.sched_getaffinity(0)))


def test_thread_affinity_offset_pins_workers():
    cores = sorted(os.sched_getaffinity(0))
    with open_pool(counting_env, 2, thread_affinity_offset=1) as pool:
        send_and_recv(pool, [0, 0])
        found = [os.sched_getaffinity(pid) for pid in pool.worker_pids]
    assert found == [{cores[(1 + worker) % len(cores)]} for worker in range(2)]


@pytest.mark.parametrize("calls", [150, pytest.param(20_000, marks=pytest.mark.all)])
@pytest.mark.parametrize("batch_size", [7, 3])
def test_random_order_of_calls(calls, batch_size):
    rng = np.random.default_rng(calls + batch_size)
    expected = np.full(7, -1)  # last observation of each: its step count, 0 after a reset
    lengths = [2, 3, 5, 8, 13, 21, 34]
    with open_pool(with_length, 7, batch_size, num_threads=3, env_seed=lengths) as pool:
        idle, waiting = set(range(7)), []
        for _ in range(calls):
            if idle and rng.random() < 0.6:
                ids = rng.permutation(sorted(idle))[: rng.integers(1, len(idle) + 1)].astype(np.int32)
                over = np.array([expected[env] in (-1, lengths[env]) for env in ids])
                if rng.random() < 0.2:
                    over[:] = True
                    pool.reset(ids)
                else:
                    pool.send(np.ones(len(ids)), ids)
                expected[ids] = np.where(over, 0, expected[ids] + 1)
                idle -= set(ids.tolist())
                waiting += ids.tolist()
            needed = len(waiting) if batch_size == 7 else batch_size
            if needed and len(waiting) >= needed and rng.random() < 0.7:
                batch = pool.recv()
                ids = batch.env_id.tolist()
                if batch_size == 7:
                    assert ids == waiting
                assert len(ids) == needed
                assert numbers(batch) == expected[ids].tolist() == batch.elapsed_step.tolist()
                assert batch.terminated.tolist() == [expected[env] == lengths[env] for env in ids]
                idle |= set(ids)
                waiting = [env for env in waiting if env not in ids]
            assert pool.num_in_flight == len(waiting)


def with_length(seed):
    return counting_env(seed)


def test_mixed_actions_must_have_integers_in_range():
    with open_pool(functools.partial(FunctionEnv, None, MIXED), 2) as pool:
        send_and_recv(pool, np.array([[5, -5, 6, 1, 3]] * 2, np.float32))
        for action in ([0, 0, 6.5, 1, 3], [0, 0, 8, 1, 3], [0, 0, 6, 2, 3]):
            with pytest.raises(APIUsageError, match=r"actions must be finite numbers of the action space MixedBox"):
                pool.send(np.array([action] * 2, np.float32), np.arange(2))
