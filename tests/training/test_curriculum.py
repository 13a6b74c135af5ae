"""Tests of StateCurriculum, which restarts episodes from states with large advantages."""

import dataclasses
import functools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

import pufferlib
from pufferlib import ocean, vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.settings.config import TrainConfig
from pufferlib.training.curriculum import RestartedGames, StateCurriculum
from tests.envs import FunctionEnv, IteratingEnv

CONFIG = TrainConfig(restart_share=1.0, restart_states=8)


class CountedGames:
    """Games whose saved state is the number of the game and the step."""

    def __init__(self, count):
        self.count, self.step = count, 0
        self.restarted = []
        self.is_partial = np.zeros(count, bool)

    def save(self, game):
        return bytes([game % 256, self.step])

    def restart(self, games, state):
        self.restarted += [(game, *state) for game in games]

    def counted(self, infos, ended):
        return infos


def curriculum_of(vecenv, **settings):
    """Wrap environments so that every episode after the first restarts from a saved state."""
    return StateCurriculum(dataclasses.replace(CONFIG, **settings)).wrap_envs(vecenv, None)


def restarted(games, config):
    """Return a batch of games with two agents each, whose states come from ``games``."""
    return RestartedGames(ocean.Connect4(num_envs=games.count, players=2), games, config)


def roll_out(envs, games, horizon):
    envs.begin(horizon)
    for step in range(horizon):
        games.step = step
        envs.transform_actions(None)


def test_states_with_largest_advantages_are_kept():
    games = CountedGames(4)
    envs = restarted(games, dataclasses.replace(CONFIG, restart_states=2))
    advantages = torch.arange(16.0).neg()[:, None].expand(16, 8)  # two agents per game
    seen = []
    for _ in range(40):
        roll_out(envs, games, 16)
        envs.learn(advantages)
        envs.restart(np.ones(4, bool))
        seen += games.restarted
        games.restarted.clear()
    assert sorted(game for game, *_ in seen) == sorted([0, 1, 2, 3] * 40)
    late = np.mean([step for *_, step in seen])
    assert late > 11  # of 16, 7.5 by chance


def test_restarted_c_game_is_not_counted_in_reports():
    env = ocean.Cartpole(num_envs=3, log_interval=1)
    env.reset(seed=1)
    for _ in range(5):
        env.step([0, 1, 0])
    state, shown = env.save_state(1), env.observations[1].copy()
    env.step([1, 1, 1])
    rewards, others = env.rewards.copy(), env.observations[::2].copy()
    env.restart_from(state, 0)
    assert np.array_equal(env.observations[0], shown)
    assert np.array_equal(env.observations[2], others[1])
    assert np.array_equal(env.rewards, rewards)
    reports = []
    ends = np.zeros(3, int)
    for _ in range(200):
        ends += env.terminals | env.truncations
        reports += env.step([0, 0, 0])[4]
    ends += env.terminals | env.truncations
    assert sum(report["n"] for report in reports) == ends.sum() - 1


def test_episode_after_reset_is_counted():
    env = ocean.Cartpole(num_envs=1, log_interval=1)
    for reset in (lambda: env.reset(seed=2), lambda: env.reset(seed=[2], env_ids=[0])):
        env.reset(seed=1)
        env.restart_from(env.save_state())
        reset()
        reports = []
        while not reports:
            reports = env.step([0])[4]
        assert reports[0]["episode_length"] < 12
        assert reports[0]["n"] == 1


def test_restart_does_not_copy_random_state():
    env = ocean.Squared(num_envs=2)
    env.reset(seed=1)
    env.restart_from(env.save_state(0))
    assert env.save_state(0) != env.save_state(1)


