"""Behavior of all pools: C environments, worker processes, several players."""

import copy
import pickle
import queue
import threading
from pathlib import Path

import numpy as np
import pytest

import pufferlib.envpool as envpool
from pufferlib.envpool import pool_env
from pufferlib.envpool.families import ocean
from pufferlib.envpool.native import NativeBackend
from pufferlib.errors import APIUsageError
from tests.envpool.counting import CUT, END, CountingEnv
from tests.tiers import once

C_FILE = Path(__file__).with_name("counting.c")
envpool.register("CountingInC-v0", C_FILE)
envpool.register("CountingInWorkers-v0", CountingEnv)
envpool.register("TwoInC-v0", NativeBackend(str(C_FILE), players=2))

TASKS = ("CountingInC-v0", "CountingInWorkers-v0")


@pytest.fixture(params=TASKS)
def make(request):
    made = []

    def make(num_envs=2, **keywords):
        made.append(envpool.make_gymnasium(request.param, num_envs=num_envs, seed=0, **keywords))
        return made[-1]

    yield make
    for env in made:
        env.close()


def test_max_episode_steps_follows_the_documented_table(make):
    """Follow the example in EnvPool's documentation: max_episode_steps = 3, and five steps without a reset."""
    env = make(num_envs=1, max_episode_steps=3)
    steps = [env.step(np.array([1])) for _ in range(5)]
    assert [step[4]["elapsed_step"][0] for step in steps] == [0, 1, 2, 3, 0]
    assert [step[1][0] > 0 for step in steps] == [False, True, True, True, False]
    assert [bool(step[3][0]) for step in steps] == [False, False, False, True, False]
    assert not any(step[2][0] for step in steps)
    assert [step[0][0, 3] for step in steps] == [0, 1, 1, 1, 0]  # the first and the last action reset the environment


def test_termination_at_the_step_limit_sets_both_flags(make):
    env = make(max_episode_steps=1)
    env.reset()
    *_, terminated, truncated, _ = env.step([END, 1])
    assert terminated.tolist() == [True, False]
    assert truncated.tolist() == [True, True]


def test_sync_batch_joins_several_sends_in_order(make):
    env = make(num_envs=4)
    env.reset()
    env.send(np.array([1, 2]), np.array([3, 0]))
    env.send(np.array([0, 1]), np.array([1, 2]))
    observations, *_, info = env.recv()
    assert info["env_id"].tolist() == observations[:, 0].tolist() == [3, 0, 1, 2]
    assert observations[:, 3].tolist() == [1, 2, 0, 1]


def test_send_without_env_id_goes_to_the_last_batch(make):
    env = make(num_envs=4, batch_size=2)
    env.send(np.ones(2))
    assert sorted(env.recv()[4]["env_id"].tolist()) == [0, 1]
    assert {*env.step(np.ones(2))[4]["env_id"].tolist()} == {0, 1}
    env.async_reset([2, 3])
    assert {*env.recv()[4]["env_id"].tolist()} == {2, 3}
    assert {*env.step(np.ones(2))[4]["env_id"].tolist()} == {2, 3}
    assert {*env.step({"action": np.ones(2), "env_id": np.array([0, 1])})[4]["env_id"].tolist()} == {0, 1}


def test_copy_and_pickle_raise(make):
    env = make()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(APIUsageError, match=r"must stay in the process that made it, .* make another"):
            duplicate(env)


def test_earlier_batches_are_not_overwritten(make):
    env = make()
    steps = [env.reset()[0], *(env.step([1, 1])[0] for _ in range(20))]
    assert [step[0, 2] for step in steps] == list(range(21))


def test_reset_of_some_environments_while_others_end(make):
    env = make(num_envs=3, autoreset="disabled")
    env.reset()
    assert env.step([END, CUT, 1])[0][:, 2].tolist() == [1, 1, 1]
    with pytest.raises(APIUsageError):
        env.step([1, 1, 1])
    observations, info = env.reset(options={"reset_mask": np.array([True, True, False])})
    assert observations[:, 1:].tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert info["env_id"].tolist() == [0, 1, 2]
    assert info["_elapsed_step"].tolist() == [True, True, False]
    assert env.step([1, 1, 1])[0][:, 2].tolist() == [1, 1, 2]


@pytest.mark.parametrize(("stack", "from_pixels"), [(2, False), (1, True), (2, True)])
def test_reset_mask_returns_rows_of_all_environments(make, stack, from_pixels):
    env = make(num_envs=3, from_pixels=from_pixels, frame_stack=stack)
    env.reset()
    before = env.step([1, 1, 1])[0]
    after, _ = env.reset(options={"reset_mask": np.array([True, False, False])})
    assert after.shape == before.shape
    assert np.array_equal(after[1:], before[1:])
    assert not np.array_equal(after[0], before[0])


