"""OpenSpiel: names, turns, legal actions, rewards, seeds and settings."""

from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import openspiel
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.testing import check_env
from tests.needs import missing_binding

if reason := missing_binding("openspiel"):
    pytest.skip(reason, allow_module_level=True)

import pyspiel

from pufferlib.bindings.openspiel.env import make_env
from pufferlib.bindings.openspiel.match import Match


def test_names_match_loadable_games_with_observations() -> None:
    mean_field = pyspiel.GameType.Dynamics.MEAN_FIELD
    games = {
        game.short_name
        for game in pyspiel.registered_games()
        if game.default_loadable
        and game.dynamics != mean_field
        and (game.provides_observation_tensor or game.provides_information_state_tensor)
    }
    assert set(openspiel.names()) == games - {"crossword"}  # claims to have an observation tensor, but has none


def play(name: str, seed: int, moves: int = 30, **options: Any) -> list[Any]:
    """Return observations and rewards of a player for random legal actions."""
    env = make_env(name, **options)
    rng = np.random.default_rng(0)
    view, _ = env.reset(seed=seed)
    seen: list[Any] = []
    for _ in range(moves):
        seen.append(view["observation"].tobytes())
        view, reward, terminated, _, _ = env.step(rng.choice(np.flatnonzero(view["action_mask"])))
        seen.append(reward)
        if terminated:
            view, _ = env.reset()
    return seen


@pytest.mark.parametrize(
    "name", ["backgammon", "negotiation", "tic_tac_toe"]
)  # explicit chance nodes, sampled chance, no chance
def test_seed_decides_chance_and_opponents(name: str) -> None:
    assert play(name, 1) == play(name, 1)
    assert play(name, 1) != play(name, 2)


def test_rewards_come_at_the_end() -> None:
    env = make_env("tic_tac_toe", seat=0)
    rng = np.random.default_rng(0)
    results = set()
    for seed in range(40):
        view, _ = env.reset(seed=seed)
        terminated, rewards = False, []
        while not terminated:
            view, reward, terminated, _, info = env.step(rng.choice(np.flatnonzero(view["action_mask"])))
            rewards.append(reward)
        assert not any(rewards[:-1])
        assert info == {"won": float(rewards[-1] == 1)}
        assert not view["action_mask"].any()
        results.add(rewards[-1])
    assert results == {-1, 0, 1}


def test_second_seat_starts_after_the_first_move() -> None:
    first, _ = make_env("tic_tac_toe", seat=0).reset(seed=0)
    second, _ = make_env("tic_tac_toe", seat=1).reset(seed=0)
    assert first["action_mask"].sum() == 9
    assert second["action_mask"].sum() == 8


def test_seat_is_random_by_default() -> None:
    env = make_env("tic_tac_toe")
    free = {int(env.reset(seed=seed)[0]["action_mask"].sum()) for seed in range(20)}
    assert free == {8, 9}


def test_illegal_action_counts_as_the_next_legal_one() -> None:
    match = Match("here", "tic_tac_toe", {}, None)
    match.start()
    match.play({0: 8})
    match.play({1: 8})  # taken, so the search continues at 0
    assert str(match.shown("ansi")).split() == ["o..", "...", "..x"]


def test_self_play_ignores_actions_of_waiting_players() -> None:
    env = make_env("tic_tac_toe", players="self")
    views, _ = env.reset(seed=0)
    assert views["player_0"]["action_mask"].all()
    assert np.flatnonzero(views["player_1"]["action_mask"]).tolist() == [0]
    moves = [(0, 8), (8, 4), (1, 8), (8, 5), (2, 8)]  # player_0 fills the first row, and the player who waits sends 8
    for first, second in moves:
        views, rewards, terminations, _, infos = env.step({"player_0": first, "player_1": second})
    assert rewards == {"player_0": 1, "player_1": -1}
    assert all(terminations.values())
    assert infos == {"player_0": {"won": 1.0}, "player_1": {"won": 0.0}}
    assert env.agents == []


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel", "hanabi"])  # turn-based, simultaneous, cooperative
def test_self_play_meets_the_contract(name: str) -> None:
    def make(**kwargs: Any) -> Any:
        return pufferlib.make(f"openspiel/{name}", players="self", **kwargs)

    check_env(make, steps=40)


SLOW = {"bridge_uncontested_bidding"}  # solves each deal before it starts


@pytest.mark.parametrize("name", [name for name in openspiel.names() if name not in SLOW])
def test_every_game_steps(name: str) -> None:
    env = make_env(name)
    view, _ = env.reset(seed=1)
    for _ in range(3):
        assert env.observation_space.contains(view)
        assert view["action_mask"].any()
        view, _, terminated, _, _ = env.step(np.int64(view["action_mask"].argmax()))
        if terminated:
            view, _ = env.reset()


def test_image_shows_the_text_of_the_state() -> None:
    env = make_env("tic_tac_toe", seat=0, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step(np.int64(4))
    assert before.shape == env.render().shape == (480, 960, 3)
    assert (before != env.render()).any()


def test_settings_are_passed_to_openspiel() -> None:
    env = make_env("go", settings={"board_size": 5}, observe="observation", render_mode="ansi")
    assert env.action_space.n == 26
    env.reset(seed=0)
    assert "GoState" in str(env.render())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"settings": {"boardsize": 5}}, UnknownNameError, "did you mean 'board_size'"),
        ({"settings": {"board_size": "x"}}, APIUsageError, "OpenSpiel rejects the settings"),
        ({"observe": "information_state"}, APIUsageError, r"observe must be one of \['observation'\]"),
        ({"players": "selfs"}, APIUsageError, "players must be 'random' or 'self', got 'selfs'"),
        ({"seat": 2}, APIUsageError, "seat must be None or 0 to 1, got 2"),
        ({"seat": 0, "players": "self"}, APIUsageError, "seat must be None with players='self'"),
        ({"render_mode": "human"}, APIUsageError, "render_mode must be None, 'rgb_array' or 'ansi', got 'human'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pufferlib.make("openspiel/go", **options)