def test_infos_of_restarted_episodes_are_dropped():
    creator = functools.partial(
        GymnasiumPufferEnv,
        env_creator=lambda: pufferlib.EpisodeStats(FunctionEnv(length=4)),
    )
    vecenv = vector.make(creator, num_envs=3, backend="Serial", autoreset="same_step")
    with curriculum_of(vecenv, restart_states=8) as envs:
        envs.reset(seed=1)
        envs.begin(2)
        for _ in range(2):
            envs.step([0, 0, 0])
        envs.learn(torch.ones(2, 3))
        lengths = []
        for _ in range(9):
            lengths += [info["episode_length"] for info in envs.step([0, 0, 0])[4]]
        assert lengths == [4, 4, 4]  # only the first episodes are whole


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ocean.Snake(num_envs=1), "must start and end episodes together, got agents that end one by one"),
        (
            lambda: ocean.Breakout(num_envs=1, autoreset="next_step"),
            "batches must contain all agents and .* autoreset='next_step'",
        ),
        (
            lambda: vector.make(pufferlib.env_creator("breakout"), num_envs=2, backend="Serial"),
            "got Serial; leave it out",
        ),
    ],
)
def test_envs_that_cannot_be_restarted_raise(make, message):
    with pytest.raises(pufferlib.APIUsageError, match=rf"train\.restart_share.*{message}"):
        StateCurriculum(CONFIG).wrap_envs(make(), None)


def test_env_without_plain_state_names_save_state():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=IteratingEnv)
    vecenv = vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step")
    with curriculum_of(vecenv) as envs:
        envs.reset(seed=1)
        envs.begin(1)
        with pytest.raises(
            pufferlib.APIUsageError,
            match=r"train\.restart_share: .* leave it out: .*IteratingEnv must be .*define save_state",
        ):
            envs.step([0, 0])


def test_gymnasium_env_is_restarted_from_saved_state():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    vecenv = vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step")
    with curriculum_of(vecenv, restart_states=1) as envs:
        first = envs.reset(seed=1)[0].copy()
        envs.begin(1)
        envs.step([0, 0])
        envs.learn(torch.ones(1, 2))
        envs.begin(1000)
        for _ in range(100):
            observations, rewards, terminals, *_ = envs.step([0, 0])
            if terminals[0]:
                break
        assert (observations[0] == first).all(1).any()
        assert rewards[0] == 1  # reward of the last step, not of the restored state


class Drawing(FunctionEnv):
    """Environment whose episodes are truncated after 6 steps, and begin with a random number."""

    def __init__(self):
        super().__init__(Box(0, 99, (2,)), observe=lambda env: np.array([env.count, env.first], np.float32))

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.first = self.np_random.random()
        return super().reset(options=options)


def test_restarted_episodes_end_with_their_own_observations_and_go_on_with_new_numbers():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=lambda: gymnasium.wrappers.TimeLimit(Drawing(), 6))
    vecenv = vector.make(creator, num_envs=8, backend="Serial", autoreset="same_step")
    with curriculum_of(vecenv, restart_states=1, restart_share=0.5) as envs:
        envs.reset(seed=1)
        envs.begin(2)
        for _ in range(2):
            envs.step([0] * 8)
        envs.learn(torch.ones(2, 8))
        envs.begin(1000)
        cuts, firsts = 0, []
        for _ in range(40):
            observations, _, _, truncations, _ = envs.step([0] * 8)
            cuts += truncations.sum()
            assert (envs.final_observations[truncations, 0] == 6).all()
            firsts += observations[truncations & (observations[:, 0] == 0), 1].tolist()
        assert cuts > 40
        kept = max(firsts, key=firsts.count)  # of the state in which episodes restart, if that is a first one
        others = [first for first in firsts if first != kept]
        assert len(others) > 10
        assert len(set(others)) == len(others), "whole episodes must not repeat each other"


def test_states_that_do_not_fit_the_environments_are_dropped_with_a_warning():
    first, second = (curriculum_of(ocean.Connect4(num_envs=2, players=2)) for _ in range(2))
    first.reset(seed=1)
    first.begin(1)
    first.step(np.zeros(4, np.int64))
    first.learn(torch.ones(1, 4))
    second.reset(seed=2)
    second.load_kept_states(first.kept_states())
    assert len(second.kept_states()["states"]) == 2
    other = curriculum_of(ocean.Connect4(num_envs=2, players=2, depth=1))
    other.reset(seed=3)
    with pytest.warns(UserWarning, match=r"restart_share starts without .* must be depth=1"):
        other.load_kept_states(first.kept_states())
    assert other.kept_states()["states"] == []
    assert other.restart(np.ones(2, bool)) is None
