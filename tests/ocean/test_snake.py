"""Rules and policy of snake. tests/native/snake_rules.c tests constructed positions."""

import numpy as np
import pytest
import torch

from pufferlib import ocean, registry
from pufferlib.models import make_policy
from tests.tiers import once

UP, DOWN, LEFT, RIGHT = range(4)
EMPTY, FOOD, CORPSE, WALL, OWN_BODY, BODY, OWN_HEAD, HEAD = range(8)


class Random:
    """PCG32 generator, like the one in puffer_env.h."""

    def __init__(self, seed):
        self.state = seed + 1442695040888963407
        self.word()
        self.state += seed
        self.word()

    def word(self):
        old = self.state % 2**64
        self.state = old * 6364136223846793005 + 1442695040888963407
        word, turn = ((old >> 18) ^ old) >> 27 & 0xFFFFFFFF, old >> 59
        return (word >> turn | word << (-turn & 31)) & 0xFFFFFFFF

    def below(self, bound):
        return self.word() * bound >> 32


class Model:
    """Python model of the rules. A cell is (row, column), and a snake is a list of cells from its head on."""

    def __init__(self, seed, **kwargs):
        self.__dict__.update(kwargs)
        self.rng = Random(seed)
        self.things = {}  # FOOD or CORPSE, by cell
        self.snakes = []
        self.headings = [(-1, 0)] * self.num_snakes
        self.ages = [0] * self.num_snakes
        self.returns = [0.0] * self.num_snakes
        for _ in range(self.num_snakes):
            self.snakes.append([self.find(EMPTY)])
        self.due = self.num_food
        self.sow()

    def look(self, cell):
        if not (0 <= cell[0] < self.height and 0 <= cell[1] < self.width):
            return WALL
        for snake in self.snakes:
            if cell in snake:
                return HEAD if cell == snake[0] else BODY
        return self.things.get(cell, EMPTY)

    def find(self, other):
        for _ in range(32):
            cell = self.rng.below(self.height), self.rng.below(self.width)
            if self.look(cell) in (EMPTY, other):
                return cell
        return None

    def sow(self):
        while self.due and (cell := self.find(EMPTY)):
            self.things[cell] = FOOD
            self.due -= 1

    def step(self, actions):
        """Returns rewards, terminals, truncations and the (score, return, steps) of the lives that ended."""
        self.rewards = np.zeros(self.num_snakes, np.float32)
        self.terminals = np.zeros(self.num_snakes, bool)
        self.ended = []
        for i, action in enumerate(actions):
            self.move(i, int(action))
        self.sow()
        truncations = np.array([age >= self.max_life for age in self.ages])
        for i in np.flatnonzero(truncations):
            self.end(i)
        return self.rewards, self.terminals, truncations, self.ended

    def move(self, i, action):
        snake = self.snakes[i]
        moves = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}
        down, right = moves.get(action, self.headings[i])
        if len(snake) > 1 and (down, right) == (-self.headings[i][0], -self.headings[i][1]):
            down, right = self.headings[i]
        self.headings[i] = down, right
        self.ages[i] += 1
        cell = snake[0][0] + down, snake[0][1] + right
        found = self.look(cell)
        if found >= WALL:
            self.rewards[i] = self.reward_death
            self.returns[i] += self.reward_death
            self.terminals[i] = True
            self.end(i)
            return
        self.rewards[i] = {EMPTY: 0, FOOD: self.reward_food, CORPSE: self.reward_corpse}[found]
        self.returns[i] += float(self.rewards[i])
        self.due += found == FOOD
        self.things.pop(cell, None)
        snake.insert(0, cell)
        if found == EMPTY or len(snake) > self.max_snake_length:
            snake.pop()

    def end(self, i):
        snake = self.snakes[i]
        self.ended.append((len(snake), self.returns[i], self.ages[i]))
        self.snakes[i] = []
        if self.leave_corpse_on_death:
            self.things.update(dict.fromkeys(snake[::2], CORPSE))
        cell = self.find(CORPSE) or snake[0]
        self.things.pop(cell, None)
        self.snakes[i] = [cell]
        self.headings[i] = (-1, 0)
        self.ages[i] = self.returns[i] = 0

    def observations(self):
        margin = self.vision
        world = np.full((self.height + 2 * margin, self.width + 2 * margin), WALL, np.int8)
        inside = world[margin : margin + self.height, margin : margin + self.width]
        inside[:] = EMPTY
        for cell, thing in self.things.items():
            inside[cell] = thing
        for snake in self.snakes:
            for cell in snake:
                inside[cell] = HEAD if cell == snake[0] else BODY
        crops = []
        for snake in self.snakes:
            own = world.copy()
            for row, column in snake:
                own[margin + row, margin + column] -= 1
            row, column = snake[0]
            crops.append(own[row : row + 2 * margin + 1, column : column + 2 * margin + 1])
        return np.array(crops)


