"""Episodes that begin in states of large advantages: which those are, how many, and that no score counts them."""

import dataclasses
import functools

import gymnasium
import numpy as np
import pytest
import torch

import pufferlib
from pufferlib import ocean, vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.training.config import TrainConfig
from pufferlib.training.curriculum import StateCurriculum, make_curriculum
from tests.envs import FunctionEnv

CONFIG = TrainConfig(restart_share=1.0, restart_states=8)


class CountedGames:
    """Games whose state says which step of which game it is of."""

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


def roll_out(curriculum, games, horizon):
    curriculum.begin_rollout()
    for step in range(horizon):
        games.step = step
        curriculum.look(step)


def test_the_states_with_the_largest_advantages_are_kept():
    games = CountedGames(4)
    curriculum = StateCurriculum(games, 16, dataclasses.replace(CONFIG, restart_states=2))
    advantages = torch.arange(16.0).neg()[:, None].expand(16, 8)  # two agents of each game
    seen = []
    for _ in range(40):
        roll_out(curriculum, games, 16)
        curriculum.learn(advantages)
        curriculum.restart(np.ones(8, bool))
        seen += games.restarted
        games.restarted.clear()
    assert sorted(game for game, *_ in seen) == sorted([0, 1, 2, 3] * 40)
    late = np.mean([step for *_, step in seen])
    assert late > 11  # of 16, where chance would have 7.5


def test_only_a_share_of_the_games_is_restarted_when_all_of_their_agents_have_ended():
    games = CountedGames(1000)
    curriculum = StateCurriculum(games, 4, dataclasses.replace(CONFIG, restart_share=0.3))
    ended = np.ones((1000, 2), bool)
    ended[:500, 1] = False
    curriculum.restart(ended.ravel())
    assert games.restarted == []  # nothing is kept yet
    roll_out(curriculum, games, 4)
    curriculum.learn(torch.ones(4, 2000))
    curriculum.restart(ended.ravel())
    assert 100 < len(games.restarted) < 200
    assert all(game >= 500 for game, *_ in games.restarted)


def test_a_game_in_c_goes_on_in_the_middle_and_no_report_counts_it():
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


def test_a_reset_makes_a_whole_episode_of_one_that_began_in_the_middle():
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


def test_chance_is_not_that_of_the_state():
    env = ocean.Squared(num_envs=2)
    env.reset(seed=1)
    env.restart_from(env.save_state(0))
    assert env.save_state(0) != env.save_state(1)


def test_infos_of_episodes_that_began_in_the_middle_are_left_out():
    creator = functools.partial(
        GymnasiumPufferEnv,
        env_creator=lambda: pufferlib.EpisodeStats(FunctionEnv(length=4)),
    )
    with vector.make(creator, num_envs=3, backend="Serial", autoreset="same_step") as vecenv:
        vecenv.reset(seed=1)
        curriculum = make_curriculum(vecenv, 2, CONFIG)
        for step in range(2):
            if not step:
                curriculum.begin_rollout()
            vecenv.step([0, 0, 0])
            curriculum.look(step)
        curriculum.learn(torch.ones(2, 3))
        counts = []
        for _ in range(9):
            *_, terminals, _, infos = vecenv.step([0, 0, 0])
            counts.append(len(list(curriculum.counted(infos, terminals))))
            curriculum.restart(terminals & [True, False, False])
        assert sum(counts) == 3 + 2  # the first of each, and the second of those that began at their start


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ocean.Snake(num_envs=1), "must begin and end together, got agents that end one by one"),
        (
            lambda: ocean.Breakout(num_envs=1, autoreset="next_step"),
            "batches must be whole and .* autoreset='next_step'",
        ),
        (
            lambda: vector.make(pufferlib.env_creator("breakout"), num_envs=2, backend="Serial"),
            "must be in C with vec.backend native, or of Gymnasium or PettingZoo, got Serial of another",
        ),
    ],
)
def test_batches_whose_games_cannot_be_restarted_are_refused(make, message):
    with pytest.raises(pufferlib.APIUsageError, match=rf"train\.restart_share: .*{message}"):
        make_curriculum(make(), 4, CONFIG)


def test_without_a_share_there_is_none():
    assert make_curriculum(None, 4, TrainConfig()) is None


def test_an_environment_that_is_no_plain_data_says_what_to_define():
    class Iterating(FunctionEnv):
        def reset(self, **others):
            self.iterator = iter([1])
            return super().reset(**others)

    creator = functools.partial(GymnasiumPufferEnv, env_creator=Iterating)
    with vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step") as vecenv:
        vecenv.reset(seed=1)
        curriculum = make_curriculum(vecenv, 1, CONFIG)
        curriculum.begin_rollout()
        with pytest.raises(
            pufferlib.APIUsageError,
            match=r"train\.restart_share: .* leave it out, or: .*Iterating must be .*define save_state",
        ):
            curriculum.look(0)


def test_gymnasium_is_restarted_in_its_own_state():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    with vector.make(creator, num_envs=2, backend="Serial", autoreset="same_step") as vecenv:
        vecenv.reset(seed=1)
        curriculum = make_curriculum(vecenv, 1, dataclasses.replace(CONFIG, restart_states=1))
        curriculum.begin_rollout()
        curriculum.look(0)
        curriculum.learn(torch.ones(1, 2))
        first = vecenv.observations.copy()
        for _ in range(9):
            vecenv.step([0, 0])
        curriculum.restart(np.array([True, False]))
        assert (vecenv.observations[0] == first).all(1).any()