@pytest.mark.usefixtures("whole_wait")
@pytest.mark.parametrize("batch_size", [2, 4])
def test_one_thread_sends_and_another_receives(make, batch_size):
    env, steps = make(num_envs=4, batch_size=batch_size), 200
    came = queue.SimpleQueue()

    def receive():
        for _ in range(steps * 4 // batch_size):
            came.put(env.recv())

    env.async_reset()
    thread = threading.Thread(target=receive)
    thread.start()
    counts = np.zeros(4, int)
    for batch in range(steps * 4 // batch_size):
        observations, *_, info = came.get()
        counts[info["env_id"]] += 1
        assert (observations[:, 2] == counts[info["env_id"]] - 1).all()
        if batch < (steps - 1) * 4 // batch_size:
            env.send(np.ones(batch_size), info["env_id"])
    thread.join()
    assert counts.sum() == 4 * steps


@pytest.mark.usefixtures("whole_wait")
@pytest.mark.parametrize("is_reset_here", [True, False])
def test_recv_waits_for_a_thread_that_has_not_sent_yet(make, is_reset_here):
    env = make()
    if is_reset_here:
        env.async_reset()
    else:
        resetter = threading.Thread(target=env.async_reset)
        resetter.start()
        resetter.join()
    env.recv()
    sender = threading.Timer(0.1, env.send, (np.ones(2),))
    sender.start()
    assert env.recv()[4]["elapsed_step"].tolist() == [1, 1]
    sender.join()


@pytest.fixture
def idle_thread():
    """Run another thread, which does not use the environment."""
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    yield
    is_over.set()
    thread.join()


def test_recv_does_not_wait_if_only_this_thread_sends(make, idle_thread, monkeypatch):
    monkeypatch.setattr(pool_env, "POLL_S", "waiting would raise TypeError")
    env = make()
    env.async_reset()
    env.recv()
    env.send(np.ones(2))
    env.recv()
    with pytest.raises(APIUsageError, match="wait for ever"):
        env.recv()


def test_recv_does_not_wait_after_close(make, idle_thread, monkeypatch):
    monkeypatch.setattr(pool_env, "POLL_S", "waiting would raise TypeError")
    env = make()
    env.reset()
    env.close()
    with pytest.raises(APIUsageError, match="closed"):
        env.recv()


def test_recv_waits_no_longer_than_the_limit(make, idle_thread, monkeypatch):
    monkeypatch.setattr(pool_env, "SENDER_TIMEOUT_S", 0.05)
    env = make()
    env.reset()
    with pytest.raises(APIUsageError, match="wait for ever"):
        env.recv()


def test_recv_does_not_wait_for_a_finished_thread(make):
    env = make()
    env.reset()
    thread = threading.Thread(target=env.send, args=(np.ones(2),))
    thread.start()
    thread.join()
    env.recv()
    with pytest.raises(APIUsageError, match="wait for ever"):
        env.recv()


def test_same_step_autoreset_returns_final_observations(make):
    env = make(autoreset="same_step")
    env.reset()
    observations, _, terminated, _, info = env.step([END, 1])
    assert observations[:, 1].tolist() == [1, 0]
    assert info["_final_obs"].tolist() == terminated.tolist() == [True, False]
    assert info["final_obs"][0].tolist() == [0, 0, 1, END]
    assert not env.step([1, 1])[4]["_final_obs"].any()


@pytest.mark.parametrize("stack", [1, 2])
def test_from_pixels_observations(make, stack):
    env = make(from_pixels=True, frame_stack=stack, render_height=12, render_width=16)
    env.reset()
    observations, *_ = env.step([1, 1])
    assert observations.shape == (2, 3 * stack, 12, 16)
    assert observations[:, -2, 5, 5].tolist() == [1, 1]


def test_render(make):
    env = make(num_envs=3, render_mode="rgb_array", render_width=30)
    env.reset()
    env.step([1, 1, 1], env_id=[0, 1, 2])
    assert env.render(env_ids=[0, 2]).shape == (2, 10, 30, 3)
    assert env.render([0, 2, 0])[:, 5, 5, 1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("task_id", ["Breakout-v0", "CartPole-v1", "CountingInWorkers-v0"])
def test_reset_with_seed_equals_make_with_seed(task_id):
    one, other = (envpool.make_gymnasium(task_id, num_envs=2, seed=seed) for seed in (3, 8))
    other.reset()
    other.step([1, 1])
    observations, again = one.reset()[0], other.reset(seed=3)[0]
    for _ in range(20):
        assert np.array_equal(observations, again)
        observations, again = one.step([1, 1])[0], other.step([1, 1])[0]
    one.close()
    other.close()


WRONG_IDS = (
    *([2], [-1], [0, 0], [0.0], [[0]], 0, np.array(0), np.array([0.5]), [2**40], [], ["a"], "01", [True], [[0], 1]),
    *(np.array([2**63], np.uint64), {0}),
)
WRONG_ACTIONS = (
    *(np.array(1), 1, None, "ab", [1], [1, 1, 1], [[1], [1]], [0.5, 1], [1, np.nan], [np.inf, 1], [5, 0], [0, -1]),
    *([2**70, 0], np.ones(2, complex), [[1], [1, 2]], {}, {"action": [1]}, {"action": [1, 1], "env_id": [0]}),
    *(np.array([2**32, 0]), np.ones(2, "datetime64[s]"), [None, None], {"action": [1, 9], "env_id": [0, 1]}),
)


def test_invalid_ids_raise_in_every_method(make):
    env = make()
    env.reset()
    for wrong in WRONG_IDS:
        actions = np.ones(len(wrong) if isinstance(wrong, list) else 1, int)
        calls = [
            *((call, (actions, wrong)) for call in (env.step, env.send)),
            *((call, ({"action": actions, "env_id": wrong},)) for call in (env.step, env.send)),
            *((call, (wrong,)) for call in (env.reset, env.async_reset)),
        ]
        for call, arguments in calls:
            with pytest.raises(APIUsageError, match="env_id"):
                call(*arguments)
    assert env.step([1, 1])[4]["elapsed_step"].tolist() == [1, 1]


def test_invalid_actions_raise_in_every_method(make):
    env = make()
    env.reset()
    for wrong in WRONG_ACTIONS:
        for call in (env.step, env.send):
            with pytest.raises(APIUsageError, match="action"):
                call(wrong)
    assert env.step([1, 1])[4]["elapsed_step"].tolist() == [1, 1]


def test_send_in_flight_and_recv_of_nothing_raise(make):
    env = make()
    with pytest.raises(APIUsageError, match="wait for ever"):
        env.recv()
    env.async_reset()
    for call in (lambda: env.send([1, 1]), lambda: env.async_reset([0]), env.reset, lambda: env.step([1], [1])):
        with pytest.raises(APIUsageError, match="in flight"):
            call()
    assert len(env.recv(reset=True)) == 2
    partly = make(num_envs=3, batch_size=2)
    partly.send([1], [2])
    with pytest.raises(APIUsageError, match="wait for ever"):
        partly.recv()


def test_calls_after_close_raise(make):
    env = make()
    env.reset()
    env.close()
    env.close()
    for call in (env.reset, env.recv, lambda: env.step([1, 1]), lambda: env.send([1, 1]), lambda: env.reset(seed=3)):
        with pytest.raises(APIUsageError, match="clos"):
            call()


def test_players_env_id_allows_any_row_order():
    env = envpool.make_gymnasium("TwoInC-v0", num_envs=3)
    env.reset()
    for call in (env.step, lambda action: (env.send(action), env.recv())[1]):
        observations, rewards, terminated, _, info = call({"action": [0, 1, 2, 1], "players.env_id": [2, 0, 2, 0]})
        assert info["env_id"].tolist() == [2, 0]
        assert info["players"]["env_id"].tolist() == [2, 2, 0, 0]
        assert observations[:, 3].tolist() == [0, 2, 1, 1]
        assert (len(rewards), len(terminated)) == (4, 2)


@pytest.mark.parametrize("task_id", ["Breakout-v0", "Snake-v0", "CartPole-v1", "Pendulum-v1"])
def test_int_seed_is_increased_by_the_index(task_id):
    one, other, own = (
        envpool.make_gymnasium(task_id, num_envs=3, **keywords)
        for keywords in ({"seed": 7, "num_threads": 1}, {"seed": 8, "num_threads": 2}, {"seed": [9, 8, 7]})
    )
    players = one.config["max_num_players"]
    first, shifted, listed = (
        env.reset()[0].reshape(3, players, *env.observation_space.shape) for env in (one, other, own)
    )
    for _ in range(30):
        actions = np.stack([one.action_space.sample() for _ in range(players)])
        assert np.array_equal(first[1:], shifted[:-1])
        assert np.array_equal(first, listed[::-1])
        first, shifted, listed = (
            env.step(np.concatenate([actions] * 3))[0].reshape(first.shape) for env in (one, other, own)
        )


IN_THE_DAY = {"Breakout-v0", "Snake-v0", "PyMultiagent-v0", "CartPole-v1", "Pendulum-v1"}


@pytest.mark.parametrize("task_id", once([task.id for task in ocean.tasks()], IN_THE_DAY))
@pytest.mark.parametrize("env_type", ["gymnasium", "dm"])
def test_every_ocean_and_classic_control_task_steps(task_id, env_type):
    if env_type == "dm":
        pytest.importorskip("dm_env", reason="dm_env is not installed; puffer install dm")
    env = envpool.make(task_id, env_type=env_type, num_envs=2, max_episode_steps=5)
    spec = env.spec
    env.reset()
    rows = 2 * spec.config.max_num_players
    for _ in range(12):
        result = env.step(np.stack([spec.action_space.sample() for _ in range(rows)]))
        rewards = result[1] if env_type == "gymnasium" else result.reward
        assert rewards.shape == (rows,)
        assert np.isfinite(rewards).all()
    env.close()