DEFAULTS = {
    "width": 16,
    "height": 12,
    "num_snakes": 6,
    "num_food": 30,
    "vision": 5,
    "max_snake_length": 1024,
    "max_life": 10_000,
    "leave_corpse_on_death": True,
    "reward_food": 0.1,
    "reward_corpse": 0.1,
    "reward_death": -1.0,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_snakes": 40, "num_food": 50, "reward_corpse": 0.25},
        {"num_snakes": 1, "num_food": 90, "max_snake_length": 5},
        {"width": 4, "height": 5, "num_snakes": 3, "num_food": 7, "vision": 2},
        {"width": 40, "height": 4, "vision": 9, "max_life": 7},
        {"leave_corpse_on_death": False, "num_food": 90, "max_snake_length": 3, "vision": 8, "reward_death": -0.5},
    ],
)
def test_steps_match_a_python_model(changes):
    parameters = {**DEFAULTS, **changes}
    env = ocean.Snake(num_envs=1, log_interval=1, **parameters)
    rng = np.random.default_rng(3)
    observations, _ = env.reset(seed=9)
    model = Model(9, **parameters)
    ends = 0
    for _ in range(150):
        np.testing.assert_array_equal(observations, model.observations())
        # Mostly straight ahead, so that snakes grow, because 4 and -1 are invalid.
        actions = rng.choice([UP, DOWN, LEFT, RIGHT, 4, -1], model.num_snakes, p=[0.1, 0.1, 0.1, 0.1, 0.3, 0.3])
        observations, rewards, terminals, truncations, infos = env.step(actions)
        expected = model.step(actions)
        for ours, theirs in zip((rewards, terminals, truncations), expected[:3], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        check_report(infos, expected[3], model.max_snake_length)
        ends += len(expected[3])
        assert list(model.things.values()).count(FOOD) + model.due == model.num_food
    assert ends > 3


def check_report(infos, ended, max_snake_length):
    assert len(infos) == (len(ended) > 0)
    for info in infos:
        lengths, returns, steps = np.mean(ended, axis=0)
        assert info["n"] == len(ended)
        assert info["score"] == pytest.approx(lengths)
        assert info["perf"] == pytest.approx(lengths / max_snake_length)
        assert info["episode_return"] == pytest.approx(returns, abs=1e-5)
        assert info["episode_length"] == pytest.approx(steps)


def test_observations_of_many_snakes_are_consistent():
    """With random actions, the middle of each observation must be the own head."""
    env = ocean.Snake(num_envs=2, width=640, height=360, num_snakes=256, num_food=20_000)
    observations, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        env.step(rng.integers(0, 4, 512))
        assert (observations[:, 5, 5] == OWN_HEAD).all()
        assert ((observations == OWN_HEAD).sum(axis=(1, 2)) == 1).all()
        own = (observations == OWN_BODY).sum(axis=(1, 2))
        beside = observations[:, [4, 6, 5, 5], [5, 5, 4, 6]] == OWN_BODY
        assert (beside.any(axis=1) == (own > 0)).all(), "the neck must be beside the head"
    assert own.max() > 3


def test_amount_of_food_is_constant():
    """100,000 random steps on small maps, of which every snake sees all cells."""
    games, steps, snakes, food = 250, 400, 3, 20
    sizes = {"width": 10, "height": 9, "num_snakes": snakes, "num_food": food, "vision": 10}
    env = ocean.Snake(num_envs=games, leave_corpse_on_death=False, **sizes)
    observations, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    deaths = eaten = 0
    for _ in range(steps):
        env.step(rng.integers(0, 4, games * snakes))
        deaths += env.terminals.sum()
        eaten += (env.rewards > 0).sum()
        assert ((observations == FOOD).sum(axis=(1, 2)) == food).all()
        assert ((observations != WALL).sum(axis=(1, 2)) == 10 * 9).all()
    assert deaths > 1000
    assert eaten > 1000


def test_truncated_life_has_a_final_observation():
    env = ocean.Snake(num_envs=1, width=30, height=30, num_snakes=1, num_food=0, max_life=3)
    env.reset(seed=4)
    for _ in range(2):
        env.step([RIGHT])
        assert not env.truncations[0]
    env.step([RIGHT])
    assert (env.truncations[0], env.terminals[0], env.rewards[0]) == (True, False, 0)
    assert env.final_observations[0, 5, 5] == OWN_HEAD


def test_small_maps_are_refused():
    with pytest.raises(ValueError, match="num_snakes plus num_food must be at most half of width times height"):
        ocean.Snake(width=10, height=10, num_snakes=10, num_food=41)


# ---- The policy -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lives():
    """Observations ``(steps, agents, 11, 11)``, starts of lives, and lengths of snakes that eat and seldom die."""
    env = ocean.Snake(num_envs=2, num_snakes=8, width=24, height=20, num_food=60)
    rng = np.random.default_rng(0)
    observations, _ = env.reset(seed=3)
    seen, starts, lengths = [observations.copy()], [np.ones(env.num_agents, bool)], [np.ones(env.num_agents, int)]
    for _ in range(250):
        ahead = seen[-1][:, [4, 6, 5, 5], [5, 5, 4, 6]]
        wish = rng.random(ahead.shape) + 2 * np.isin(ahead, (FOOD, CORPSE)) - 9 * (ahead >= WALL)
        _, rewards, terminals, truncations, _ = env.step(wish.argmax(-1))
        starts.append(terminals | truncations)
        seen.append(env.observations.copy())
        lengths.append(np.where(starts[-1], 1, lengths[-1] + (rewards > 0)))
    assert max(map(max, lengths)) > 20
    assert sum(map(sum, starts)) > 50
    return torch.from_numpy(np.stack(seen)), torch.from_numpy(np.stack(starts)), np.stack(lengths)


@pytest.fixture
def policy():
    return make_policy(ocean.Snake(), "Snake", hidden_size=16, more=registry.policies("snake"))


def memories(policy, observations, starts):
    """Yield the memory after each step."""
    state = policy.initial_state(observations.shape[1])
    for step, begins in zip(observations, starts, strict=True):
        for part in state.values():
            part[begins] = 0
        state = policy.remember(step, state)
        yield state


def test_snake_policy_remembers_length_and_body(policy, lives):
    observations, starts, lengths = lives
    wrong = unknown = 0
    for seen, length, state in zip(observations, lengths, memories(policy, observations, starts), strict=True):
        wrong += int((state["length"].numpy() != length).sum())
        trail = state["trail"][:, 5:16, 5:16]
        body = (trail > 0) & (trail < state["length"][:, None, None])
        assert not (body & (seen != OWN_BODY)).any()
        unknown += int((~body & (seen == OWN_BODY)).sum())
    assert wrong < 0.02 * lengths.size  # wrong if it ate the corpse of a snake that died in the same step
    assert unknown < 0.01 * (observations == OWN_BODY).sum()  # parts that were more than ten cells away in the meantime


def test_snake_policy_segments_match_single_steps(policy, lives):
    observations, starts, _ = lives
    state = policy.initial_state(observations.shape[1])
    begin = {name: part.clone() for name, part in state.items()}
    params, values = policy.forward(observations[:60], begin, starts[:60])
    for step in range(60):
        for part in state.values():
            part[starts[step]] = 0
        expected, value = policy.forward_eval(observations[step], state)
        torch.testing.assert_close(params[step], expected)
        torch.testing.assert_close(values[step], value)


def test_snake_policy_counts_reachable_cells(policy, lives):
    observations, starts, _ = lives
    policy.encoder = torch.nn.Identity()
    for step, state in enumerate(memories(policy, observations, starts)):
        if step % 50 == 49:
            areas = policy.encode(observations[step], state)[:, 6 * 121 : 6 * 121 + 4] * 100
            for row, seen in enumerate(observations[step].numpy()):
                trail, length = state["trail"][row].numpy(), int(state["length"][row])
                assert areas[row].round().tolist() == [reached(seen, trail, length, move) for move in range(4)]


def reached(seen, trail, length, move):
    """Count the cells within 16 steps after a move, by breadth-first search. Body cells count once they are free."""
    free_from = np.where((trail > 0) & (trail < length), length - trail.astype(int), 0)
    out_of_view = np.ones((21, 21), bool)
    out_of_view[5:16, 5:16] = False
    view = np.pad(seen, 5)
    is_blocked = np.where(out_of_view, free_from > 0, view >= WALL)
    is_blocked[10, 10] = True
    due = np.where(is_blocked, free_from, 0)
    y, x = [(9, 10), (11, 10), (10, 9), (10, 11)][move]
    cells = set() if is_blocked[y, x] else {(y, x)}
    for step in range(16):
        time = (1, 4, 8, 12)[step // 4]
        wider = {(y + dy, x + dx) for y, x in cells for dy, dx in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))}
        inside = {(y, x) for y, x in wider if 0 <= y < 21 and 0 <= x < 21}
        cells = {cell for cell in inside if not is_blocked[cell] or 0 < due[cell] < time}
    return len(cells)


