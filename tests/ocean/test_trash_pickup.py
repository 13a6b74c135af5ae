"""Rules of trash pickup."""

import numpy as np
import pytest

from pufferlib import ocean

UP, DOWN, LEFT, RIGHT = range(4)
MOVES = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}
EMPTY, TRASH, BIN, AGENT, CARRYING = range(5)


def letters_of(observation):
    """Return the observed grid as letters: Trash, Bin, Agent, Carrying agent, # outside. The agent is in the middle."""
    letters = np.full(observation.shape[1:], "#")
    for channel, letter in enumerate(".TBAC"):
        letters[observation[channel] == 1] = letter
    return letters


def row_of(env, view=None):
    """Return the objects in the row of agent 0, without walls."""
    letters = letters_of(env.observations[0] if view is None else view)
    return "".join(letters[len(letters) // 2]).strip("#")


def start(row, **kwargs):
    """Make an environment in which the row of the first agent starts as ``row``."""
    parameters = {"grid_size": max(3, len(row)), "num_agents": 1, "num_trash": 1, "num_bins": 1, "log_interval": 1}
    env = ocean.TrashPickup(num_envs=1, agent_sight_range=5, **{**parameters, **kwargs})
    for seed in range(20_000):
        env.reset(seed=seed)
        if row_of(env) == row:
            return env
    raise AssertionError(f"no seed gives {row}")


def play(env, *actions):
    """Act, and return the rewards of agent 0 and its row after that."""
    rewards = []
    for action in actions:
        env.step([action] * env.num_agents)
        rewards.append(float(env.rewards[0]))
    return rewards, row_of(env)


@pytest.mark.parametrize(
    ("row", "actions", "rewards", "then"),
    [
        ("A..", [RIGHT], [0], ".A."),
        ("A..", [LEFT], [0], "A.."),  # against the wall
        ("A..", [4], [0], "A.."),  # invalid action
        ("A..", [-1], [0], "A.."),
        ("AT.", [RIGHT], [0.5], ".C."),
        (".AB", [RIGHT], [0], ".AB"),  # the bin stands against the wall
        ("AB.", [RIGHT], [0], ".AB"),
        ("ABT", [RIGHT], [0], "ABT"),
        ("AB..", [RIGHT, RIGHT, RIGHT], [0, 0, 0], "..AB"),
        ("TA.B", [LEFT, RIGHT, RIGHT], [0.5, 0, 0], "..CB"),
        ("ATTB", [RIGHT, RIGHT], [0.5, 0], ".CTB"),  # the agent already carries a piece
        ("ATB..", [RIGHT, RIGHT, RIGHT], [0.5, 0.5, 0], "..AB."),  # after the deposit it pushes the bin
        ("A.A.", [RIGHT], [0], ".A.A"),
    ],
)
def test_moves_pick_up_push_deposit_or_are_blocked(row, actions, rewards, then):
    agents = sum(letter in "AC" for letter in row)
    trash = max(2, row.count("T"))  # one more elsewhere, so that the game continues
    env = start(row, num_agents=agents, num_trash=trash)
    assert play(env, *actions) == (rewards, then)


def test_agent_can_enter_a_cell_left_by_an_earlier_agent():
    env = start("AA..", num_agents=2)
    first_is_left = letters_of(env.observations[0])[5, 6] == "A"
    assert play(env, RIGHT)[1] == ("A.A." if first_is_left else ".AA.")


def test_first_agent_gets_a_contested_piece():
    env = start("ATA", num_agents=2, num_trash=2)
    first_is_left = letters_of(env.observations[0])[5, 6] == "T"
    env.step([RIGHT, LEFT] if first_is_left else [LEFT, RIGHT])
    assert env.rewards.tolist() == [0.5, 0]
    assert row_of(env) == (".CA" if first_is_left else "AC.")


def test_last_deposit_is_terminal_for_all_agents():
    env = start("ATB", num_agents=2, reward_pickup=0.25, reward_deposit=2)
    env.step([RIGHT, 4])
    assert (env.rewards[0], env.terminals.any()) == (0.25, False)
    *_, infos = env.step([RIGHT, 4])
    assert env.rewards.tolist() == [2, 0]
    assert env.terminals.all()
    assert not env.truncations.any()
    assert row_of(env, env.final_observations[0]) == ".AB"
    assert infos == [{"score": 1, "perf": 1, "episode_return": 2.25 / 2, "episode_length": 2, "n": 1}]


def test_max_steps_truncates():
    env = start("ATB", num_trash=2, max_steps=10)
    infos = [env.step([action])[4] for action in [RIGHT, RIGHT] + [4] * 8]
    assert env.truncations.all()
    assert not env.terminals.any()
    assert infos[-1] == [{"score": 1, "perf": 0.5, "episode_return": 1, "episode_length": 10, "n": 1}]
    assert not any(infos[:-1])


def test_carried_pieces_do_not_count_in_the_score():
    env = start("AT.", max_steps=10)
    infos = [env.step([action])[4] for action in [RIGHT] + [4] * 9]
    assert infos[-1][0]["score"] == 0


class Model:
    """Python model of the rules, which starts with the grid of the first observation."""

    def __init__(self, grid, starts):
        self.grid = {cell: letter for cell, letter in np.ndenumerate(grid) if letter in "TB"}
        self.size = len(grid)
        self.agents = list(starts)
        self.carries = [False] * len(starts)
        self.deposited = 0

    def look(self, cell):
        if not all(0 <= index < self.size for index in cell):
            return "#"
        return "A" if cell in self.agents else self.grid.get(cell, ".")

    def act(self, i, action):
        if action not in MOVES:
            return 0
        down, right = MOVES[action]
        (row, column), carries = self.agents[i], self.carries[i]
        cell, behind = (row + down, column + right), (row + 2 * down, column + 2 * right)
        found = self.look(cell)
        if found == ".":
            self.agents[i] = cell
        elif found == "T" and not carries:
            del self.grid[cell]
            self.agents[i], self.carries[i] = cell, True
            return 0.5
        elif found == "B" and carries:
            self.carries[i] = False
            self.deposited += 1
            return 0.5
        elif found == "B" and self.look(behind) == ".":
            del self.grid[cell]
            self.grid[behind] = "B"
            self.agents[i] = cell
        return 0

    def observations(self, sight):
        world = np.zeros((5, self.size + 2 * sight, self.size + 2 * sight), np.int8)
        inside = world[:, sight : sight + self.size, sight : sight + self.size]
        for cell in np.ndindex(self.size, self.size):
            inside[(".TBA".index(self.look(cell)), *cell)] = 1
        for (row, column), carries in zip(self.agents, self.carries, strict=True):
            inside[CARRYING, row, column] = carries
        side = 2 * sight + 1
        return np.array([world[:, row : row + side, column : column + side] for row, column in self.agents])


def whole_grid(observations, size, sight):
    """Return the grid and the places of agents, from first observations in which every agent sees the whole grid."""
    starts, grids = [], []
    for observation in observations:
        letters = letters_of(observation)
        rows, columns = np.nonzero(letters != "#")
        starts.append((sight - rows.min(), sight - columns.min()))
        grids.append(letters[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1])
    assert all(np.array_equal(grid, grids[0]) for grid in grids)
    assert grids[0].shape == (size, size)
    return grids[0], starts


@pytest.mark.parametrize(
    ("size", "agents", "trash", "bins"), [(10, 3, 15, 2), (7, 12, 20, 5), (3, 2, 3, 2), (11, 9, 60, 6)]
)
def test_steps_match_a_python_model(size, agents, trash, bins):
    env = ocean.TrashPickup(
        num_envs=1, grid_size=size, num_agents=agents, num_trash=trash, num_bins=bins, agent_sight_range=10
    )
    rng = np.random.default_rng(1)
    observations, _ = env.reset(seed=2)
    model = Model(*whole_grid(observations, size, 10))
    for _ in range(200):
        np.testing.assert_array_equal(observations, model.observations(10))
        counts = [int((observations[0, channel] == 1).sum()) for channel in (TRASH, BIN, AGENT, CARRYING)]
        assert counts == [trash - model.deposited - counts[3], bins, agents, sum(model.carries)]
        actions = rng.integers(-1, 5, agents)
        env.step(actions)
        assert env.rewards.tolist() == [model.act(i, action) for i, action in enumerate(actions)]
        assert env.terminals.all() == (model.deposited == trash)
        if env.terminals.all():
            break
    assert model.deposited > 0


def test_number_of_pieces_is_constant():
    """100,000 random steps on small grids, of which every agent sees all cells."""
    games, steps, agents, trash, bins = 250, 400, 3, 15, 4
    sizes = {"grid_size": 8, "num_agents": agents, "num_trash": trash, "num_bins": bins, "agent_sight_range": 10}
    env = ocean.TrashPickup(num_envs=games, reward_pickup=1, reward_deposit=100, **sizes)
    observations, _ = env.reset(seed=2)
    rng = np.random.default_rng(1)
    left = np.full(games, trash)
    for _ in range(steps):
        env.step(rng.integers(0, 4, games * agents))
        over = env.terminals | env.truncations
        seen = np.where(over[:, None, None, None], env.final_observations, observations)
        counts = (seen[::agents] == 1).sum(axis=(2, 3))
        left -= (env.rewards.reshape(games, agents) == 100).sum(axis=1)
        np.testing.assert_array_equal(counts[:, TRASH] + counts[:, CARRYING], left)
        assert (counts[:, BIN] == bins).all()
        assert (counts[:, AGENT] == agents).all()
        left[over[::agents]] = trash
    assert (left < trash).any()


def test_short_sight_is_the_middle_of_long_sight():
    far = ocean.TrashPickup(num_envs=2, agent_sight_range=10)
    near = ocean.TrashPickup(num_envs=2, agent_sight_range=3)
    rng = np.random.default_rng(0)
    far.reset(seed=5)
    near.reset(seed=5)
    for _ in range(320):  # beyond the end of the first episode
        np.testing.assert_array_equal(near.observations, far.observations[:, :, 7:14, 7:14])
        actions = rng.integers(0, 4, 6)
        far.step(actions)
        near.step(actions)


def test_small_grids_are_refused():
    with pytest.raises(ValueError, match="must be less than grid_size squared"):
        ocean.TrashPickup(grid_size=4, num_agents=5, num_trash=9, num_bins=2)
