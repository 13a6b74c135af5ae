"""The rules of squared."""

import numpy as np
import pytest

from pufferlib import ocean

STAY, DOWN, UP, LEFT, RIGHT = range(5)


def start(size=11, seed=0, **kwargs):
    env = ocean.Squared(num_envs=1, size=size, seed=seed, **kwargs)
    grid = env.reset()[0].reshape(size, size)
    return env, grid


def where(grid, value):
    (cell,) = np.argwhere(grid == value)
    return tuple(cell)


def walk_to_target(env, grid):
    """Steps along the rows, then the columns; returns the last outcome."""
    row, column = np.array(where(grid, 2)) - where(grid, 1)
    path = [DOWN if row > 0 else UP] * abs(row) + [RIGHT if column > 0 else LEFT] * abs(column)
    for action in path:
        outcome = env.step([action])
    return outcome


@pytest.mark.parametrize("size", [2, 3, 8, 11])
def test_an_episode_begins_in_the_centre_with_one_target(size):
    seen = set()
    for seed in range(200):
        _, grid = start(size, seed)
        assert where(grid, 1) == (size // 2, size // 2)
        assert (grid == 0).sum() == size * size - 2
        seen.add(where(grid, 2))
    if size <= 3:
        assert len(seen) == size * size - 1, "the target may be on any cell but the centre"


@pytest.mark.parametrize(
    ("action", "move"),
    [(STAY, (0, 0)), (DOWN, (1, 0)), (UP, (-1, 0)), (LEFT, (0, -1)), (RIGHT, (0, 1)), (5, (0, 0)), (-1, (0, 0))],
)
def test_actions_move_by_one_cell(action, move):
    env, grid = start()
    target = where(grid, 2)
    env.step([action])
    assert where(grid, 1) == (5 + move[0], 5 + move[1])
    assert where(grid, 2) == target
    assert env.rewards[0] == 0


def test_the_target_pays_one_and_ends_the_task():
    env, grid = start(log_interval=1)
    _, rewards, terminals, truncations, infos = walk_to_target(env, grid)
    assert (rewards[0], terminals[0], truncations[0]) == (1, True, False)
    assert infos[0]["score"] == infos[0]["perf"] == infos[0]["episode_return"] == 1
    last = env.final_observations[0]
    assert (last == 1).sum() == 1
    assert not (last == 2).any(), "the agent stands on the target"
    assert where(grid, 1) == (5, 5), "the next episode has begun"


def test_leaving_the_grid_costs_one_and_ends_the_task():
    for action in (DOWN, UP, LEFT, RIGHT):
        env, grid = start(size=3, log_interval=1, seed=next(s for s in range(50) if not on_the_way(s, action)))
        env.step([action])
        _, rewards, terminals, truncations, infos = env.step([action])
        assert (rewards[0], terminals[0], truncations[0]) == (-1, True, False)
        assert (infos[0]["score"], infos[0]["perf"], infos[0]["episode_length"]) == (-1, 0, 2)
        assert not (env.final_observations[0] == 1).any(), "the agent is gone"
        assert where(grid, 1) == (1, 1)


def on_the_way(seed, action):
    _, grid = start(size=3, seed=seed)
    row, column = {DOWN: (2, 1), UP: (0, 1), LEFT: (1, 0), RIGHT: (1, 2)}[action]
    return grid[row, column] == 2


def test_time_is_a_truncation_and_costs_nothing():
    env, grid = start(size=4, log_interval=12)
    for _ in range(11):
        env.step([STAY])
        assert not env.truncations[0]
    _, rewards, terminals, truncations, infos = env.step([STAY])
    assert (rewards[0], terminals[0], truncations[0]) == (0, False, True)
    assert infos == [
        {"score": 0, "perf": 0, "episode_return": 0, "episode_length": 12, "n": 1},
    ]
    assert where(grid, 1) == (2, 2)


def test_the_target_on_the_last_step_is_reached_in_time():
    env, grid = start(size=3)
    row, column = np.array(where(grid, 2)) - where(grid, 1)
    for _ in range(9 - abs(row) - abs(column)):
        env.step([STAY])
    _, rewards, terminals, truncations, _ = walk_to_target(env, grid)
    assert (rewards[0], terminals[0], truncations[0]) == (1, True, False)
