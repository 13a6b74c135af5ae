"""Rules of tripletriad, compared with a Python model. tests/native tests constructed positions."""

import numpy as np
import pytest

from pufferlib import ocean

OWN, RIVAL = 0, 1
SELECT, LAY = 0, 5
PARTS = {"legal": (14,), "board": (2, 9, 4), "hands": (2, 5, 4), "selected": (4,), "points": (2,), "clock": (1,)}
PARTS |= {"gains": (9,), "most": (5,)}


def start(**kwargs):
    env = ocean.TripleTriad(num_envs=1, log_interval=1, **kwargs)
    return env, View(env.reset()[0][0])


class View:
    """Observation as integers, split into its parts."""

    def __init__(self, row, max_value=7, max_actions=30):
        units = {"board": max_value, "hands": max_value, "selected": max_value, "points": 10, "clock": max_actions}
        units |= {"gains": 4, "most": 4}
        sizes = [int(np.prod(shape)) for shape in PARTS.values()]
        whole = row * np.repeat([units.get(name, 1) for name in PARTS], sizes)
        self.numbers = whole.round().astype(int)
        assert abs(whole - self.numbers).max() < 1e-4
        for (name, shape), part in zip(PARTS.items(), np.split(self.numbers, np.cumsum(sizes)[:-1]), strict=True):
            setattr(self, name, part.reshape(shape))

    def empty(self):
        return [cell for cell in range(9) if not self.board[:, cell].any()]

    def held(self, player):
        return [card for card in range(5) if self.hands[player, card].any()]

    def weaker(self, player, values, cell):
        """Return the cells beside ``cell`` with a card of the other player that is weaker than ``values``."""
        row, column = divmod(cell, 3)
        found = []
        for side, (down, right) in enumerate([(-1, 0), (1, 0), (0, 1), (0, -1)]):
            if 0 <= row + down < 3 and 0 <= column + right < 3:
                beside = 3 * (row + down) + column + right
                touching = self.board[1 - player, beside, (1, 0, 3, 2)[side]]
                found += [beside] if 0 < touching < values[side] else []
        return found

    def lay(self, player, card, cell):
        """Lay a card and capture weaker neighbours."""
        values = self.hands[player, card].copy()
        self.hands[player, card] = 0
        self.board[player, cell] = values
        for taken in self.weaker(player, values, cell):
            self.board[player, taken] = self.board[1 - player, taken]
            self.board[1 - player, taken] = 0
            self.points[player] += 1
            self.points[1 - player] -= 1

    def show(self):
        """Compute legal actions and possible captures from the rest of the observation."""
        chosen = [(self.hands[OWN, card] == self.selected).all() for card in range(5)]
        self.legal[:] = self.gains[:] = self.most[:] = 0
        self.legal[[card for card in self.held(OWN) if not chosen[card]]] = 1
        for card in self.held(OWN):
            gains = {cell: len(self.weaker(OWN, self.hands[OWN, card], cell)) for cell in self.empty()}
            self.most[card] = max(gains.values(), default=0)
            if chosen[card]:
                self.gains[list(gains)] = list(gains.values())
        if self.selected.any():
            self.legal[[LAY + cell for cell in self.empty()]] = 1


def act(view, after, action, costs=0.1, per_card=0.25):
    """Change ``view`` to the expected next one, and return the reward. The rival's move is read from ``after``."""
    view.clock -= 1
    points = view.points[OWN]
    if not (0 <= action < 14 and view.legal[action]):
        return -costs
    if action < LAY:
        view.selected[:] = view.hands[OWN, action]
        view.show()
        return -costs
    chosen = next(card for card in view.held(OWN) if (view.hands[OWN, card] == view.selected).all())
    view.lay(OWN, chosen, action - LAY)
    if view.empty():
        (card,) = set(view.held(RIVAL)) - set(after.held(RIVAL))
        (cell,) = set(view.empty()) - set(after.empty())
        view.lay(RIVAL, card, cell)
    view.selected[:] = 0
    view.show()
    return per_card * (view.points[OWN] - points)


