"""Rules of moba that observations show. tests/native/moba_rules.c tests the others."""

import numpy as np
import pytest

from pufferlib import ocean, registry
from pufferlib.models import make_policy

CELLS = 11 * 11 * 4
IS_DIRE = CELLS + 16
STILL = [3, 3, 0, 0, 0, 0]
X, Y, LEVEL, HP, MANA, DAMAGE, SPEED = range(CELLS, CELLS + 7)
GROUND, WALL, OWN_CREEP, OWN_TOWER, OWN_SUPPORT, NEUTRAL, CREEP, TOWER, SUPPORT = 0, 15, 30, 45, 60, 135, 150, 165, 180
WAVE_TICKS = 150


def start(**kwargs):
    env = ocean.Moba(num_envs=1, **kwargs)
    return env, env.reset(seed=3)[0]


def view(row):
    """Return code, life, mana and level of the cells around a hero."""
    return row[:CELLS].reshape(11, 11, 4)


def walk(env, down, right, ticks):
    for _ in range(ticks):
        env.step([[down, right, 0, 0, 0, 0]] * env.num_agents)


def test_script_opponents_decides_between_five_and_ten_agents():
    assert start()[0].num_agents == 5
    env, rows = start(script_opponents=False)
    assert rows.shape == (10, 510)
    assert env.single_action_space.nvec.tolist() == [7, 7, 3, 2, 2, 2]


