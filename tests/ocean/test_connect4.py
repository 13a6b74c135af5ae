"""Rules of connect4, compared with a Python model. Tests of lines and known positions are in tests/native."""

import numpy as np
import pytest

from pufferlib import ocean

COLUMNS, ROWS = 7, 6


def lines_by_cell():
    """Return the lines of four through each cell as sets of bits. The number of a cell is column * 6 + row."""
    through = [[] for _ in range(COLUMNS * ROWS)]
    for column in range(COLUMNS):
        for row in range(ROWS):
            for across, up in ((0, 1), (1, -1), (1, 0), (1, 1)):
                cells = [(column + i * across, row + i * up) for i in range(4)]
                if all(c < COLUMNS and 0 <= r < ROWS for c, r in cells):
                    numbers = [c * ROWS + r for c, r in cells]
                    for number in numbers:
                        through[number].append(sum(1 << n for n in numbers))
    return through


LINES = lines_by_cell()


class Model:
    """Position with the cells of each side as bits, and the number of discs in each column."""

    def __init__(self, view):
        cells = view[: COLUMNS * ROWS]
        self.sides = [sum(1 << int(i) for i in np.flatnonzero(cells == disc)) for disc in (1, -1)]
        self.heights = (cells.reshape(COLUMNS, ROWS) != 0).sum(axis=1).tolist()

    def moves(self):
        return [column for column in range(COLUMNS) if self.heights[column] < ROWS]

    def play(self, side, column):
        """Drop a disc, and return whether it makes a line."""
        cell = column * ROWS + self.heights[column]
        self.heights[column] += 1
        self.sides[side] |= 1 << cell
        return any(self.sides[side] & line == line for line in LINES[cell])

    def undo(self, side, column):
        self.heights[column] -= 1
        self.sides[side] &= ~(1 << column * ROWS + self.heights[column])

    def value(self, side, depth):
        return max(self.values(side, depth).values(), default=0) if depth > 0 else 0

    def values(self, side, depth):
        """Return the minimax value of each move, ``depth`` moves ahead. Earlier wins and later losses are higher."""
        values = {}
        for column in self.moves():
            won = self.play(side, column)
            values[column] = depth if won else -self.value(1 - side, depth - 1)
            self.undo(side, column)
        return values

    def completing(self, side):
        """Return the columns in which a disc makes a line."""
        found = []
        for column in self.moves():
            found += [column] if self.play(side, column) else []
            self.undo(side, column)
        return found

    def answers(self, depth):
        """Return the moves among which the opponent may choose."""
        if depth == 0:
            return self.moves()
        values = self.values(1, depth)
        best = max(values.values())
        blocks = self.completing(0) if depth > 1 and best == 1 - depth else []
        return blocks or [column for column, value in values.items() if value == best]

    def view(self):
        bits = [[side >> cell & 1 for cell in range(COLUMNS * ROWS)] for side in self.sides]
        room = [height < ROWS for height in self.heights]
        return np.concatenate([np.subtract(*bits), room]).astype(np.float32)


def choose(model, rng):
    """Return a random move, sometimes an illegal one, or a move that wins or blocks if there is one."""
    if rng.random() < 0.4:
        return int(rng.integers(-1, COLUMNS + 1)) if rng.random() < 0.1 else int(rng.choice(model.moves()))
    return int(rng.choice(model.completing(0) or model.completing(1) or model.moves()))


