"""Autoreset: the three modes play the same episodes, each with its own rows between them."""

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib import ocean

GAMES, STEPS = 6, 1500

every_env = pytest.mark.parametrize("name", ocean.names())


def make(name, autoreset, **kwargs):
    return ocean.OceanEnv(name, num_envs=GAMES, seed=5, autoreset=autoreset, **kwargs)


def actions_by_clock(env):
    """An action for every agent at every step of its own game, whatever the mode makes of the others."""
    env.action_space.seed(0)
    return np.stack([env.action_space.sample() for _ in range(STEPS)])


def by_game(array):
    return array.reshape(GAMES, -1)


def is_over(env):
    """Games whose players have all ended."""
    return by_game(env.terminals | env.truncations).all(axis=1)


def episodes(name, autoreset):
    """Observations of each game: a list of the bytes of every step, from the reset on."""
    env = make(name, autoreset)
    table = actions_by_clock(env)
    players = env.num_agents // GAMES
    env.reset()
    seen = [[by_game(env.observations)[game].tobytes()] for game in range(GAMES)]
    clock, pausing = np.zeros(GAMES, int), np.zeros(GAMES, bool)
    while clock.max() < STEPS - 1:
        env.step(table[np.repeat(clock, players), np.arange(env.num_agents)])
        over = is_over(env)
        for game in range(GAMES):
            if pausing[game]:
                assert not by_game(env.rewards)[game].any()
                assert not over[game]
            else:
                last = env.final_observations if over[game] and autoreset == "same_step" else env.observations
                outcome = (last, env.rewards, env.terminals, env.truncations, env.masks)
                seen[game].append(b"".join(by_game(array)[game].tobytes() for array in outcome))
                clock[game] += 1
            if pausing[game] or (over[game] and autoreset == "same_step"):
                seen[game].append(by_game(env.observations)[game].tobytes())
        pausing = over & ~pausing & (autoreset == "next_step")
    return seen


@every_env
def test_next_step_shows_the_episodes_of_same_step_with_a_step_between_them(name):
    for same, following in zip(episodes(name, "same_step"), episodes(name, "next_step"), strict=True):
        length = min(len(same), len(following))
        assert same[:length] == following[:length]


@every_env
def test_a_disabled_game_plays_one_episode_and_stands_still(name):
    expected, env = episodes(name, "same_step"), make(name, "disabled")
    table = actions_by_clock(env)
    players = env.num_agents // GAMES
    for _ in range(2):  # a reset begins anew
        env.reset(seed=5)
        assert env.masks.all()
        seen = [[by_game(env.observations)[game].tobytes()] for game in range(GAMES)]
        still = np.zeros(GAMES, bool)
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
                seen[game].append(b"".join(by_game(array)[game].tobytes() for array in outcome))
            still |= over
        for game in range(GAMES):
            assert seen[game] == expected[game][: len(seen[game])]


@every_env
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_every_end_is_counted_once(name, autoreset):
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
def test_vector_make_hands_the_mode_on(backend, autoreset):
    vecenv = pufferlib.vector.make(pufferlib.env_creator("squared"), backend=backend, autoreset=autoreset)
    try:
        assert vecenv.autoreset == vecenv.driver_env.autoreset == autoreset
        vecenv.reset()
        for _ in range(24):  # its longest episode
            vecenv.step([0])
        assert vecenv.truncations.tolist() == [True]
        vecenv.step([0])
        assert vecenv.masks.tolist() == [autoreset != "disabled"]
    finally:
        vecenv.close()


def test_what_the_environment_was_told_before_comes_first():
    with pytest.raises(pufferlib.APIUsageError, match="autoreset must be 'disabled', which OceanEnv does by itself"):
        pufferlib.vector.make(
            pufferlib.env_creator("squared"), env_kwargs={"autoreset": "disabled"}, autoreset="next_step"
        )


def test_an_unknown_mode_is_answered_with_the_nearest():
    with pytest.raises(pufferlib.UnknownNameError, match="unknown autoreset 'same'; did you mean 'same_step'"):
        ocean.Squared(autoreset="same")