def all_differ(hand):
    """Return whether all cards have different values. The model identifies cards by their values."""
    return len({tuple(card) for card in hand}) == len(hand)


@pytest.mark.parametrize(("max_value", "max_actions"), [(7, 14), (10, 12)])
def test_steps_match_a_python_model(max_value, max_actions):
    limits = {"max_value": max_value, "max_actions": max_actions}
    env = ocean.TripleTriad(num_envs=1, seed=5, log_interval=1, reward_per_card=0.25, **limits)
    view = View(env.reset()[0][0], max_value, max_actions)
    rng = np.random.default_rng(0)
    games = wins = late = illegal = actions = 0
    for _ in range(1200):
        legal = np.flatnonzero(view.legal)
        action = int(rng.choice(legal) if rng.random() < 0.8 else rng.integers(-1, 15))
        illegal += not (0 <= action < 14 and view.legal[action])
        actions += 1
        known = all_differ(view.hands[OWN][view.held(OWN)])
        observations, rewards, terminals, truncations, infos = env.step([action])
        after = View(env.final_observations[0] if terminals[0] else observations[0], max_value, max_actions)
        if known:
            reward = act(view, after, action)
            complete, out_of_time = not view.empty(), view.clock[0] == 0
            assert (terminals[0], truncations[0]) == (complete or out_of_time, False)
            if complete:
                reward += np.sign(view.points[OWN] - view.points[RIVAL])
            elif out_of_time:
                reward -= 1
            assert rewards[0] == pytest.approx(reward)
            np.testing.assert_array_equal(view.numbers, after.numbers)
        view = after
        assert view.points.sum() == 10
        if terminals[0]:
            (info,) = infos
            complete = not view.empty()
            assert info["score"] == (view.points[OWN] if complete else 0)
            assert info["perf"] == (complete and view.points[OWN] > 5)
            assert info["out_of_time"] == (not complete)
            assert info["illegal"] == pytest.approx(illegal / actions)
            games, wins, late = games + 1, wins + info["perf"], late + info["out_of_time"]
            illegal = actions = 0
            view = View(observations[0], max_value, max_actions)
            assert view.clock[0] == max_actions
    assert games > 40
    assert 0 < wins < games
    assert late > 0


def test_hands_have_five_cards_of_uniform_values():
    env = ocean.TripleTriad(num_envs=200, seed=0)
    views = [View(row) for row in env.reset()[0]]
    values = np.concatenate([view.hands.ravel() for view in views])
    counts = np.bincount(values, minlength=8)
    assert counts[0] == 0
    assert (abs(counts[1:] - len(values) / 7) < 0.1 * len(values) / 7).all()
    for view in views:
        assert view.points.tolist() == [5, 5]
        assert view.legal.tolist() == [1] * 5 + [0] * 9


def test_rival_plays_random_cards_and_cells():
    env = ocean.TripleTriad(num_envs=500, seed=0)
    env.reset()
    env.step([0] * 500)
    observations = env.step([LAY + 4] * 500)[0]
    views = [View(row) for row in observations]
    cards = np.bincount([(set(range(5)) - set(view.held(RIVAL))).pop() for view in views], minlength=5)
    cells = np.bincount([(set(range(9)) - {4} - set(view.empty())).pop() for view in views], minlength=9)
    assert (abs(cards - 100) < 40).all()
    assert cells[4] == 0
    assert (abs(np.delete(cells, 4) - 500 / 8) < 30).all()


def test_costs_of_selections_and_illegal_actions():
    env, view = start(select_cost=0.25, illegal_cost=0.5)
    for action, reward in ((LAY, -0.5), (14, -0.5), (-1, -0.5), (3, -0.25), (3, -0.5), (2, -0.25), (LAY + 8, 0)):
        _, rewards, *_ = env.step([action])
        assert rewards[0] == reward
        if reward == -0.5:
            after = View(env.observations[0])
            assert after.clock == view.clock - 1
            assert (after.hands == view.hands).all()
            assert (after.legal == view.legal).all()
        view = View(env.observations[0])


