"""Rules of go, compared with a Python model. tests/native/go_rules.c tests constructed positions."""

from functools import cache

import numpy as np
import pytest

from pufferlib import ocean

PASS = 0
BLACK, WHITE = 0, 1


class View:
    """Observation, split into its parts."""

    def __init__(self, row, size):
        points = size * size
        self.legal = {int(i) for i in np.flatnonzero(row[1 : points + 1])}
        self.stones = [{int(i) for i in np.flatnonzero(row[at : at + points])} for at in (points + 1, 2 * points + 1)]
        self.captures = [round(float(x) * points) for x in row[3 * points + 1 : 3 * points + 3]]
        self.passed, self.time = row[3 * points + 3 :].tolist()
        self.may_pass = row[0] == 1


# ---- The model, with sets of stones and flood fill -----------------------------------------------------


@cache
def neighbours(size, point):
    row, column = divmod(point, size)
    around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * size + c for r, c in around if 0 <= r < size and 0 <= c < size]


def chain(size, stones, point):
    """Return the chain of stones that contains ``point``, and its liberties."""
    own = stones[BLACK] if point in stones[BLACK] else stones[WHITE]
    seen, queue, liberties = {point}, [point], set()
    while queue:
        for near in neighbours(size, queue.pop()):
            if near in own and near not in seen:
                seen.add(near)
                queue.append(near)
            elif near not in stones[BLACK] and near not in stones[WHITE]:
                liberties.add(near)
    return seen, liberties


def play(size, stones, colour, point):
    """Return the position after a move and the number of captured stones. Return None for a suicide."""
    after = [set(stones[BLACK]), set(stones[WHITE])]
    after[colour].add(point)
    captured = set()
    for near in neighbours(size, point):
        if near in after[1 - colour]:
            found, liberties = chain(size, after, near)
            if not liberties:
                captured |= found
                after[1 - colour] -= found
    return (after, len(captured)) if chain(size, after, point)[1] else None


def is_legal(size, stones, before, colour, point):
    """Return whether a move is legal. It may not restore ``before``, the position before the last move (simple ko)."""
    if point in stones[BLACK] or point in stones[WHITE]:
        return False
    played = play(size, stones, colour, point)
    return played is not None and played[0] != before


def area(size, stones):
    """Return the Tromp-Taylor area of both sides: stones, and empty regions that touch only one colour."""
    count = [len(stones[BLACK]), len(stones[WHITE])]
    empty = set(range(size * size)) - stones[BLACK] - stones[WHITE]
    while empty:
        region, queue, touched = set(), [empty.pop()], set()
        while queue:
            point = queue.pop()
            region.add(point)
            for near in neighbours(size, point):
                touched |= {colour for colour in (BLACK, WHITE) if near in stones[colour]}
                if near in empty:
                    empty.remove(near)
                    queue.append(near)
        if len(touched) == 1:
            count[touched.pop()] += len(region)
    return count


def urgency(size, stones, point):
    """Return the rank of a point for the greedy player, from 0 (best) to 5 (nothing to gain)."""
    ranks = [5]
    for near in neighbours(size, point):
        if near in stones[BLACK] or near in stones[WHITE]:
            count = len(chain(size, stones, near)[1])
            if near in stones[BLACK] and count <= 4:
                ranks.append({1: 0, 2: 2, 3: 3, 4: 4}[count])
            elif near in stones[WHITE] and count == 1:
                ranks.append(1)
    return min(ranks)


def is_eye(size, stones, point):
    return all(near in stones[WHITE] for near in neighbours(size, point))


# ---- Whole games, compared with the model --------------------------------------------------------------


def check_white(size, stones, before, point):
    """Check that white's move is legal and that no other move is more urgent."""
    assert is_legal(size, stones, before, WHITE, point)
    rank = urgency(size, stones, point)
    others = set(range(size * size)) - stones[BLACK] - stones[WHITE]
    urgent = [p for p in others if urgency(size, stones, p) < rank and is_legal(size, stones, before, WHITE, p)]
    assert not urgent
    assert rank < 5 or not is_eye(size, stones, point)


def follow(size, view, stones, before, captures, thorough):
    """Read white's answer from the next observation. Return the positions before and after it."""
    new = view.stones[WHITE] - stones[WHITE]
    if not new:
        assert view.passed
        return stones, stones
    (point,) = new
    if thorough:
        check_white(size, stones, before, point)
    after, captured = play(size, stones, WHITE, point)
    captures[WHITE] += captured
    return stones, after


