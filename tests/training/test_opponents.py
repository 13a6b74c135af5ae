"""Tests of self-play training: the opponent pool, ratings, masked rows and resumed runs."""

import itertools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from pufferlib import ocean, vector
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import make_policy
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.settings.config import SelfplayConfig, load_config
from pufferlib.training import ppo
from pufferlib.training.opponent_pool import FIRST_RATING, Opponent, OpponentPool, expected_score
from pufferlib.training.opponents import Opponents, first_side_scores, games_of
from pufferlib.training.trainer import Trainer
from pufferlib.wrappers.vector import VectorWrapper
from tests.tiers import once
from tests.training.ranks import in_threads

TINY = {
    "env.players": 2,
    "env.num_envs": 16,
    "selfplay.opponents": 2,
    "selfplay.snapshot_interval": 1,
    "selfplay.pool_size": 3,
    "policy.hidden_size": 16,
    "train.horizon": 16,
    "train.minibatch_size": 256,
    "train.total_timesteps": 1_000_000,
    "train.device": "cpu",
    "train.num_threads": 1,
}


def trainer_of(folder, **settings):
    folder.mkdir(exist_ok=True)
    return Trainer(load_config("connect4", {**TINY, **settings}), folder)


@pytest.fixture
def trainer(tmp_path):
    made = trainer_of(tmp_path)
    yield made
    made.close()