def expected_outcome(before, after, action, depth):
    """Return the expected reward and terminal of a step. The opponent's move is read from the observation."""
    model = Model(before)
    if action not in model.moves():
        np.testing.assert_array_equal(after, before)
        return -1, True
    if model.play(0, action):
        np.testing.assert_array_equal(after, model.view())
        return 1, True
    (cell,) = np.flatnonzero((after - before)[: COLUMNS * ROWS] == -1)
    assert cell // ROWS in model.answers(depth)
    lost = model.play(1, cell // ROWS)
    np.testing.assert_array_equal(after, model.view())
    return -int(lost), lost or not model.moves()


@pytest.mark.parametrize(("depth", "steps"), [(0, 2000), (1, 1000), (2, 600), (3, 200), (4, 60)])
def test_steps_match_a_python_model(depth, steps):
    env = ocean.Connect4(num_envs=1, depth=depth, seed=depth, log_interval=1)
    before = env.reset()[0][0].copy()
    rng = np.random.default_rng(depth)
    ends = 0
    for _ in range(steps):
        action = choose(Model(before), rng)
        observations, rewards, terminals, truncations, infos = env.step([action])
        after = env.final_observations[0] if terminals[0] else observations[0]
        reward, ended = expected_outcome(before, after, action, depth)
        assert (rewards[0], terminals[0], truncations[0]) == (reward, ended, False)
        for info in infos:
            assert (info["score"], info["perf"], info["drawn"]) == (reward, reward > 0, reward == 0)
            assert info["illegal"] == np.array_equal(before, after)
        assert len(infos) == ended
        ends += ended
        before = observations[0].copy()
    assert ends >= 3


def test_deeper_opponents_win_more():
    lost = []
    for depth in (0, 1, 4):
        env = ocean.Connect4(num_envs=64, depth=depth, log_interval=400)
        env.reset(seed=1)
        rng = np.random.default_rng(0)
        infos = [info for _ in range(400) for info in env.step(rng.integers(0, COLUMNS, 64))[4]]
        lost.append((1 - infos[0]["score"]) / 2)
    assert lost[0] < 0.6 < lost[1] < lost[2]
    assert lost[2] > 0.97


def test_image_shows_discs_and_the_winning_line():
    env = ocean.Connect4(num_envs=1, depth=0, autoreset="disabled", render_mode="rgb_array")
    colours = {"yellow": (0xE8, 0xD4, 0x4D), "red": (0xD6, 0x45, 0x45), "white": (0xF1, 0xF1, 0xF1)}

    def count_pixels():
        picture = env.render()
        return {name: int((picture == colour).all(axis=2).sum()) for name, colour in colours.items()}

    env.reset(seed=0)
    empty = count_pixels()
    env.step([3])
    first = count_pixels()
    assert all(first[name] > empty[name] for name in colours), "the image must show two discs with rings"
    while not env.terminals[0]:
        env.step([3 if not env.observations[0][3 * ROWS + 5] else 2])
    assert env.rewards[0] == 1
    assert count_pixels()["white"] > first["white"] + 1000, "the image must show the winning line and the result"


def view_of(model, turn, player):
    """Return the expected observation of ``player`` while ``turn`` is to move."""
    view = Model.view(model)
    view[: COLUMNS * ROWS] *= 1 if player == 0 else -1
    if player != turn:
        view[COLUMNS * ROWS :] = np.arange(COLUMNS) == 0
    return view


def test_two_players_take_turns_and_see_their_own_side():
    env = ocean.Connect4(num_envs=1, players=2, seed=3, log_interval=1)
    rows, _ = env.reset()
    rng = np.random.default_rng(3)
    results = []
    for _ in range(60):
        model, turn, over = Model(np.zeros(49)), 0, False
        while not over:
            for player in range(2):
                np.testing.assert_array_equal(rows[player], view_of(model, turn, player))
            is_legal = rng.random() < 0.97
            action = int(rng.choice(model.moves())) if is_legal else -1
            actions = rng.integers(-3, 10, 2)  # the action of the waiting player is ignored
            actions[turn] = action
            *_, infos = env.step(actions)
            won = is_legal and model.play(turn, action)
            over = won or not is_legal or not model.moves()
            result = (1 if won else 0 if is_legal else -1) * (1 if turn == 0 else -1)
            assert env.terminals.tolist() == [over, over]
            assert env.rewards.tolist() == [result, -result]
            turn = 1 - turn
        (info,) = infos
        assert (info["score"], info["perf"], info["illegal"]) == (result, result == 1, not is_legal)
        for player in range(2):
            expected = view_of(model, turn, player)[: COLUMNS * ROWS]
            if is_legal:
                np.testing.assert_array_equal(env.final_observations[player, : COLUMNS * ROWS], expected)
        results.append(result)
    assert {-1, 1} <= set(results)