@pytest.mark.parametrize(
    ("size", "steps", "every"), [(5, 400, 1), (7, 400, 2), (9, 250, 5), (13, 300, 20), (19, 450, 60)]
)
def test_games_match_a_python_model(size, steps, every):
    env = ocean.Go(num_envs=1, grid_size=size, seed=size)
    row = env.reset()[0][0]
    rng = np.random.default_rng(size)
    stones, before, captures = [set(), set()], None, [0, 0]
    games = 0
    for step in range(steps):
        thorough = step % every == 0
        view = View(row, size)
        if thorough:
            everywhere = range(size * size)
            assert view.legal == {p for p in everywhere if is_legal(size, stones, before, BLACK, p)}
        action = PASS if not view.legal or rng.random() < 0.01 else 1 + int(rng.choice(sorted(view.legal)))
        env.step([action])
        previous = stones
        if action != PASS:
            stones, captured = play(size, stones, BLACK, action - 1)
            captures[BLACK] += captured
        view = View(env.final_observations[0] if env.terminals[0] else row, size)
        before, stones = follow(size, view, stones, previous, captures, thorough)
        assert view.stones == stones
        assert view.captures == captures
        if env.terminals[0]:
            black, white = area(size, stones)
            assert env.rewards[0] == np.sign(black - white - 7.5)
            stones, before, captures = [set(), set()], None, [0, 0]
            games += 1
    assert games or size > 9


def test_stones_on_the_board_plus_captured_equal_those_placed():
    games, steps, points = 250, 400, 49
    env = ocean.Go(num_envs=games, seed=3)
    rows, _ = env.reset()
    rng = np.random.default_rng(0)
    placed = np.zeros((games, 2), int)
    for _ in range(steps):
        actions = rng.integers(0, points + 1, games)
        legal = rows[np.arange(games), actions] == 1
        env.step(actions)
        seen = np.where(env.terminals[:, None], env.final_observations, rows)
        passed = seen[:, 3 * points + 3] == 1
        placed[:, BLACK] += legal & (actions > 0)
        placed[:, WHITE] += legal & ~passed
        boards = np.stack([seen[:, 1 + p * points : 1 + (p + 1) * points].sum(axis=1) for p in (1, 2)], axis=1)
        captured = np.rint(seen[:, [3 * points + 2, 3 * points + 1]] * points)  # captured stones of black and of white
        np.testing.assert_array_equal(boards + captured, placed)
        placed[env.terminals] = 0


# ---- Effects of actions --------------------------------------------------------------------------------


def start(size=5, **kwargs):
    env = ocean.Go(num_envs=1, grid_size=size, log_interval=1, **kwargs)
    row = env.reset()[0][0]
    return env, lambda: View(row, size)


def test_game_starts_with_an_empty_board():
    _, view = start(9)
    assert view().legal == set(range(81))
    assert view().may_pass
    assert view().stones == [set(), set()]
    assert (view().captures, view().passed, view().time) == ([0, 0], 0, 0)


def test_action_mask_has_the_legal_actions():
    env, view = start(7)
    assert env.action_mask == slice(0, 50)
    env.step([1])
    assert set(np.flatnonzero(env.observations[0][env.action_mask])) == {PASS} | {p + 1 for p in view().legal}


