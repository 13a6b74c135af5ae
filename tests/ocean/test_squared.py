"""Rules of squared, and the abilities that its settings require."""

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean

EMPTY, AGENT, TARGET, HIT = range(4)
MOVES = [(0, 0), (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)]
STAY, DOWN, UP, LEFT, RIGHT = range(5)


def start(size=7, seed=0, **kwargs):
    env = ocean.Squared(num_envs=1, size=size, seed=seed, log_interval=1, **kwargs)
    return env, env.reset()[0].reshape(size, size)


def where(grid, *values):
    return [(int(row), int(column)) for row, column in np.argwhere(np.isin(grid, values))]


def toward(row, column):
    """Action that moves by the sign of both distances."""
    return MOVES.index((int(np.sign(row)), int(np.sign(column))))


def walk(env, grid, cell):
    """Walk from the center to a cell of the edge. Return the last outcome."""
    radius = len(grid) // 2
    row, column = cell[0] - radius, cell[1] - radius
    for _ in range(radius):
        action = toward(row, column)
        row, column = row - MOVES[action][0], column - MOVES[action][1]
        outcome = env.step([action])
    return outcome


def distance(cell, other):
    return max(abs(cell[0] - other[0]), abs(cell[1] - other[1]))


def edge(size):
    return [(r, c) for r in range(size) for c in range(size) if {r, c} & {0, size - 1}]


@pytest.mark.parametrize(("size", "num_targets"), [(3, 8), (3, 1), (7, 4), (11, 16)])
def test_episodes_start_at_the_center_with_targets_on_the_edge(size, num_targets):
    seen = set()
    for seed in range(100):
        _, grid = start(size, seed, num_targets=num_targets)
        assert where(grid, AGENT) == [(size // 2, size // 2)]
        targets = where(grid, TARGET)
        assert len(targets) == num_targets
        seen.update(targets)
    assert seen <= set(edge(size))
    assert size > 7 or seen == set(edge(size)), "targets must be on all cells of the edge"


@pytest.mark.parametrize("action", [*range(9), 9, -1])
def test_actions_are_the_moves_of_a_king(action):
    env, grid = start()
    env.step([action])
    down, right = MOVES[action] if 0 <= action < 9 else (0, 0)
    assert where(grid, AGENT) == [(3 + down, 3 + right)]
    assert env.rewards[0] == 0


@pytest.mark.parametrize("size", [3, 7, 11])
def test_edge_pays_one_minus_the_distance_to_the_nearest_target_not_hit(size):
    for seed in range(3):
        for cell in edge(size):
            env, grid = start(size, seed, num_targets=2)
            left = where(grid, TARGET)
            for _ in range(2):
                expected = 1 - min(distance(cell, target) for target in left) / (size // 2)
                left = [target for target in left if target != cell]
                _, rewards, _, _, _ = walk(env, grid, cell)
                assert rewards[0] == pytest.approx(expected)
                assert -1 <= rewards[0] <= 1
                if not left:
                    break


def test_hit_pays_once_and_returns_the_agent_to_the_center():
    env, grid = start()
    target, *others = where(grid, TARGET)
    _, rewards, terminals, truncations, _ = walk(env, grid, target)
    assert (rewards[0], terminals[0], truncations[0]) == (1, False, False)
    assert where(grid, AGENT) == [(3, 3)]
    assert (where(grid, HIT), where(grid, TARGET)) == ([target], others)
    assert walk(env, grid, target)[1][0] < 1
    assert (where(grid, HIT), where(grid, TARGET)) == ([target], others)


@pytest.mark.parametrize("hits", range(5))
def test_episode_is_a_terminal_after_as_many_visits_as_targets(hits):
    env, grid = start()
    targets = where(grid, TARGET)
    free = next(cell for cell in edge(7) if cell not in targets)
    for visit, target in enumerate(targets):
        _, _, terminals, truncations, infos = walk(env, grid, target if visit < hits else free)
        assert (terminals[0], truncations[0]) == (visit == 3, False)
    assert (infos[0]["score"], infos[0]["perf"], infos[0]["episode_length"]) == (hits / 4, hits == 4, 12)


def test_time_limit_is_a_truncation():
    env, _ = start(size=5, num_targets=3)
    for _ in range(11):
        env.step([STAY])
        assert not env.truncations[0]
    _, rewards, terminals, truncations, infos = env.step([STAY])
    assert (rewards[0], terminals[0], truncations[0]) == (0, False, True)
    assert infos == [{"score": 0, "perf": 0, "episode_return": 0, "episode_length": 12, "n": 1}]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 6}, "size must be odd"),
        ({"size": 3, "num_targets": 9}, r"num_targets must be at most 4 \* \(size - 1\)"),
    ],
)
def test_settings_without_a_center_or_enough_edge_are_refused(settings, message):
    with pytest.raises(pufferlib.APIUsageError, match=message):
        ocean.Squared(**settings)


# ---- Settings ---------------------------------------------------------------------------------------


