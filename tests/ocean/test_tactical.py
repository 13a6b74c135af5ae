"""Rules of tactical, compared with a Python model."""

import numpy as np
import pytest

from pufferlib import ocean, registry
from pufferlib.models import make_policy
from tests.ocean.tactical_model import (
    ACTIONS,
    AP,
    CELLS,
    END,
    EXPLODE,
    FLY,
    GROUND,
    HP,
    ITSELF,
    MOVE,
    MP,
    OTHER,
    OTHER_AP,
    OTHER_HP,
    OTHER_MP,
    RABBIT,
    ROOT,
    ROOTING,
    STEP,
    SWIFT,
    TURN,
    WALLS,
    WIND,
    Duel,
    cell,
    is_clear,
    places,
    seen_from,
    share,
    steps,
    turned,
    ways,
)
from tests.tiers import once


def two_players(seed=0, **kwargs):
    env = ocean.Tactical(num_envs=1, players=2, seed=seed, **kwargs)
    rows, _ = env.reset()
    return env, rows


def play(env, action):
    """Act with the unit whose turn it is."""
    env.step([action, action])


def actor(rows):
    return int(rows[1, TURN] == 255)


def legal(row):
    return set(np.flatnonzero(row[:ACTIONS]).tolist())


@pytest.mark.parametrize("map", once([1, 2, 3, 4, 5], [1, 3]))
def test_steps_match_a_python_model(map):
    rng = np.random.default_rng(map)
    env, rows = two_players(seed=map, map=map, hp=1000, turn_actions=1000)
    over, turns = 0, []
    duel = Duel(rows, hp=1000)
    for _ in range(250):
        for player in range(2):
            np.testing.assert_array_equal(rows[player], duel.row(player))
        choices = sorted(duel.legal(duel.actor))
        weights = np.array([0.2 if action == END else 10 if FLY <= action < STEP else 1 for action in choices])
        action = rng.choice(choices, p=weights / weights.sum()) if rng.random() < 0.95 else rng.integers(-5, 305)
        actions = np.zeros(2, int)
        actions[duel.actor] = action
        actions[1 - duel.actor] = rng.integers(-5, 305)  # the action of the waiting player is ignored
        env.step(actions)
        done = action in duel.legal(duel.actor) and duel.act(action)
        if action not in choices:
            duel.rewards = [0.0, 0.0]
        np.testing.assert_allclose(env.rewards, duel.rewards, atol=1e-6)
        assert env.terminals.tolist() == [done, done]
        if done:
            for player in range(2):
                np.testing.assert_array_equal(env.final_observations[player, ACTIONS:], duel.row(player)[ACTIONS:])
            over += 1
            turns.append(duel.turn)
            duel = Duel(rows, hp=1000)
    assert over >= 2
    assert max(turns) > 2


def test_action_mask_is_the_start_of_the_observation():
    assert ocean.Tactical().action_mask == slice(0, ACTIONS)
    assert ocean.Squared().action_mask is None


@pytest.mark.parametrize("prefix", once([0, 3, 30], [30]))
def test_legal_actions_are_those_that_change_the_observation(prefix):
    """Each action is tried in its own copy of the same game."""
    games = [ocean.Tactical(players=2) for _ in range(ACTIONS)]
    rng = np.random.default_rng(prefix)
    for game in games:
        game.reset(seed=5)
    for _ in range(prefix):
        rows = games[0].observations
        action = rng.choice(sorted(legal(rows[actor(rows)]) - {END}) or [END])
        for game in games:
            game.step([action] * 2)
    before = games[0].observations.copy()
    for action, game in enumerate(games):
        game.step([action] * 2)
    changed = np.array([(game.observations != before).any(axis=1) for game in games])
    for player in range(2):
        assert set(np.flatnonzero(changed[:, player])) == legal(before[actor(before)])


def test_maps_are_symmetric_and_connected():
    kinds = []
    for map in range(1, 6):
        env = ocean.Tactical(num_envs=200, map=map)
        rows, _ = env.reset(seed=0)
        kinds.append({(row[GROUND].tobytes(), row[WALLS].tobytes()) for row in rows})
        assert len(kinds[-1]) == 8
        for row in rows:
            for plane in (GROUND, WALLS):
                assert np.array_equal(row[plane], row[plane][::-1])
            assert not (row[GROUND] & row[WALLS]).any()
            (own,), (other,) = places(row[ITSELF]), places(row[OTHER])
            assert own[1] >= 9
            assert other == turned(own)
        for ground, _ in kinds[-1]:
            cells = places(np.frombuffer(ground, np.uint8))
            assert set(ways(cells, min(cells))) == cells
            assert len(cells) >= 72
    assert len(set.union(*kinds)) == 40
    drawn = ocean.Tactical(num_envs=500).reset(seed=0)[0]
    assert {(row[GROUND].tobytes(), row[WALLS].tobytes()) for row in drawn} == set.union(*kinds)


