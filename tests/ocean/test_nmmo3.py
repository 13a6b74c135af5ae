"""Observations of nmmo3. tests/native/nmmo3_rules.c tests its rules."""

import numpy as np
import pytest
import torch

import pufferlib
from pufferlib import ocean, registry
from pufferlib.models import make_policy

DOWN, UP, RIGHT, LEFT, STAY = range(5)
VIEW = 11 * 15 * 10
CARDINALITIES = (4, 4, 15, 6, 3, 5, 5, 5, 7, 4)
TERRAIN, ITEM, KIND, LEVEL, TILE_HP = 1, 2, 4, 6, 7
NOBODY, PLAYER, ENEMY = range(3)
WATER = 3
FACING, HP, PATIENCE = VIEW + 3, VIEW + 5, VIEW + 42


def make(**kwargs):
    env = ocean.Nmmo3(**{"num_envs": 1, "seed": 1, "teleport_chance": 0, **kwargs})
    env.reset()
    return env


def tiles(env):
    """Return the observed tiles, shape ``(agents, rows, columns, codes)``."""
    return env.observations[:, :VIEW].reshape(-1, 11, 15, 10)


def test_world_depends_on_the_seed():
    first, same, other = (make(seed=seed).observations for seed in (7, 7, 8))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_codes_are_below_their_cardinalities():
    env = make(num_envs=32)
    rng = np.random.default_rng(0)
    highest = np.zeros(10, int)
    for _ in range(200):
        env.step(rng.integers(0, 26, env.num_agents))
        highest = np.maximum(highest, tiles(env).max(axis=(0, 1, 2)))
    assert (highest < CARDINALITIES).all()
    assert (highest[[0, TERRAIN, KIND]] == [3, WATER, ENEMY]).all()


def test_players_see_each_other_and_themselves_in_the_middle():
    env = make(num_players=64, num_enemies=0)
    assert (tiles(env)[:, 5, 7, KIND] == PLAYER).all()
    assert (tiles(env)[..., KIND] == PLAYER).sum() > 64
    assert (tiles(env)[..., KIND] != ENEMY).all()


def test_view_moves_with_the_player():
    env = make(num_players=1, num_enemies=0)
    shifts = {DOWN: (1, 0), UP: (-1, 0), RIGHT: (0, 1), LEFT: (0, -1)}
    rng = np.random.default_rng(0)
    moved = 0
    for action in rng.integers(0, 4, 300):
        before = tiles(env)[0].copy()
        env.step([action])
        after = tiles(env)[0]
        assert env.observations[0, FACING] == action
        rows, columns = shifts[action]
        goal = before[5 + rows, 7 + columns]
        if goal[TERRAIN] >= 2:
            assert np.array_equal(before[..., :4], after[..., :4])
            continue
        moved += 1
        there = after[max(0, -rows) : 11 - max(0, rows), max(0, -columns) : 15 - max(0, columns)]
        was = before[max(0, rows) : 11 - max(0, -rows), max(0, columns) : 15 - max(0, -columns)]
        assert np.array_equal(there[..., :2], was[..., :2]), "terrain must not change"
        assert (after[..., KIND] != NOBODY).sum() == 1
        assert (after[..., KIND:].any(axis=-1)).sum() == 1
    assert moved > 100


def test_edge_of_the_world_is_water():
    env = make(num_players=32, width=32, height=32, num_enemies=0)
    for action in (UP, LEFT, DOWN, RIGHT):
        for _ in range(40):
            env.step([action + 22] * 32)
    assert (tiles(env)[..., TERRAIN] == WATER).any()
    assert (tiles(env)[:, 5, 7, TERRAIN] < 2).all(), "players must not walk on water"