class HighestNumber(ParallelEnv):
    """Game of four steps in which two agents name numbers. The higher number in the last step wins."""

    def __init__(self, leaves=False):
        self.metadata = {"name": "highest_number"}
        self.possible_agents, self.agents = ["a", "b"], []
        self.leaves, self.steps = leaves, 0

    def observation_space(self, agent):
        return Box(0, 4, (1,), np.float32)

    def action_space(self, agent):
        return Discrete(3)

    def reset(self, seed=None, options=None):
        self.agents, self.steps = list(self.possible_agents), 0
        return {agent: np.zeros(1, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions):
        self.steps += 1
        seen, lead = list(self.agents), int(actions.get("a", 0)) - int(actions.get("b", 0))
        ended = {agent: self.steps == 4 or (self.leaves and agent == "a" and self.steps == 2) for agent in seen}
        rewards = {agent: float(np.sign(lead) * (1 if agent == "a" else -1)) * ended[agent] for agent in seen}
        self.agents = [agent for agent in seen if not ended[agent]]
        rows = {agent: np.full(1, self.steps, np.float32) for agent in seen}
        return rows, rewards, ended, dict.fromkeys(seen, False), {agent: {} for agent in seen}


def pool_naming(number):
    """Return a pool whose only opponent always names ``number``."""

    class Namer:
        def __init__(self):
            self.number, self.updates, self.rating, self.device = 0, 0, FIRST_RATING, torch.device("cpu")

        def act(self, observations, state, generator):
            return np.full(len(observations), number)

    pool = OpponentPool(SelfplayConfig(opponents=1, share=1.0, elo_k=0.0), seed=0)
    pool.join(Namer())
    pool.draw()
    return pool


class NoMemory:
    def initial_state(self, rows):
        return {}


def numbers_game(pool, games, **options):
    def make(**kwargs):
        return PettingZooPufferEnv(HighestNumber(**options), **kwargs)

    vecenv = vector.make(make, num_envs=games, backend="Serial", autoreset="same_step")
    return Opponents(vecenv, pool, NoMemory(), seed=0)


# ---- Ratings ------------------------------------------------------------------------------------------------


def test_ratings_follow_elo_formula():
    assert expected_score(1000, 1000) == 0.5
    assert expected_score(1400, 1000) == pytest.approx(10 / 11)
    pool = OpponentPool(SelfplayConfig(opponents=1, elo_k=32), seed=0)
    for number, rating in enumerate((1613.0, 1609.0, 1477.0)):
        pool.join(Opponent(number, 0, rating, load_policy()))
    pool.rating = 1613.0
    pool.record(0, 1)  # against an equal opponent
    assert pool.rating == 1613 + 16
    assert pool[0].rating == 1613 - 16
    before = pool.rating
    pool.record(2, 0)
    assert pool.rating == pytest.approx(before - 32 / (1 + 10 ** ((1477 - before) / 400)))


def test_ranks_share_games_and_ratings():
    policy = load_policy()

    def rate(ranks):
        pool = OpponentPool(SelfplayConfig(opponents=1, elo_k=32), seed=ranks.rank)
        pool.join(Opponent(0, 0, FIRST_RATING, policy))
        for score in [(1, 1), (0,)][ranks.rank]:
            pool.record(0, score)
        own = pool.rating - FIRST_RATING
        metrics = pool.pop_metrics(ranks)
        pool.add(policy, 1)
        pool.record(1, 0.5)
        resumed = OpponentPool(pool.config, seed=7)
        resumed.load_state_dict(pool.state_dict(), policy)
        metrics["selfplay/later_games"] = resumed.pop_metrics(ranks)["selfplay/games"]
        return own, [resumed.rating, *(member.rating for member in resumed.members)], metrics

    (first, ratings, metrics), (second, *others) = in_threads(rate)
    assert ratings == pytest.approx([1000 + first + second, 1000 - first - second, 1000 + first + second])
    assert others == [ratings, metrics]
    assert (metrics["selfplay/games"], metrics["selfplay/later_games"]) == (3, 2)
    assert metrics["selfplay/win_rate"] == pytest.approx(2 / 3)


def test_ranks_resumed_from_one_process_count_its_games_once():
    policy = load_policy()
    pool = OpponentPool(SelfplayConfig(opponents=1, elo_k=32), seed=0)
    pool.join(Opponent(0, 0, FIRST_RATING, policy))
    pool.record(0, 1)
    pool.pop_metrics()

    def resume(ranks):
        resumed = OpponentPool(pool.config, seed=ranks.rank)
        resumed.load_state_dict(pool.state_dict(), policy)
        resumed.pop_metrics(ranks)
        return [resumed.rating, *(member.rating for member in resumed.members)]

    assert in_threads(resume) == [pytest.approx([FIRST_RATING + 16, FIRST_RATING - 16])] * 2


def load_policy():
    return make_policy(ocean.Connect4(players=2), "Default", 8, 1, "none")


def test_first_side_scores_compare_final_rewards():
    rewards = np.array([[1, -1], [-1, 1], [0, 0], [1, -1], [-0.1, 0]], np.float32)
    cut_off = np.array([False, False, False, True, False])
    assert first_side_scores(rewards, cut_off).tolist() == [1, 0, 0.5, 0.5, 0]
    teams = np.array([[1, 1, -1, -1], [3, -1, 1, 0.5]], np.float32)
    assert first_side_scores(teams, np.zeros(2, bool)).tolist() == [1, 1]


@pytest.mark.parametrize(("draw", "expected"), [("newest", {5}), ("uniform", {0, 1, 2, 3, 4, 5}), ("elo", {3, 4})])
def test_draw_setting_selects_opponents(draw, expected):
    pool = OpponentPool(SelfplayConfig(opponents=1, share=1.0, draw=draw), seed=0)
    policy = load_policy()
    for number, rating in enumerate((-2000, -2000, -2000, 1000, 1000, -2000)):
        pool.join(Opponent(number, number, float(rating), policy))
    seen = set()
    for _ in range(60):
        pool.draw()
        seen |= set(pool.assign(10).tolist())
    assert seen == expected


def test_pool_assigns_share_of_games_and_drops_oldest():
    pool = OpponentPool(SelfplayConfig(opponents=3, share=0.25, pool_size=4), seed=0)
    assert pool.assign(5).tolist() == [-1] * 5
    policy = load_policy()
    for updates in range(6):
        pool.add(policy, updates)
    pool.draw()
    pool.forget({0})
    assert [member.updates for member in pool.members] == [2, 3, 4, 5]
    assert pool[0].updates == 0  # a running game still uses it
    pool.forget(())
    with pytest.raises(KeyError):
        pool[0]
    drawn = pool.assign(4000)
    assert 900 < np.sum(drawn >= 0) < 1100
    assert len(set(drawn.tolist())) == 4


# ---- Games --------------------------------------------------------------------------------------------------


def play(vecenv, steps, action):
    """Step with the same ``action`` for every agent.

    Yields:
        Masks, opponent numbers and sides before each step, and the episode ends of the step.
    """
    vecenv.reset(seed=0)
    for _ in range(steps):
        before = vecenv.transitions.masks.copy()
        numbers, sides = vecenv.numbers.copy(), vecenv.sides.copy()
        _, _, terminals, truncations, _ = vecenv.step(np.full(vecenv.num_agents, action))
        yield before, numbers, sides, (terminals | truncations).copy()


@pytest.mark.parametrize(("named", "score"), [(0, 1.0), (1, 0.5), (2, 0.0)])
def test_opponent_acts_for_its_side(named, score):
    with numbers_game(pool_naming(named), 40) as vecenv:
        masks = [before for before, *_ in play(vecenv, 8, 1)]
        assert all(before.all() for before in masks[:4])  # the first games have no opponent
        hidden = ~masks[4].reshape(40, 2)
        assert (hidden.sum(1) == 1).all()
        assert 10 < hidden[:, 0].sum() < 30  # opponents play on either side
        assert [kept for _, kept in vecenv.pool.scores] == [score] * 40


def test_opponents_change_only_between_games(trainer):
    for _ in range(4):
        trainer.step()
    games, changes = trainer.vecenv, 0
    for before, numbers, sides, ends in itertools.islice(play(games, 200, 3), 60, None):
        over = ends.reshape(-1, 2).all(1)
        changed = (numbers != games.numbers) | (sides != games.sides)
        assert not (changed & ~over).any()
        hidden = np.zeros((16, 2), bool)
        faced = np.flatnonzero(numbers >= 0)
        hidden[faced, sides[faced]] = True
        np.testing.assert_array_equal(before, ~hidden.ravel())
        changes += changed.sum()
    assert changes > 10


def test_game_ends_with_last_agent():
    with numbers_game(pool_naming(0), 10, leaves=True) as vecenv:
        ends = [ends.reshape(10, 2) for *_, ends in play(vecenv, 12, 1)]
        assert [each.sum() for each in ends[4:8]] == [0, 10, 0, 10]
        assert len(vecenv.pool.scores) == 20  # two games per environment after the first one


def test_rows_of_opponents_are_not_learned_from(tmp_path, monkeypatch):
    weights, update = [], ppo.update
    for garbage in (0, 7):
        trainer = trainer_of(tmp_path / str(garbage), **{"selfplay.share": 1.0})
        for _ in range(3):
            trainer.step()

        def update_with_garbage(network, optimizer, rollout, advantages, *others, garbage=garbage):
            hidden = ~rollout.masks
            assert hidden.float().mean() > 0.3
            for values in (rollout.observations, rollout.log_probs, rollout.values[:-1], advantages):
                values[hidden] += garbage
            rollout.actions[hidden] = garbage % 3
            return update(network, optimizer, rollout, advantages, *others)

        monkeypatch.setattr(ppo, "update", update_with_garbage)
        metrics = trainer.step()
        monkeypatch.undo()
        assert metrics["agent_steps"] < 4 * 512
        weights.append([parameter.clone() for parameter in trainer.policy.parameters()])
        trainer.close()
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))