def test_memory_shows_targets_at_the_center_only():
    env, grid = start(memory=1)
    targets = where(grid, TARGET)
    env.step([DOWN])
    assert where(grid, TARGET, HIT) == []
    env.step([UP])
    assert where(grid, TARGET) == targets, "targets must be visible again at the center"
    walk(env, grid, targets[0])
    assert (where(grid, HIT), where(grid, TARGET)) == (targets[:1], targets[1:])


def test_exploration_hides_targets_at_fixed_places_until_they_are_hit():
    found = []
    for seed in range(3):
        paid = set()
        for cell in edge(7):
            env, grid = start(seed=seed, exploration=1)
            assert where(grid, TARGET) == []
            reward = walk(env, grid, cell)[1][0]
            assert reward in (np.float32(0.1), 1)
            assert where(grid, HIT) == [cell] * int(reward)
            paid |= {cell} if reward == 1 else set()
        found.append(paid)
    assert found == [found[0]] * 3
    assert len(found[0]) == 4


def test_stochasticity_shows_hit_targets_like_others_and_only_a_hit_pays():
    env, grid = start(stochasticity=1)
    targets = where(grid, TARGET)
    free = next(cell for cell in edge(7) if cell not in targets)
    assert walk(env, grid, targets[0])[1][0] == 1
    assert where(grid, TARGET) == targets
    assert walk(env, grid, targets[0])[1][0] == 0
    assert walk(env, grid, free)[1][0] == 0


# ---- Abilities that settings require ----------------------------------------------------------------


class Walker:
    """Scripted policy that walks to targets.

    Args:
        remembers: Whether the policy keeps its target on the way and remembers visited targets.
        draws: Whether the policy chooses a random target instead of the first one.
    """

    def __init__(self, remembers, draws):
        self.remembers, self.draws = remembers, draws
        self.rng, self.goal, self.been = np.random.default_rng(1), None, set()

    def reset(self):
        self.goal, self.been = None, set()

    def act(self, grid):
        radius = len(grid) // 2
        row, column = where(grid, AGENT)[0]
        at_center = (row, column) == (radius, radius)
        goals = where(grid, TARGET)
        if self.remembers:
            goals = [goal for goal in goals if goal not in self.been] or goals
            if not at_center:
                goals = [self.goal]
        else:  # targets that it may be on its way to
            left = radius - distance((row, column), (radius, radius))
            goals = [goal for goal in goals if distance(goal, (row, column)) == left]
        if not goals:  # no target is visible
            return toward(row - radius, column - radius) or DOWN
        self.goal = goals[self.rng.integers(len(goals))] if self.draws else goals[0]
        if distance(self.goal, (row, column)) == 1:
            self.been.add(self.goal)
        return toward(self.goal[0] - row, self.goal[1] - column)


def score(walker, episodes=60, **settings):
    env, grid = start(**settings)
    scores = []
    while len(scores) < episodes:
        infos = env.step([walker.act(grid)])[4]
        if infos:
            scores.append(infos[0]["score"])
            walker.reset()
    return np.mean(scores)


PLAIN, DRAWING, REMEMBERING = (False, False), (False, True), (True, False)


@pytest.mark.parametrize(
    ("settings", "abilities", "low", "high"),
    [
        ({}, PLAIN, 1, 1),
        ({"memory": 1}, PLAIN, 0, 0.6),
        ({"memory": 1}, DRAWING, 0, 0.6),
        ({"memory": 1}, REMEMBERING, 1, 1),
        ({"stochasticity": 1}, PLAIN, 0.25, 0.25),
        ({"stochasticity": 1}, DRAWING, 0.6, 0.75),  # 1 - (3/4) ** 4 is 0.68
        ({"stochasticity": 1}, REMEMBERING, 1, 1),
        ({"stochasticity": 1, "memory": 1}, DRAWING, 0, 0.6),
        ({"stochasticity": 1, "memory": 1}, REMEMBERING, 1, 1),
    ],
)
def test_policies_without_the_required_ability_score_less(settings, abilities, low, high):
    assert low <= score(Walker(*abilities), **settings) <= high


@pytest.mark.all
@pytest.mark.parametrize(("exploration", "low", "high"), [(0.0, 0, 0.5), (0.2, 0.9, 1)])
def test_learner_that_never_explores_scores_less(exploration, low, high):
    """Tabular Q-learning. Without exploration it keeps the first target that it found."""
    final = []
    for seed in range(4):
        env, grid = start(size=5, exploration=1, num_targets=3)
        rng, table = np.random.default_rng(seed), {}
        scores = []
        for episode in range(4000):
            chance = exploration * (episode < 3800)
            infos, key = [], grid.tobytes()
            while not infos:
                values = table.setdefault(key, np.zeros(9))
                best = rng.choice(np.flatnonzero(values == values.max()))
                action = int(rng.integers(9)) if rng.random() < chance else int(best)
                _, rewards, _, _, infos = env.step([action])
                key = grid.tobytes()
                ahead = 0 if infos else table.setdefault(key, np.zeros(9)).max()
                values[action] += 0.5 * (rewards[0] + 0.9 * ahead - values[action])
            scores.append(infos[0]["score"])
        final.append(np.mean(scores[-200:]))
    assert low <= np.mean(final) <= high, final