@pytest.mark.parametrize("vision", once([1, 5, 10], [5]))
def test_snake_policy_loops_match_torch(vision):
    env = ocean.Snake(num_envs=2, num_snakes=8, width=40, height=40, num_food=300, vision=vision)
    policy = make_policy(env, "Snake", hidden_size=16, more=registry.policies("snake"))
    policy.encoder = torch.nn.Identity()
    rng = np.random.default_rng(0)
    observations, _ = env.reset(seed=3)
    seen, starts = [observations.copy()], [np.ones(env.num_agents, bool)]
    for _ in range(150):
        ahead = observations[:, [vision - 1, vision + 1, vision, vision], [vision, vision, vision - 1, vision + 1]]
        _, _, terminals, truncations, _ = env.step((rng.random(ahead.shape) - 9 * (ahead >= WALL)).argmax(-1))
        seen.append(env.observations.copy())
        starts.append(terminals | truncations)
    segment, begins = torch.from_numpy(np.stack(seen)), torch.from_numpy(np.stack(starts))
    loops, by_torch = policy.initial_state(env.num_agents), policy.initial_state(env.num_agents)
    for step, begin in zip(segment, begins, strict=True):
        for part in [*loops.values(), *by_torch.values()]:
            part[begin] = 0
        loops = policy.remember(step, loops)
        by_torch = policy.remember(step.int(), by_torch)  # the loops do not support int32, so torch is used
        assert all(torch.equal(loops[name], by_torch[name]) for name in by_torch)
        torch.testing.assert_close(policy.encode(step, loops), policy.encode(step.int(), by_torch))
    assert loops["length"].max() > 5
    assert (loops["trail"] == 0).any()


def test_snake_policy_loops_refuse_wrong_shapes():
    env = ocean.Snake(num_envs=1, num_snakes=2, width=30, height=30, num_food=20)
    policy = make_policy(env, "Snake", hidden_size=16, more=registry.policies("snake"))
    observations = torch.from_numpy(env.reset(seed=1)[0])
    with pytest.raises(ValueError, match="snake's memory: expected all arrays for 1 steps of 2 rows"):
        policy.remember(observations, policy.initial_state(3))
    with pytest.raises(ValueError, match="snake's inputs: expected all arrays for 2 rows"):
        policy.encode(observations, policy.initial_state(3))
    with pytest.raises(ValueError, match="expected a square view of at most 21 x 21 cells, got 90 cells"):
        policy.remember(observations[:, :9, :10], policy.initial_state(2))