def test_click_areas_are_the_legal_points():
    env, view = start(9)
    env.step([1])
    assert set(env.areas()) == {point + 1 for point in view().legal}
    left, top, width, height = env.areas()[81]
    env.step([81])
    picture = env.render()[top + height // 2, left + width // 6 : left + width // 3]
    assert picture.max() < 130, "the clicked point must have a black stone"


@pytest.mark.parametrize("size", range(5, 20))
def test_spaces_and_actions_fit_every_size(size):
    env, view = start(size, opponent=0)
    assert env.single_action_space.n == size * size + 1
    assert env.single_observation_space.shape == (3 * size * size + 5,)
    env.step([size * size])
    assert view().stones[BLACK] == {size * size - 1}
    assert len(view().stones[WHITE]) == 1


@pytest.mark.parametrize("action", [1, 26, -1, 2**31 - 1, -(2**31)])
def test_illegal_action_only_costs_time(action):
    env, view = start(reward_move_invalid=-0.25)
    env.step([1])
    before = view()
    env.step([action])
    assert (view().stones, view().captures, view().legal) == (before.stones, before.captures, before.legal)
    assert view().time == pytest.approx(before.time + 1 / 75)
    assert env.rewards[0] == -0.25


def test_two_passes_are_terminal():
    env, _ = start(reward_move_pass=-0.5)
    infos = env.step([PASS])[4]
    assert env.terminals[0]
    assert env.rewards[0] == -1.5, "white leads by komi and passes too"
    assert infos[0]["score"] == -7.5
    assert (infos[0]["perf"], infos[0]["episode_length"]) == (0, 1)


def test_white_does_not_pass_when_behind():
    env, view = start(komi=-0.5)
    env.step([PASS])
    assert not env.terminals[0]
    assert len(view().stones[WHITE]) == 1


def test_last_action_is_terminal_with_a_score():
    env, view = start(moves_per_point=2, komi=0, reward_move_invalid=0)
    for step in range(49):
        assert not env.step([99])[2][0]
        assert view().time == pytest.approx((step + 1) / 50)
    infos = env.step([99])[4]
    assert env.terminals[0]
    assert env.rewards[0] == 0, "an empty board without komi is a tie"
    assert (infos[0]["score"], infos[0]["perf"]) == (0, 0.5)


def test_captures_pay_per_stone():
    env, view = start(
        7, reward_player_capture=0.25, reward_opponent_capture=-0.5, reward_move_valid=0.125, reward_result=0, seed=5
    )
    rng = np.random.default_rng(1)
    paid = set()
    for _ in range(400):
        before = view().captures
        env.step([1 + rng.choice(sorted(view().legal))] if view().legal else [PASS])
        if env.terminals[0]:
            continue
        gained, lost = (after - b for after, b in zip(view().captures, before, strict=True))
        assert env.rewards[0] == 0.125 + 0.25 * gained - 0.5 * lost
        paid.add((gained > 0, lost > 0))
    assert len(paid) >= 3


def test_opponents_become_stronger():
    def play_games(opponent):
        env = ocean.Go(num_envs=64, opponent=opponent, seed=1, log_interval=400)
        rows, _ = env.reset()
        rng = np.random.default_rng(0)
        for _ in range(400):
            legal = rows[:, 1:50] * rng.random((64, 49))
            infos = env.step(np.where(legal.max(axis=1) > 0, legal.argmax(axis=1) + 1, PASS))[4]
        return infos[0]

    random, easy, greedy = (play_games(opponent) for opponent in range(3))
    assert random["score"] > easy["score"] + 5
    assert easy["episode_length"] > greedy["episode_length"] + 3, "the greedy opponent must win in fewer moves"


@pytest.mark.parametrize("size", [5, 9])
def test_two_players_take_turns_and_match_the_model(size):
    env = ocean.Go(num_envs=1, players=2, grid_size=size, seed=2, log_interval=1, moves_per_point=2, komi=0.5)
    rows, _ = env.reset()
    rng, ends = np.random.default_rng(2), []
    stones, before, captures, colour, steps, passes = [set(), set()], None, [0, 0], BLACK, 0, 0
    for _ in range(6 * size * size):
        views = [View(row, size) for row in rows]
        assert views[1 - colour].legal == set()
        expected = {point for point in range(size * size) if is_legal(size, stones, before, colour, point)}
        assert views[colour].legal == expected
        for player, view in enumerate(views):
            assert view.may_pass
            assert view.stones == [stones[player], stones[1 - player]]
            assert view.captures == [captures[player], captures[1 - player]]
            assert view.passed == (player == colour and passes > 0)
            assert view.time == pytest.approx(player + steps / (4 * size * size))
        choice = rng.random()
        action = PASS if choice < 0.05 or not expected else int(rng.choice(sorted(expected))) + 1
        action = size * size + 1 if choice > 0.98 else action
        actions = rng.integers(-1, size * size + 2, 2)  # the action of the waiting player is ignored
        actions[colour] = action
        env.step(actions)
        steps += 1
        if action == size * size + 1:
            assert env.rewards[colour] == pytest.approx(-0.1, abs=1.01)
        elif action == PASS:
            before, passes, colour = None, passes + 1, 1 - colour
        else:
            after, captured = play(size, stones, colour, action - 1)
            before, stones, passes = stones, after, 0
            captures[colour] += captured if isinstance(captured, int) else len(captured)
            colour = 1 - colour
        ended = passes == 2 or steps == 4 * size * size
        assert env.terminals.tolist() == [ended, ended]
        if ended:
            lead = area(size, stones)[BLACK] - area(size, stones)[WHITE] - 0.5
            np.testing.assert_allclose(np.round(env.rewards), [np.sign(lead), -np.sign(lead)])
            ends.append(passes)
            stones, before, captures, colour, steps, passes = [set(), set()], None, [0, 0], BLACK, 0, 0
    assert ends