# ---- Turns and spells. With many movement points, every place can be reached in one move -----------------


class TwoPlayerGame:
    """Game of two players, with helpers that move units to the cells of a test."""

    def __init__(self, seed=0, **kwargs):
        self.env, self.rows = two_players(seed=seed, **{"map": 1, "mp": 90, "ap": 50, "damage_reward": 0.0, **kwargs})
        self.walls, self.ground = places(self.rows[0, WALLS]), places(self.rows[0, GROUND])

    @property
    def row(self):
        return self.rows[actor(self.rows)]

    def act(self, *actions):
        for action in actions:
            assert self.row[action] == 255, f"{action} is not legal"
            play(self.env, action)
        return self

    def own(self):
        (place,) = places(self.row[ITSELF])
        return place

    def other(self):
        (place,) = places(self.row[OTHER])
        return place

    def go(self, place):
        return self if place == self.own() else self.act(MOVE + cell(place))

    def places_with(self, holds):
        """Return the free places for which ``holds(place, other)`` is true, as seen by the acting unit."""
        other = self.other()
        return [place for place in sorted(self.ground - {other, self.own()}) if holds(place, other)]

    def sees(self, a, b):
        return is_clear(self.walls, a, b)

    def hp(self, limit=2500):
        return [round(self.row[index] / 255 * limit) for index in (HP, OTHER_HP)]


def test_walk_costs_a_movement_point_per_step():
    env, rows = two_players(map=2)
    row = rows[actor(rows)]
    (own,), (other,) = places(row[ITSELF]), places(row[OTHER])
    far = ways(places(row[GROUND]) - {other}, own)
    assert {CELLS[action - MOVE] for action in legal(row) if MOVE <= action < EXPLODE} == {
        place for place, n in far.items() if 0 < n <= 6
    }
    there = max((place for place, n in far.items() if n <= 6), key=lambda place: far[place] - steps(own, place))
    assert far[there] > steps(own, there), "the way must lead around an obstacle"
    play(env, MOVE + cell(there))
    assert row[MP] == share(6 - far[there], 11)
    assert row[AP] == 255


@pytest.mark.parametrize(
    ("action", "cost", "damage", "reach", "sight"),
    [(FLY, 3, 100, 14, False), (ROOT, 2, 0, 8, True), (WIND, 4, 400, 22, True)],
)
def test_spells_have_cost_damage_reach_and_line_of_sight(action, cost, damage, reach, sight):
    game = TwoPlayerGame(ap=12)

    def fits(place, other):
        line = place[0] == other[0] or place[1] == other[1]
        return steps(place, other) <= reach and (not sight or game.sees(place, other)) and (action != WIND or line)

    can, cannot = game.places_with(fits), game.places_with(lambda *pair: not fits(*pair))
    assert can
    for place in [*can[::9], *cannot[::9]]:
        if game.row[MP] < 90:
            game.act(END, END)
        game.go(place)
        assert (game.row[action] == 255) == (place in can)
    place = next(place for place in can if steps(place, game.other()) > 1)
    game.act(END, END).go(place).act(action)
    assert game.row[AP] == share(12 - cost, 12)
    assert abs(game.hp()[1] - (2500 - damage)) <= 5


def test_explosive_arrow_hits_units_within_two_steps():
    game = TwoPlayerGame()
    place = next(iter(game.places_with(lambda a, b: game.sees(a, b) and steps(a, b) == 3)))
    own, other = game.go(place).own(), game.other()
    targets = {CELLS[action - EXPLODE] for action in legal(game.row) if EXPLODE <= action < FLY}
    assert targets == {to for to in CELLS if 0 < steps(own, to) <= 11 and to not in game.walls and game.sees(own, to)}
    for reached in ([0, 1], [1, 0], [1, 1], [0, 0]):  # whether the other unit and the acting unit are hit
        to = next(to for to in sorted(targets) if [int(steps(other, to) <= 2), int(steps(own, to) <= 2)] == reached)
        before = game.hp()
        game.act(EXPLODE + cell(to))
        after = game.hp()
        assert [abs(before[1] - after[1]) > 100, abs(before[0] - after[0]) > 100] == [bool(hit) for hit in reached]
    assert [abs(hp - 2100) <= 5 for hp in game.hp()] == [True, True]
    assert game.row[AP] == share(50 - 16, 50)