def test_patience_truncates_and_death_is_terminal():
    env = make(num_players=4, num_enemies=0, patience=5, log_interval=5)
    for step in range(1, 11):
        *_, terminals, truncations, infos = env.step([STAY] * 4)
        assert truncations.all() == truncations.any() == (step % 5 == 0)
        assert not terminals.any()
        if step % 5 == 0:
            assert (env.final_observations[:, PATIENCE] == 255).all()
            assert (env.observations[:, PATIENCE] == 0).all()
            assert (infos[0]["n"], infos[0]["episode_length"], infos[0]["score"]) == (4, 5, 1)
    env = make(num_envs=16, num_enemies=50, reward_death=-3)
    deaths = 0
    for _ in range(200):
        _, rewards, terminals, truncations, _ = env.step([STAY] * env.num_agents)
        assert (rewards[terminals] == -3).all()
        assert (env.final_observations[terminals, HP] == 0).all()
        assert (env.observations[terminals, HP] == 99).all()
        assert not truncations.any()
        deaths += terminals.sum()
    assert deaths > 20


def test_too_many_players_for_a_map_are_refused():
    with pytest.raises(pufferlib.APIUsageError, match=r"must leave 8 tiles to each.*num_players=500"):
        ocean.Nmmo3(num_players=500)


def test_map_supports_a_thousand_players():
    env = make(num_players=1024, width=512, height=512)
    assert env.num_agents == 1024
    env.step(np.arange(1024) % 26)
    assert (tiles(env)[:, 5, 7, KIND] == PLAYER).all()
    env.close()


@pytest.fixture
def policy():
    return make_policy(make(), "NMMO3", hidden_size=16, more=registry.policies("nmmo3"))


def empty_view():
    """Return an observation, and a view of its tiles, in which only the player is visible."""
    rows = torch.from_numpy(make().observations[:1].copy())
    view = rows[:, :VIEW].view(11, 15, 10)
    me = view[5, 7].clone()
    view[:] = 0
    view[5, 7] = me
    return rows, view


THINGS = {
    **{f"item {item}": {ITEM: item} for item in (6, 7, 11, 12, 13, 14)},
    **{f"enemy {level}": {KIND: ENEMY, LEVEL: level} for level in range(5)},
    "player": {KIND: PLAYER},
}


def test_nmmo3_policy_distinguishes_the_nearest_objects(policy):
    seen = {}
    for name, codes in THINGS.items():
        for row, column in ((5, 3), (5, 11), (1, 7), (10, 14)):
            rows, view = empty_view()
            for code, value in codes.items():
                view[row, column, code] = value
            seen[name, row, column] = policy.encode_observations(rows)[0]
            for code, value in codes.items():
                view[0, 0, code] = value  # a second one, farther away
            assert torch.equal(policy.encode_observations(rows)[0], seen[name, row, column])
    values = torch.stack(list(seen.values()))
    assert len(values.unique(dim=0)) == len(seen)


def test_nmmo3_policy_uses_the_health_of_enemies(policy):
    rows, view = empty_view()
    view[5, 3, KIND] = ENEMY
    values = []
    for hp in range(5):
        view[5, 3, TILE_HP] = hp
        values.append(policy.forward_eval(rows)[1].item())
    assert len(set(values)) == 5


def test_nmmo3_policy_scores_inventory_keys_by_their_items(policy):
    sword, helm = 4, 1
    rows, _ = empty_view()
    rows = rows.repeat(2, 1)
    bag, actions = slice(VIEW + 18, VIEW + 30), slice(8, 20)
    rows[0, bag][:2] = torch.tensor([sword, helm])
    rows[1, bag][:2] = torch.tensor([helm, sword])
    with torch.no_grad():
        policy.decoder.weight[: policy.distribution.num_params] = (
            0  # removes the part of the logits that does not depend on items
        )
    logits = policy.forward_eval(rows)[0]
    assert torch.allclose(logits[0, 8:10], logits[1, 8:10].flip(0))
    assert logits[0, 8] != logits[0, 9]
    chosen = logits.softmax(-1)[:, actions]
    assert (chosen[:, :2] > 0).all()
    assert (chosen[:, 2:] == 0).all()  # empty slots


def test_nmmo3_policy_allows_all_inventory_keys_on_the_market(policy):
    rows, _ = empty_view()
    rows[:, VIEW + 8] = 1
    assert (policy.forward_eval(rows)[0].softmax(-1)[:, 8:20] > 0).all()