def test_max_actions_is_a_loss():
    env, _ = start(max_actions=10)
    for _ in range(9):
        env.step([LAY])
        assert not env.terminals[0]
    _, rewards, terminals, truncations, infos = env.step([LAY])
    assert (terminals[0], truncations[0]) == (True, False)
    assert rewards[0] == pytest.approx(-1.1)
    assert (infos[0]["score"], infos[0]["perf"], infos[0]["illegal"], infos[0]["out_of_time"]) == (0, 0, 1, 1)


def test_last_action_can_complete_the_board():
    env, _ = start(max_actions=10)
    for card in range(5):
        env.step([card])
        cell = View(env.observations[0]).empty()[0]
        _, rewards, terminals, _, infos = env.step([LAY + cell])
    assert terminals[0]
    assert infos[0]["out_of_time"] == 0
    assert rewards[0] == np.sign(infos[0]["score"] - 5)


def test_image_shows_cards_of_both_players():
    env = ocean.TripleTriad(num_envs=1, render_mode="rgb_array")
    colours = {"own": (0x0B, 0x4A, 0x58), "rival": (0x6B, 0x3D, 0x12), "selected": (0xE8, 0xD4, 0x4D)}

    def count_pixels():
        picture = env.render()[:540]
        return {name: int((picture == colour).all(axis=2).sum()) for name, colour in colours.items()}

    env.reset(seed=0)
    dealt = count_pixels()
    assert dealt["selected"] == 0
    env.step([2])
    assert count_pixels()["selected"] > 500
    env.step([LAY])
    laid = count_pixels()
    assert laid["selected"] == 0
    assert laid["own"] + laid["rival"] > dealt["own"] + dealt["rival"], "cards on the board must be larger"


def test_two_players_take_turns_and_see_their_own_side():
    """The model applies to the player whose turn it is. The other one waits."""
    env = ocean.TripleTriad(num_envs=1, players=2, max_value=10, log_interval=1, seed=4)
    rows, _ = env.reset()
    rng, results, clocks = np.random.default_rng(4), [], np.full(2, 30)
    mover = 0
    for _ in range(500):
        before = [View(row, 10) for row in rows]
        assert before[1 - mover].legal.tolist() == [1] + [0] * 13
        assert not before[1 - mover].selected.any()
        action = int(rng.integers(-1, 15) if rng.random() < 0.3 else rng.choice(np.flatnonzero(before[mover].legal)))
        actions = rng.integers(-2, 16, 2)  # the action of the waiting player is ignored
        actions[mover] = action
        *_, infos = env.step(actions)
        ended = bool(env.terminals[0])
        after = [View(row, 10) for row in (env.final_observations if ended else rows)]
        clocks[mover] -= 1
        assert [view.clock[0] for view in after] == clocks.tolist()
        expected = before[mover]
        legal, lays = 0 <= action < 14 and bool(expected.legal[action]), False
        if legal and action < LAY:
            expected.selected[:] = expected.hands[OWN, action]
        elif legal:
            lays = True
            (card,) = [card for card in expected.held(OWN) if (expected.hands[OWN, card] == expected.selected).all()]
            expected.lay(OWN, card, action - LAY)
            expected.selected[:] = 0
        for player, view in enumerate(after):
            turned = slice(None) if player == mover else slice(None, None, -1)
            for part in ("board", "hands", "points"):
                np.testing.assert_array_equal(getattr(view, part), getattr(expected, part)[turned])
        if not ended:
            mover = 1 - mover if lays else mover
            after[mover].show()
            np.testing.assert_array_equal(after[mover].numbers, View(rows[mover], 10).numbers)
            continue
        complete = not expected.empty()
        lead = int(np.sign(after[0].points[0] - after[0].points[1]))
        result = lead if complete else (-1 if mover == 0 else 1)
        (info,) = infos
        assert (info["perf"], info["out_of_time"]) == (result > 0, not complete)
        assert np.sign(env.rewards[0] - env.rewards[1]) == result
        results.append((result, complete))
        clocks[:], mover = 30, 0
    assert {(-1, True), (1, True)} <= set(results)