def test_rooting_arrow_takes_three_movement_points_and_has_a_cooldown():
    game = TwoPlayerGame(ap=12, mp=20)
    game.act(END, END)
    near = game.places_with(lambda a, b: game.sees(a, b) and steps(a, b) <= 8)
    game.go(next(place for place in near if game.row[MOVE + cell(place)]))
    game.act(ROOT)
    assert game.row[ROOTING] == 2 * 63
    assert game.row[OTHER_MP] == share(17, 25)
    assert game.row[ROOT] == 0
    game.act(END)
    assert game.row[MP] == share(17, 25), "the turn of the other unit must be shorter"
    game.act(END)
    assert game.row[OTHER_MP] == share(20, 25), "only one turn must be shorter"
    assert game.row[ROOTING] == 63
    assert game.row[ROOT] == 0
    game.act(END, END)
    assert game.row[ROOTING] == 0
    assert game.row[ROOT] == 255


def test_rooting_arrow_takes_at_most_all_movement_points():
    game = TwoPlayerGame(mp=1, ap=12, seed=3)
    for _ in range(60):  # walk towards each other
        if game.row[ROOT]:
            break
        far = ways(game.ground, game.other())
        moves = [CELLS[action - MOVE] for action in legal(game.row) if MOVE <= action < EXPLODE]
        game.go(min(moves, key=far.get)).act(END)
    assert game.act(ROOT).row[OTHER_MP] == 0


def test_swift_rabbit_gives_five_movement_points_every_four_turns():
    game = TwoPlayerGame(mp=2, ap=12)
    game.act(RABBIT)
    assert game.row[MP] == 255
    assert game.row[AP] == share(10, 12)
    for rest in (4, 3, 2, 1):
        assert game.row[SWIFT] == 63 * rest
        assert game.row[RABBIT] == 0
        game.act(END, END)
    assert game.row[MP] == share(2, 7), "unused points must be lost"
    assert game.row[RABBIT] == 255


def test_points_are_restored_at_the_end_of_the_turn():
    game = TwoPlayerGame()
    game.go(game.places_with(lambda a, b: steps(a, b) <= 14)[0]).act(FLY)
    spent = game.row[[AP, MP]]
    assert (spent < 255).all()
    game.act(END)
    assert game.row[[OTHER_AP, OTHER_MP]].tolist() == [255, share(90, 95)]


@pytest.mark.parametrize("hp", [100, 50])
def test_death_of_a_unit_is_terminal(hp):
    game = TwoPlayerGame(hp=hp, damage_reward=0.5)
    game.go(game.places_with(lambda a, b: steps(a, b) <= 14)[0])
    winner = actor(game.rows)
    game.act(FLY)
    assert game.env.terminals.all()
    assert game.env.rewards[winner] == pytest.approx(1.5)
    assert game.env.rewards[1 - winner] == pytest.approx(-1.5)
    assert game.env.final_observations[winner, OTHER_HP] == 0


def test_killing_both_units_is_a_draw():
    game = TwoPlayerGame(hp=200, damage_reward=0.5)
    other = game.other()
    game.go(game.places_with(lambda a, b: steps(a, b) == 1)[0])
    game.act(EXPLODE + cell(other))
    assert game.env.terminals.all()
    assert game.env.rewards.tolist() == [0, 0]


def test_turn_ends_after_turn_actions():
    env, rows = two_players(turn_actions=3)
    first = actor(rows)
    for action in (-1, ACTIONS, 2**31 - 1):
        assert actor(rows) == first
        play(env, action)
    assert actor(rows) != first


def test_max_turns_truncates():
    env, _ = two_players(max_turns=5, log_interval=1)
    for turn in range(1, 6):
        assert not env.truncations.any()
        *_, infos = env.step([END, END])
        assert env.truncations.all() == (turn == 5)
    assert not env.terminals.any()
    assert infos[0]["turns"] == 5
    assert infos[0]["score"] == infos[0]["perf"] == 0
    assert infos[0]["hp_left"] == 1


# ---- The scripted unit ------------------------------------------------------------------------------


def openings(**kwargs):
    """Return games in which the scripted unit starts, and the first observations of its opponent."""
    env = ocean.Tactical(num_envs=512, **kwargs)
    rows, _ = env.reset(seed=0)
    before = rows.copy()
    env.step(np.zeros(512, int))
    waits = np.flatnonzero(before[:, TURN] == 0)
    assert 100 < len(waits) < 400, "the first unit must be random"
    assert {frozenset(legal(before[i])) for i in waits} == {frozenset({END})}
    return env, waits, before


