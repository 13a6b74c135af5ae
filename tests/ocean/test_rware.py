"""Rules of rware, compared with a Python model. tests/native/rware_rules.c tests constructed positions."""

import numpy as np
import pytest

from pufferlib import ocean

STAY, FORWARD, LEFT, RIGHT, LIFT = range(5)
OUTSIDE, FLOOR, PLACE, SHELF, REQUESTED, GOAL = range(6)
EMPTY, CARRY, RETURN = range(3)
STEPS = [(0, 1), (1, 0), (0, -1), (-1, 0)]  # row and column of right, down, left, up
AROUND = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]


def tiny():
    cells = {(row, column): FLOOR for row in range(11) for column in range(10)}
    cells |= {(row, column): SHELF for row in range(1, 9) for column in (1, 2, 7, 8)}
    return cells | {(10, 4): GOAL, (10, 5): GOAL}


def blocks(rows, both, right, goals):
    cells = {(row, column): FLOOR for row in range(rows) for column in range(20)}
    cells |= {(row, column): SHELF for row in both + right for column in range(11, 19)}
    cells |= {(row, column): SHELF for row in both for column in range(2, 10)}
    return cells | {(row, 0): GOAL for row in goals}


MAPS = {
    1: (11, 10, tiny()),
    2: (10, 20, blocks(10, [1, 2, 7, 8], [4, 5], [4, 5])),
    3: (16, 20, blocks(16, [1, 2, 4, 5, 10, 11, 13, 14], [7, 8], [7, 8])),
}


class Robot:
    """Observation of one robot, split into its parts."""

    def __init__(self, row, rows, columns):
        self.cell = (round(row[25] * (rows - 1)), round(row[26] * (columns - 1)))
        self.heading = STEPS.index((round(row[28]), round(row[27])))
        self.load = round(row[29] * 2)
        self.kind = round(row[24] * 5)
        self.around = [(int(a), round(b * 4), round(c * 5)) for a, b, c in row[:24].reshape(8, 3).tolist()]


class Model:
    """Model of robots that move at the same time. It does not know which shelves are requested."""

    def __init__(self, robots, cells):
        self.robots, self.cells = robots, dict(cells)

    def enters(self, robot, cell):
        kind = self.cells.get(cell, OUTSIDE)
        closed = {EMPTY: {OUTSIDE}, CARRY: {OUTSIDE, SHELF}, RETURN: {OUTSIDE, SHELF, GOAL}}
        return kind not in closed[robot.load]

    def step(self, actions):
        """Move all robots, and return the cell and the heading of each."""
        cells = [robot.cell for robot in self.robots]
        headings = [
            (robot.heading + {LEFT: 3, RIGHT: 1}.get(action, 0)) % 4
            for robot, action in zip(self.robots, actions, strict=True)
        ]
        wants = {}
        for i, (robot, action) in enumerate(zip(self.robots, actions, strict=True)):
            target = tuple(np.add(robot.cell, STEPS[robot.heading]).tolist())
            if action == FORWARD and self.enters(robot, target):
                wants[i] = target
        settled = {i: False for i in range(len(cells)) if i not in wants}
        for i in wants:
            circle = self.circle(i, cells, wants)
            if circle:
                settled.update(dict.fromkeys(circle, len(circle) > 2))
        taken = {wants[i] for i, moves in settled.items() if moves}

        def settle(i):
            if i not in settled:
                in_front = [k for k, cell in enumerate(cells) if cell == wants[i]]
                settled[i] = all(settle(k) for k in in_front) and wants[i] not in taken
                if settled[i]:
                    taken.add(wants[i])
            return settled[i]

        return [wants[i] if settle(i) else cell for i, cell in enumerate(cells)], headings

    def circle(self, start, cells, wants):
        """Return the robots of the circle that contains ``start``, or an empty list."""
        found, i = [start], start
        while i in wants and wants[i] in cells:
            i = cells.index(wants[i])
            if i == start:
                return found
            if i in found:
                return []
            found.append(i)
        return []

    def work(self, robot, action, before):
        """Check the change of a robot's load, and return the reward for it."""
        if robot.load == before.load:
            return 0
        assert action == LIFT
        assert robot.load == (before.load + 1) % 3
        assert self.cells[before.cell] == {EMPTY: SHELF, CARRY: GOAL, RETURN: PLACE}[before.load]
        if before.load != CARRY:
            self.cells[before.cell] = PLACE if before.load == EMPTY else SHELF
        return [0.5, 0.5, 1][before.load]


