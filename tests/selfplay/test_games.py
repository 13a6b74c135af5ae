"""Tests of self-play training and matches in every two-sided game."""

import numpy as np
import pytest

import pufferlib.selfplay
from pufferlib import registry
from pufferlib.settings.config import load_config
from pufferlib.training.opponents import games_of
from pufferlib.training.trainer import Trainer
from tests.needs import missing_binding

OCEAN = {
    "connect4": {},
    "tripletriad": {},
    "tactical": {"hp": 300},
    "go": {"grid_size": 5, "moves_per_point": 1},
    "moba": {"max_ticks": 60},
}
SLOW = {"tactical", "moba"}
BINDINGS = {"openspiel/tic_tac_toe": {}, "slimevolley/SlimeVolley-v0": {"max_episode_steps": 40}}
TINY = {
    "selfplay.opponents": 2,
    "selfplay.share": 1.0,
    "selfplay.snapshot_interval": 1,
    "policy.hidden_size": 8,
    "train.horizon": 64,
    "train.minibatch_size": 100_000,
    "train.update_epochs": 1,
    "train.device": "cpu",
    "train.num_threads": 1,
}


def settings_of(name, env):
    games = {"env.num_envs": 8} if name in OCEAN else {"vec.backend": "Serial", "vec.num_envs": 4}
    keywords = {**registry.both_sides(name), **env}
    return load_config(name, {**TINY, **games, **{f"env.{key}": value for key, value in keywords.items()}})


def games(names):
    for name, env in names.items():
        binding, _, game = name.partition("/")
        reason = missing_binding(binding) if game else ""
        marks = [pytest.mark.skip(reason=reason)] if reason else []
        marks += [pytest.mark.all] if name in SLOW else []
        yield pytest.param(name, env, id=name, marks=marks)


@pytest.mark.parametrize(("name", "env"), [*games(OCEAN), *games(BINDINGS)])
def test_two_sided_game_is_trained_with_pool_and_matched(tmp_path, name, env):
    config = settings_of(name, env)
    config.save(tmp_path / "config.toml")
    trainer = Trainer(config, tmp_path)
    assert (trainer.vecenv.num_agents // games_of(trainer.vecenv)) % 2 == 0
    metrics = [trainer.step() for _ in range(6)]
    trainer.save()
    trainer.close()
    assert sum(each.get("selfplay/games", 0) for each in metrics) >= 4
    assert metrics[-1]["agent_steps"] < 6 * config.train.horizon * trainer.vecenv.num_agents
    table = pufferlib.selfplay.match([tmp_path, "random", "scripted"], games=4)
    assert table.games.tolist() == [8, 8, 8]
    turned = pufferlib.selfplay.match(["scripted", "random", tmp_path], games=4)
    np.testing.assert_array_equal(table.wins, turned.wins[::-1, ::-1])


def test_both_sides_returns_keywords():
    assert registry.both_sides("connect4") == {"players": 2}
    assert registry.both_sides("moba") == {"script_opponents": False}
    assert registry.both_sides("openspiel/chess") == {"players": "self"}
    assert registry.both_sides("slimevolley/SlimeVolley-v0") == {"self_play": True}
    assert registry.both_sides("breakout") == registry.both_sides("atari/pong") == {}