def test_hero_sees_itself_in_the_middle():
    _, rows = start()
    for role, row in enumerate(rows):
        assert view(row)[5, 5].tolist() == [OWN_SUPPORT + 15 * role, 255, 255, 8]
        assert row[[LEVEL, HP, MANA, SPEED]].tolist() == [8, 255, 255, 64]
        assert row[CELLS + 17 : CELLS + 22].tolist() == [255 * (i == role) for i in range(5)]
        assert row[IS_DIRE] == 0
    assert rows[:, DAMAGE].tolist() == [60 // 4] * 3 + [65 // 4, 75 // 4]


def test_friends_are_visible_at_their_positions():
    _, rows = start()
    support, assassin = rows[0], rows[1]
    across = (int(assassin[X]) - int(support[X])) // 2
    down = (int(assassin[Y]) - int(support[Y])) // 2
    assert view(support)[5 + down, 5 + across, 0] == OWN_SUPPORT + 15
    assert view(assassin)[5 - down, 5 - across, 0] == OWN_SUPPORT


def test_empty_cells_have_zero_life_mana_and_level():
    _, rows = start()
    codes = view(rows[0])[..., 0]
    empty = view(rows[0])[(codes == GROUND) | (codes == WALL)]
    assert (codes == WALL).any()
    assert not empty[:, 1:].any()


def test_starting_places_are_random():
    env, _ = start()
    places = {tuple(env.reset(seed=seed)[0][0, [X, Y]]) for seed in range(40)}
    assert len(places) == 5


def test_dire_sees_the_mirror_image_of_radiant():
    _, rows = start(script_opponents=False)
    expected = rows[:5].copy()
    expected[:, IS_DIRE] = 255
    np.testing.assert_array_equal(rows[5:], expected)


def test_dire_moves_in_the_mirror_image_of_radiant():
    env, rows = start(script_opponents=False)
    for down, right in [(0, 3), (3, 6), (1, 5), (2, 2)]:
        walk(env, down, right, 3)
        np.testing.assert_array_equal(rows[5:, [X, Y]], rows[:5, [X, Y]])


def test_only_valid_velocities_move_a_hero():
    env, rows = start()
    x, y = rows[0, [X, Y]].astype(int)
    env.step([[0, 3, 0, 0, 0, 0], *[STILL] * 4])
    assert rows[0, [X, Y]].tolist() == [x, y - 2]
    env.step([[-1, 7, 9, -3, 5, 2], *[STILL] * 4])
    assert rows[0, [X, Y]].tolist() == [x, y - 2]
    env.step([[3, 6, 0, 0, 0, 0], *[STILL] * 4])
    assert rows[0, [X, Y]].tolist() == [x + 2, y - 2]


def test_agent_speed_is_the_length_of_a_step():
    env, rows = start(agent_speed=2)
    y = int(rows[3, Y])
    walk(env, 0, 3, 2)
    assert y - rows[3, Y] == 8
    assert rows[3, SPEED] == 128


def test_reward_distance_pays_per_cell():
    env, rows = start(reward_distance=0.5)
    first_x, first_y = rows[0, [X, Y]].astype(int) // 2
    total = 0.0
    for _ in range(20):
        env.step([[0, 6, 0, 0, 0, 0]] * 5)
        total += float(env.rewards[0])
    x, y = rows[0, [X, Y]].astype(int) // 2
    assert total == pytest.approx(0.5 * ((x - first_x) + (first_y - y)))
    assert rows[0, CELLS + 24] == 255
    env.step([STILL] * 5)
    assert rows[0, CELLS + 24] == 0


def test_creeps_of_both_sides_meet_in_the_middle():
    env, rows = start()
    for _ in range(60):  # walk to the tower of tier 3 in the middle lane
        env.step([[0, 6, 0, 0, 0, 0]] * 5)
    seen = set()
    for _ in range(2 * WAVE_TICKS):
        env.step([STILL] * 5)
        seen |= set(np.unique(rows[:, :CELLS].reshape(5, 121, 4)[..., 0]))
    assert {GROUND, WALL, OWN_CREEP} <= seen
    assert seen <= set(range(0, 255, 15))


def test_ability_costs_mana_and_has_a_cooldown():
    env, rows = start()
    env.step([STILL, STILL, STILL, [3, 3, 0, 0, 1, 0], STILL])
    assert rows[3, MANA] == 255 * 150 // 250
    assert rows[3, CELLS + 11] == 2 * 70


def test_heroes_that_stay_at_home_lose():
    env = ocean.Moba(num_envs=4, max_ticks=20_000, log_interval=1, script_opponents=True)
    env.reset(seed=0)
    infos, ended = [], np.zeros(20, bool)
    for _ in range(20_000):
        infos = env.step([STILL] * 20)[4]
        if infos:
            ended = env.terminals.copy()
            break
    assert ended.sum() >= 5
    assert ended.reshape(4, 5).any(axis=1).tolist() == ended.reshape(4, 5).all(axis=1).tolist()
    assert infos[0]["score"] == infos[0]["perf"] == 0
    assert infos[0]["towers_lost"] >= 6


def test_max_ticks_truncates():
    env, _ = start(max_ticks=50, log_interval=1)
    for _ in range(49):
        assert env.step([STILL] * 5)[4] == []
        assert not env.truncations.any()
    infos = env.step([STILL] * 5)[4]
    assert env.truncations.all()
    assert not env.terminals.any()
    assert (infos[0]["score"], infos[0]["perf"], infos[0]["level"], infos[0]["n"]) == (0.5, 0, 1, 1)


def test_moba_policy_distinguishes_units_and_cells():
    import torch

    env, rows = start()
    policy = make_policy(env, "Moba", hidden_size=16, more=registry.policies("moba"))
    row = torch.from_numpy(rows[:1]).clone()
    seen = set()
    for cell in (3, 57):
        for code in (GROUND, WALL, OWN_CREEP, OWN_TOWER, OWN_SUPPORT, NEUTRAL, CREEP, TOWER, SUPPORT):
            row[0, 4 * cell] = code
            params, values = policy.forward_eval(row)
            seen.add(values.item())
        row[0, 4 * cell] = GROUND
    assert params.shape == (1, 7 + 7 + 3 + 2 + 2 + 2)
    assert len(seen) == 1 + 2 * 8  # ground gives the same value in both cells
    here = policy.forward_eval(row)[1].item()
    row[0, X] += 64
    assert policy.forward_eval(row)[1].item() != here