def can_hit(row):
    """Return whether the scripted unit can reach a cell from which its wind arrow hits."""
    (own,), (other,) = places(row[ITSELF]), places(row[OTHER])
    walls = frozenset(places(row[WALLS]))
    far = ways(places(row[GROUND]) - {own}, other)
    seen = seen_from(walls, own)
    return any(n <= 6 and place in seen and (place[0] == own[0] or place[1] == own[1]) for place, n in far.items())


def test_scripted_unit_kills_if_it_can():
    env, waits, before = openings(hp=1200)
    kills = np.array([can_hit(before[i]) for i in waits])
    assert 0.1 < kills.mean() < 0.9
    np.testing.assert_array_equal(env.terminals[waits], kills)
    np.testing.assert_allclose(env.rewards[waits[kills]], -1.2)


def test_scripted_unit_shoots_three_wind_arrows_if_it_can():
    env, waits, before = openings()
    kills = np.array([can_hit(before[i]) for i in waits])
    np.testing.assert_array_equal(env.observations[waits[kills], HP], share(1300, 2500))
    assert (env.observations[waits[~kills], HP] >= share(1700, 2500)).all()


def test_scripted_unit_approaches_if_nothing_hits():
    env, waits, before = openings(mp=1)
    idle = [i for i in waits if env.observations[i, HP] == 255]
    assert len(idle) > 5
    for i in idle:
        (own,), (then,), (now,) = (places(row[plane]) for row, plane in
                                   ((before[i], ITSELF), (before[i], OTHER), (env.observations[i], OTHER)))  # fmt: skip
        far = ways(places(before[i, GROUND]), own)
        assert far[now] == far[then] - 1


def damage(strength):
    """Return the damage that the scripted unit does to an idle opponent in four turns."""
    env = ocean.Tactical(num_envs=256, strength=strength, hp=20_000)
    env.reset(seed=1)
    for _ in range(5):
        env.step(np.zeros(256, int))
    return 255 - env.observations[:, HP].mean()


def test_strength_increases_the_damage():
    weak, middle, strong = damage(0.0), damage(0.5), damage(1.0)
    assert weak < middle < strong


# ---- Images -----------------------------------------------------------------------------------------


def test_click_areas_are_walks_and_explosive_arrows():
    env, rows = two_players()
    for player in (actor(rows), 1 - actor(rows)):
        assert actor(rows) == player
        allowed = legal(rows[player])
        walks = {action for action in allowed if MOVE <= action < EXPLODE}
        blasts = {action for action in allowed if EXPLODE <= action < FLY and action - EXPLODE + MOVE not in walks}
        areas = env.areas(agent=player)
        assert env.areas(agent=1 - player) == {}, "it is the turn of the other player"
        assert set(areas) == walks | blasts
        assert len(set(areas.values())) == len(areas)
        play(env, END)


def test_image_for_a_player_has_its_side_at_the_bottom():
    env, rows = two_players(seed=3, render_mode="rgb_array")
    for player in (actor(rows), 1 - actor(rows)):
        assert actor(rows) == player
        walks = [area for action, area in env.areas(agent=player).items() if MOVE <= action < EXPLODE]
        x, y, width, height = max(walks, key=lambda area: area[1])  # the lowest cell, which no unit hides
        for viewer in (player, 1 - player):
            red, green, blue = env.render(agent=viewer)[y + height - 2, x + width // 2].tolist()  # below the dot
            assert (blue > green > red) == (viewer == player), "cells in reach must be blue, others green"
        play(env, END)


# ---- The policy -------------------------------------------------------------------------------------


def test_tactical_policy_is_equivariant_to_mirroring():
    """A policy with separate weights for each cell would not be."""
    import torch

    env = ocean.Tactical(num_envs=4)
    rows = torch.from_numpy(env.reset(seed=0)[0].copy())
    rows[:, STEP : STEP + 4] = 0  # a mirror exchanges the single steps
    mirrored = rows.clone()
    for start in (MOVE, EXPLODE, *range(ACTIONS, ACTIONS + 6 * 144, 144)):
        cells = slice(start, start + 144)
        mirrored[:, cells] = rows[:, cells].view(-1, 12, 12).flip(-1).flatten(1)
    policy = make_policy(env, "Tactical", hidden_size=16, more=registry.policies("tactical"))
    (params, values), (others, same) = policy.forward_eval(rows), policy.forward_eval(mirrored)
    torch.testing.assert_close(same, values)
    torch.testing.assert_close(others[:, FLY:], params[:, FLY:])
    for start in (MOVE, EXPLODE):
        cells = slice(start, start + 144)
        assert params[:, cells].unique().numel() > 20, "the policy must distinguish places"
        torch.testing.assert_close(others[:, cells].view(-1, 12, 12).flip(-1).flatten(1), params[:, cells])