def look(rows, size):
    return [Robot(row, *size) for row in rows]


def seen(cells, robots, robot):
    """Return the cells that the robot must observe. Requested shelves count as shelves."""
    there = {other.cell: other.heading + 1 for other in robots}
    result = []
    for step in AROUND:
        cell = tuple(np.add(robot.cell, step).tolist())
        result.append((int(cell in there), there.get(cell, 0), cells.get(cell, OUTSIDE)))
    return result


def plain(kind):
    return SHELF if kind == REQUESTED else kind


@pytest.mark.parametrize(("map_choice", "num_agents"), [(1, 4), (1, 24), (2, 16), (3, 40)])
def test_robots_move_like_a_python_model(map_choice, num_agents):
    *size, cells = MAPS[map_choice]
    kwargs = {"map_choice": map_choice, "num_agents": num_agents, "num_requested_shelves": 8, "max_steps": 10_000}
    env = ocean.Rware(num_envs=1, seed=1, **kwargs)
    model = Model(look(env.reset()[0], size), cells)
    assert {cells[robot.cell] for robot in model.robots} == {FLOOR}
    rng = np.random.default_rng(0)
    lifted = 0
    for _ in range(2400 // num_agents):
        actions = rng.choice(5, num_agents, p=[0.05, 0.6, 0.1, 0.1, 0.15])
        before, (expected, headings) = model.robots, model.step(actions)
        env.step(actions)
        model.robots = look(env.observations, size)
        assert [robot.cell for robot in model.robots] == expected
        assert [robot.heading for robot in model.robots] == headings
        paid = [model.work(*row) for row in zip(model.robots, actions, before, strict=True)]
        assert env.rewards.tolist() == paid
        lifted += sum(paid) > 0
        for robot in model.robots:
            around = [(there, heading, plain(kind)) for there, heading, kind in robot.around]
            assert around == seen(model.cells, model.robots, robot)
            assert plain(robot.kind) == model.cells[robot.cell]
    assert lifted


def test_only_requested_shelves_pay():
    env = ocean.Rware(num_envs=64, num_agents=1, num_requested_shelves=1, max_steps=10_000)
    rows, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    tried = set()
    for _ in range(300):
        kinds, loads = np.rint(rows[:, 24] * 5).astype(int), np.rint(rows[:, 29] * 2).astype(int)
        actions = np.where(kinds >= SHELF, LIFT, rng.integers(1, 4, 64))
        tired = rng.random(64) < 0.3
        actions[tired] = FORWARD
        env.step(actions)
        for kind, load, action, reward in zip(kinds, loads, actions, env.rewards.tolist(), strict=True):
            if action == LIFT:
                lifts, delivers = (load, kind) == (EMPTY, REQUESTED), (load, kind) == (CARRY, GOAL)
                assert (reward == 0.5) == (lifts or delivers)
                tried.add((load, int(kind)))
    assert {(EMPTY, SHELF), (EMPTY, REQUESTED), (EMPTY, GOAL)} <= tried


def test_max_steps_truncates():
    env = ocean.Rware(num_envs=2, max_steps=25, log_interval=1)
    env.reset(seed=1)
    for step in range(1, 101):
        infos = env.step([STAY] * 8)[4]
        assert env.truncations.all() == (step % 25 == 0)
        assert not env.terminals.any()
        if step % 25 == 0:
            assert [(info["n"], info["score"], info["episode_length"]) for info in infos] == [(2, 0, 25)]


def test_too_many_robots_and_requests_are_refused():
    with pytest.raises(ValueError, match="num_agents plus num_requested_shelves must be at most"):
        ocean.Rware(num_agents=20, num_requested_shelves=13)
    ocean.Rware(num_agents=20, num_requested_shelves=12).close()
