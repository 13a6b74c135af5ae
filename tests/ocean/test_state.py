"""States of C environments: ``save_state``, ``load_state``, copies and pickles."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from tests.ocean.helpers import actions_of, every_env, make, outcomes
from tests.tiers import once

ROWS = ("observations", "rewards", "terminals", "truncations", "masks")


def play(env, steps, seed=3):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(actions_of(env, rng))


def rows_of(env, first=0, last=None):
    return {name: getattr(env, name)[first:last].tolist() for name in ROWS}


@every_env
def test_load_state_continues_with_the_same_bytes(name):
    env, other = make(name, num_envs=3, seed=1), make(name, num_envs=3, seed=2)
    play(env, 40)
    play(other, 7)
    state = env.save_state()
    shown, picture = rows_of(env), env.render(1)
    played = outcomes(env, 60)
    assert np.array_equal(other.load_state(state), other.observations)
    assert rows_of(other) == shown
    assert np.array_equal(other.render(1), picture)
    assert outcomes(other, 60) == played
    env.close()
    play(other, 60)  # uses no memory of the closed environment


@every_env
def test_state_can_be_loaded_at_another_index_of_another_batch(name):
    env, other = make(name, num_envs=3, seed=1), make(name, num_envs=2, seed=2, num_threads=2)
    play(env, 40)
    agents = env.num_agents // 3
    state = env.save_state(env_ids=2)
    other.load_state(state, env_ids=[0])
    assert other.save_state(env_ids=0) == state == env.save_state(env_ids=[2])
    rng = np.random.default_rng(0)
    for _ in range(40):
        assert rows_of(other, 0, agents) == rows_of(env, 2 * agents)
        actions = actions_of(env, rng)
        env.step(actions)
        other.step(np.roll(actions, agents, axis=0)[: 2 * agents])  # environment 1 gets other actions


def by_pickle(env):
    return pickle.loads(pickle.dumps(env))


def by_cloudpickle(env):
    return pickle.loads(cloudpickle.dumps(env))


@pytest.mark.parametrize("how", once([copy.deepcopy, by_pickle, by_cloudpickle], [by_cloudpickle]))
def test_copies_are_independent(how):
    env = ocean.Pong(num_envs=4, log_interval=16, autoreset="next_step", pixels=(9, 12), frameskip=2)
    fresh = how(env)
    env.note = {"of": "mine"}
    env.reset(seed=5)
    play(env, 30)
    env.send(np.zeros(4, np.int32))
    twin = how(env)
    assert type(twin) is type(env)
    assert twin.note == env.note
    assert np.array_equal(twin.final_observations, env.final_observations)
    infos = []
    expected, got = ([(*each.recv()[:4], outcomes(each, 400, record=infos.append))] for each in (env, twin))
    assert all(np.array_equal(one, other) for one, other in zip(expected[0], got[0], strict=True))
    assert infos[: len(infos) // 2] == infos[len(infos) // 2 :] != []
    assert np.array_equal(fresh.reset(seed=5)[0], ocean.Pong(num_envs=4, pixels=(9, 12), frameskip=2).reset(seed=5)[0])


def test_state_can_be_saved_and_loaded_in_workers():
    vecenv = pufferlib.vector.make(
        pufferlib.env_creator("breakout"),
        num_envs=2,
        backend="Multiprocessing",
        num_workers=2,
        overwork=True,
        env_kwargs={"num_envs": 3},
    )
    with vecenv:
        vecenv.reset(seed=1)
        states = vecenv.call("save_state")
        played = []
        for _ in range(2):
            for env_id, state in enumerate(states):
                vecenv.call("load_state", state, env_ids=env_id)
            played.append([vecenv.step([1] * 6)[0].tolist() for _ in range(20)])
        assert played[0] == played[1]


def damaged(state):
    return state[:-1] + bytes([state[-1] ^ 1])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: 7, "state must be the bytes that save_state returned, got 7"),
        (lambda: make("breakout").save_state()[:-1], "the state is damaged"),
        (lambda: damaged(make("breakout").save_state()), "the state is damaged"),
        (lambda: make("pong").save_state(), "env must be Breakout, got a state of Pong"),
        (lambda: make("breakout", frameskip=2).save_state(), "parameters must be frameskip=4.0, got .* frameskip=2.0"),
        (lambda: make("breakout", autoreset="disabled").save_state(), "autoreset must be same_step, got .* disabled"),
        (lambda: make("breakout", num_envs=2).save_state(), "the state must be of 8 games, got one of 2; choose"),
    ],
)
def test_wrong_states_are_refused_and_change_nothing(state, message):
    env = make("breakout")
    before = env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match=rf"Breakout\.load_state: {message}"):
        env.load_state(state())
    assert env.save_state() == before


def test_state_of_another_version_is_refused(monkeypatch):
    env = make("breakout")
    state = env.save_state()
    monkeypatch.setattr("pufferlib.ocean.state.source_hash", "another")
    with pytest.raises(pufferlib.APIUsageError, match=r"code must be another, got .* replay the recorded actions"):
        env.load_state(state)


def test_save_state_needs_a_reset():
    env = ocean.Breakout()
    with pytest.raises(pufferlib.APIUsageError, match=r"Breakout\.save_state: no episode has begun; call reset first"):
        env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match="env_ids must name environments 0 to 0, each once"):
        env.load_state(make("breakout", num_envs=1).save_state(), env_ids=[1])
    env.load_state(make("breakout", num_envs=1).save_state())
    env.step([0])
    env.close()
    with pytest.raises(pufferlib.APIUsageError, match="the environment is closed"):
        pickle.dumps(env)
