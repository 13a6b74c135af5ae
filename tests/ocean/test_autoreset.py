"""Autoreset modes of C environments, which give the same episodes."""

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from tests.ocean.helpers import some_envs

NUM_ENVS, STEPS = 6, 1500


def make(name, autoreset, **kwargs):
    return ocean.OceanEnv(name, num_envs=NUM_ENVS, seed=5, autoreset=autoreset, **kwargs)


def actions_by_step(env):
    """Return the action of each agent at each step of its environment, the same for all autoreset modes."""
    env.action_space.seed(0)
    return np.stack([env.action_space.sample() for _ in range(STEPS)])


def by_env(array):
    return array.reshape(NUM_ENVS, -1)


def is_over(env):
    """Return which environments have no agent with a running episode."""
    return by_env(env.terminals | env.truncations).all(axis=1)


def episodes(name, autoreset):
    """Return for each environment the bytes of its reset and of every step."""
    env = make(name, autoreset)
    table = actions_by_step(env)
    players = env.num_agents // NUM_ENVS
    env.reset()
    seen = [[by_env(env.observations)[game].tobytes()] for game in range(NUM_ENVS)]
    clock, pausing = np.zeros(NUM_ENVS, int), np.zeros(NUM_ENVS, bool)
    while clock.max() < STEPS - 1:
        env.step(table[np.repeat(clock, players), np.arange(env.num_agents)])
        over = is_over(env)
        for game in range(NUM_ENVS):
            if pausing[game]:
                assert not by_env(env.rewards)[game].any()
                assert not over[game]
            else:
                last = env.final_observations if over[game] and autoreset == "same_step" else env.observations
                outcome = (last, env.rewards, env.terminals, env.truncations, env.masks)
                seen[game].append(b"".join(by_env(array)[game].tobytes() for array in outcome))
                clock[game] += 1
            if pausing[game] or (over[game] and autoreset == "same_step"):
                seen[game].append(by_env(env.observations)[game].tobytes())
        pausing = over & ~pausing & (autoreset == "next_step")
    return seen


@some_envs
def test_next_step_gives_the_episodes_of_same_step(name):
    for same, following in zip(episodes(name, "same_step"), episodes(name, "next_step"), strict=True):
        length = min(len(same), len(following))
        assert same[:length] == following[:length]


@some_envs
def test_disabled_gives_one_episode_and_then_constant_rows(name):
    expected, env = episodes(name, "same_step"), make(name, "disabled")
    table = actions_by_step(env)
    players = env.num_agents // NUM_ENVS
    for _ in range(2):  # a reset with a seed repeats the episode
        env.reset(seed=5)
        assert env.masks.all()
        seen = [[by_env(env.observations)[game].tobytes()] for game in range(NUM_ENVS)]
        still = np.zeros(NUM_ENVS, bool)
        for step in range(STEPS - 1):
            before = env.observations.copy()
            env.step(table[step])
            over = is_over(env)
            rows = np.repeat(still, players)
            np.testing.assert_array_equal(env.observations[rows], before[rows])
            for quiet in (env.rewards, env.terminals, env.truncations, env.masks):
                assert not quiet[rows].any()
            assert env.masks[~rows].all()
            for game in np.flatnonzero(~still):
                outcome = (env.observations, env.rewards, env.terminals, env.truncations, env.masks)
                seen[game].append(b"".join(by_env(array)[game].tobytes() for array in outcome))
            still |= over
        for game in range(NUM_ENVS):
            assert seen[game] == expected[game][: len(seen[game])]


@some_envs
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_every_end_is_reported_once(name, autoreset):
    env = make(name, autoreset, log_interval=50)
    env.action_space.seed(1)
    env.reset()
    ends = counted = 0
    for _ in range(STEPS):
        *_, infos = env.step(env.action_space.sample())
        ends += ((env.terminals | env.truncations) if env.agents_end else is_over(env)).sum()
        counted += sum(info["n"] for info in infos)
    assert counted == ends


@pytest.mark.parametrize("backend", ["native", "Serial", "Multiprocessing"])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_vector_make_passes_the_autoreset_mode(backend, autoreset):
    vecenv = pufferlib.vector.make(pufferlib.env_creator("squared"), backend=backend, autoreset=autoreset)
    try:
        assert vecenv.autoreset == vecenv.driver_env.autoreset == autoreset
        vecenv.reset()
        for _ in range(24):  # the longest episode
            vecenv.step([0])
        assert vecenv.truncations.tolist() == [True]
        vecenv.step([0])
        assert vecenv.masks.tolist() == [autoreset != "disabled"]
    finally:
        vecenv.close()


def test_autoreset_in_env_kwargs_conflicts_with_argument():
    with pytest.raises(pufferlib.APIUsageError, match="autoreset must be 'disabled', which OceanEnv does by itself"):
        pufferlib.vector.make(
            pufferlib.env_creator("squared"), env_kwargs={"autoreset": "disabled"}, autoreset="next_step"
        )


@pytest.mark.parametrize("mode", gymnasium.vector.AutoresetMode)
@pytest.mark.parametrize("keywords", [{"num_envs": 2}, {"backend": "native"}])
def test_autoreset_modes_of_gymnasium_are_accepted(keywords, mode):
    with pufferlib.make("squared", autoreset=mode, **keywords) as env:
        assert env.autoreset is pufferlib.vector.AutoresetMode[mode.name]


def test_unknown_autoreset_suggests_a_mode():
    with pytest.raises(pufferlib.UnknownNameError, match="unknown autoreset 'same'; did you mean 'same_step'"):
        ocean.Squared(autoreset="same")
