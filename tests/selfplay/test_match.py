"""Tests of matches between agents."""

import shutil

import numpy as np
import pytest

import pufferlib.selfplay
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.selfplay.entrants import enter, game_of
from pufferlib.selfplay.games import Arena


def test_match_depends_on_seed_and_not_on_order(runs):
    agents = [runs / "old", runs / "new", "random"]
    table = pufferlib.selfplay.match(agents, games=10, seed=3)
    turned = pufferlib.selfplay.match(agents[::-1], games=10, seed=3)
    assert table.names == ("old", "new", "random")
    np.testing.assert_array_equal(table.wins, turned.wins[::-1, ::-1])
    np.testing.assert_array_equal(table.draws, turned.draws[::-1, ::-1])
    others = [pufferlib.selfplay.match(agents[:2], games=10, seed=seed).wins[1, 0] for seed in (3, 4, 5, 6)]
    assert others[0] == table.wins[1, 0]  # independent of other entrants
    assert len(set(others)) > 1


def test_trained_agent_wins_and_is_rated_higher(runs):
    table = pufferlib.selfplay.match([runs / "old", runs / "new"], games=40)
    assert table.games.tolist() == [40, 40]
    assert table.wins[1, 0] > 25
    ratings, _ = table.ratings()
    assert ratings[1] > ratings[0] + 50
    lines = str(table).splitlines()
    assert lines[0].split() == ["Elo", "score", "1", "2"]
    assert lines[1].split()[:2] == ["1", "new"]
    assert f"{table.wins[1, 0]}-{table.draws[0, 1]}-{table.wins[0, 1]}" in lines[1]


def test_agents_alternate_sides(runs):
    """If both agents always choose the leftmost column of connect4, the result depends only on who moves first."""
    old, new = enter("test", [str(runs / "old"), str(runs / "new")])
    arena = Arena("test", game_of("test", [old, new]), greedy=True)
    for entrant in (old, new):
        arena.load(entrant)
        for name, weights in arena.policies[entrant.identity].named_parameters():
            weights.data.zero_()
            if name.endswith("decoder.bias"):
                weights.data[0] = 1
    scores = arena.play(old, new, 7, seed=0)  # both fill column after column
    assert len(set(scores[::2])) == len(set(scores[1::2])) == 1
    assert scores[0] == 1 - scores[1]


def test_scripted_opponent_beats_random_play(runs):
    table = pufferlib.selfplay.match(["random", "scripted", runs / "old"], games=6)
    assert table.wins[1].tolist() == [6, 0, 6]


def test_first_game_is_recorded(runs, tmp_path):
    pufferlib.selfplay.match([runs / "new", "random"], games=2, video=tmp_path / "game.mp4")
    assert (tmp_path / "game.mp4").stat().st_size > 1000


STRICT = """
import gymnasium
import numpy as np
from pettingzoo import ParallelEnv


class Strict(ParallelEnv):
    # Games of one to nine steps that refuse illegal actions.
    metadata = {"name": "strict"}
    possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return gymnasium.spaces.Dict({"action_mask": gymnasium.spaces.MultiBinary(3)})

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(3, start=1)

    def reset(self, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.agents, self.left = self.possible_agents[:], int(self.random.integers(1, 10))
        return self.observe(), {agent: {} for agent in self.agents}

    def observe(self):
        self.legal = {agent: int(self.random.integers(3)) for agent in self.agents}
        return {agent: {"action_mask": np.eye(3, dtype=np.int8)[legal]} for agent, legal in self.legal.items()}

    def step(self, actions):
        assert actions == {agent: legal + 1 for agent, legal in self.legal.items()}, "illegal action"
        self.left -= 1
        ends, seen = dict.fromkeys(actions, self.left == 0), self.observe()
        if self.left == 0:
            self.agents = []
        return seen, {"a": 1.0, "b": -1.0}, ends, dict.fromkeys(actions, False), {agent: {} for agent in actions}
"""


def test_games_that_are_over_get_legal_actions(tmp_path):
    (tmp_path / "strict.py").write_text(STRICT)
    small = {"vec.backend": "Serial", "vec.num_envs": 2, "train.device": "cpu", "policy.hidden_size": 8}
    small |= {"train.total_timesteps": 64, "train.horizon": 16, "eval.episodes": 1}
    done = pufferlib.train(tmp_path / "strict.py", small, runs=tmp_path / "runs")
    table = pufferlib.selfplay.match([done.run.folder, "random"], games=20)  # four more than are played at once
    assert (table.wins + table.wins.T)[0, 1] == 20


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        (["old", "squared"], "all entrants must play the same game, got old of connect4 and squared of squared"),
        (["old", "shallow"], "the same game, got old with depth 4 and shallow with 2; remove one"),
        (["old", "copy"], "entrants must have different weights, got the same in .*old.* and .*copy"),
        (["old"], "at least two agents and one game must be given, got 1 and 100"),
    ],
)
def test_invalid_entrants_raise(runs, tmp_path, agents, message):
    for name in ("old", "copy", "shallow", "squared"):
        shutil.copytree(runs / ("old" if name != "shallow" else "new"), tmp_path / name)
    change(tmp_path / "shallow", "players = 2", "players = 2\ndepth = 2")
    change(tmp_path / "squared", 'env_name = "connect4"', 'env_name = "squared"')
    if "squared" in agents:  # raised before weights are loaded, so any other weights will do
        shutil.rmtree(tmp_path / "squared" / "checkpoints")
        shutil.copytree(runs / "new" / "checkpoints", tmp_path / "squared" / "checkpoints")
    with pytest.raises(APIUsageError, match=message):
        pufferlib.selfplay.match([tmp_path / agent for agent in agents])


def change(run, before, after):
    text = (run / "config.toml").read_text()
    assert before in text
    (run / "config.toml").write_text(text.replace(before, after))


def test_missing_agent_raises(tmp_path):
    with pytest.raises(UsageError, match="'absent' is not a run, a checkpoint or an environment"):
        pufferlib.selfplay.match(["absent", "random"], runs=tmp_path)
    with pytest.raises(APIUsageError, match="at least one entrant must be a trained agent"):
        pufferlib.selfplay.match(["scripted", "random"], runs=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("squared", "both sides of a game must be agents, got 1 in each game of squared"),
        ("snake", "agents of snake that end one by one"),
    ],
)
def test_match_in_game_without_two_sides_raises(name, message, tmp_path):
    with pytest.raises(APIUsageError, match=message):
        pufferlib.selfplay.match([name, "random"], games=2, runs=tmp_path)