@pytest.mark.parametrize("memory", once(["none", "LSTM"], ["LSTM"]))
@pytest.mark.parametrize("overlap", ["none", "learning"])
def test_resumed_run_restores_pool_exactly(tmp_path, memory, overlap):
    settings = {"policy.memory": memory, "train.overlap": overlap, "train.minibatch_size": 256}
    first = trainer_of(tmp_path / "first", **settings)
    for _ in range(5):
        first.step()
    first.save()
    expected = [first.step() for _ in range(3)][-1]
    second = trainer_of(tmp_path / "second", **settings)
    assert second.restore(Run.at(tmp_path / "first").checkpoint)
    metrics = [second.step() for _ in range(3)][-1]
    for key, value in expected.items():
        if not key.startswith(("performance/", "sps", "uptime")):
            assert metrics[key] == value, key
    assert all(map(torch.equal, first.policy.state_dict().values(), second.policy.state_dict().values()))
    assert any(each.startswith("selfplay/win_rate") for each in metrics)
    first.close()
    second.close()


def test_pool_of_earlier_version_is_restored(tmp_path, monkeypatch):
    """Earlier versions stored the pool beside the states of callbacks."""
    settings = {"selfplay.snapshot_interval": 4}
    first = trainer_of(tmp_path / "first", **settings)
    for _ in range(5):
        first.step()
    read = checkpoint.read_state

    def read_earlier(path, device):
        contents = read(path, device)
        return {**contents, "opponents": contents.pop("callbacks")["SelfPlay"]}

    monkeypatch.setattr(checkpoint, "read_state", read_earlier)
    first.save()
    second = trainer_of(tmp_path / "second", **settings)
    second.restore(Run.at(tmp_path / "first").checkpoint)
    assert [member.updates for member in second.vecenv.pool.members] == [0, 4]
    second.step()
    first.close()
    second.close()


def test_empty_pool_takes_a_snapshot_at_any_update(tmp_path):
    trainer = trainer_of(tmp_path, **{"selfplay.snapshot_interval": 4})
    trainer.vecenv.end_rollout(trainer.policy, updates=5)
    assert [member.updates for member in trainer.vecenv.pool.members] == [5]
    trainer.close()


def test_rating_rises_during_training(tmp_path):
    settings = {"env.num_envs": 128, "selfplay.snapshot_interval": 5, "policy.hidden_size": 64, "train.horizon": 32}
    trainer = trainer_of(tmp_path, **settings, **{"train.minibatch_size": 2048, "selfplay.elo_k": 8})
    metrics = [trainer.step() for _ in range(30)]
    trainer.close()
    assert metrics[1]["selfplay/elo"] - FIRST_RATING < 60
    assert metrics[-1]["selfplay/elo"] > FIRST_RATING + 120


# ---- Refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"env.players": 1},
            "both sides of a game must be agents, got 1 in each game of connect4; add --env.players 2",
        ),
        ({"train.restart_share": 0.5}, "selfplay.opponents and train.restart_share exclude each other"),
    ],
)
def test_incompatible_settings_raise(tmp_path, settings, message):
    with pytest.raises(APIUsageError, match=message):
        trainer_of(tmp_path, **settings)


def test_vecenv_is_not_wrapped_without_opponents(tmp_path):
    trainer = trainer_of(tmp_path, **{"selfplay.opponents": 0})
    assert not isinstance(trainer.vecenv, VectorWrapper)
    assert games_of(trainer.vecenv) == 16
    trainer.close()
