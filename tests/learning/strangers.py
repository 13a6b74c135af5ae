"""Small tasks as users write them, with odd scales, spaces and rewards. Automatic settings must learn each of them.

Each class is a complete Gymnasium environment, written without this library in mind: scales are those of the task,
observations may have any dtype, and nothing is normalized. ``TASKS`` gives the steps and the mean return of an episode
that a correct learner reaches with them, and what random play gets.
"""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


class Reach(gymnasium.Env):
    """Move a point in the plane to a target. Actions are velocities."""

    scale, reward_scale, center, length = 1.0, 1.0, 0.0, 40

    def __init__(self):
        self.observation_space = Box(-np.inf, np.inf, (4,), np.float64)
        self.action_space = Box(self.center - self.scale, self.center + self.scale, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.target = self.np_random.uniform(-1, 1, (2, 2))
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return np.concatenate([self.place, self.target])

    def step(self, action):
        velocity = (np.clip(action, self.action_space.low, self.action_space.high) - self.center) / self.scale
        self.place = np.clip(self.place + 0.1 * velocity, -2, 2)
        self.steps += 1
        reward = -float(np.linalg.norm(self.place - self.target)) * self.reward_scale
        return self.observe(), reward, False, self.steps >= self.length, {}


class ReachWithForces(Reach):
    """The same with actions in newtons, of up to 250, and costs of some 100,000."""

    scale, reward_scale = 250.0, 1e5


class ReachWithTinyActions(Reach):
    """The same with actions in metres per tick, below 0.01."""

    scale = 0.01


class ReachWithPositiveActions(Reach):
    """The same with actions from 0 to 1000, of which 500 is no movement."""

    scale, center = 500.0, 500.0


class ReachInOddUnits(Reach):
    """The same, observed in millimetres east and in kilometres north, far from the origin."""

    def observe(self):
        (x, y), (to_x, to_y) = self.place, self.target
        return np.array([x * 1e4 + 5e4, y * 1e-3, to_x * 1e4 + 5e4, to_y * 1e-3])


class ReachForCents(Reach):
    """The same with rewards of thousandths."""

    reward_scale = 1e-3


class ManyJoints(gymnasium.Env):
    """Bring eight joints, each with a position and a speed, to rest at 0 at low cost."""

    def __init__(self):
        self.observation_space = Box(-np.inf, np.inf, (16,), np.float64)
        self.action_space = Box(-0.4, 0.4, (8,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.speed, self.steps = self.np_random.uniform(-1, 1, 8), np.zeros(8), 0
        return np.concatenate([self.position, self.speed]), {}

    def step(self, action):
        self.speed = 0.9 * self.speed + 0.25 * np.clip(action, -0.4, 0.4)
        self.position = self.position + self.speed
        self.steps += 1
        reward = -np.mean(self.position**2) - 0.1 * np.mean(np.square(action))
        return np.concatenate([self.position, self.speed]), reward, False, self.steps >= 60, {}


class Quadrant(gymnasium.Env):
    """Name the quadrant of an image that is lit. Images are float32 from 0 to 1."""

    def __init__(self):
        self.observation_space = Box(0.0, 1.0, (16, 16, 1), np.float32)
        self.action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.draw(), {}

    def draw(self):
        self.lit = int(self.np_random.integers(4))
        image = self.np_random.uniform(0, 0.3, (16, 16, 1)).astype(np.float32)
        row, column = 8 * (self.lit // 2) + self.np_random.integers(6), 8 * (self.lit % 2) + self.np_random.integers(6)
        image[row : row + 3, column : column + 3] += 0.7
        return image

    def step(self, action):
        reward = float(action == self.lit)
        self.steps += 1
        return self.draw(), reward, False, self.steps >= 25, {}


class QuadrantInColour(Quadrant):
    """The same with an image of bytes in three colours."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box(0, 255, (40, 40, 3), np.uint8)

    def draw(self):
        image = np.kron(super().draw()[..., 0], np.ones((3, 3)))[:40, :40, None] * [255, 200, 40]
        return image.astype(np.uint8)


class Shop(gymnasium.Env):
    """Order what is asked for, from a Dict of stock, prices and a wish. Numbers have the scales of their units."""

    def __init__(self):
        self.observation_space = Dict(
            {
                "price": Box(0, 1e5, (3,), np.float64),
                "stock": Box(0, 50, (3,), np.int64),
                "wish": Discrete(3),
                "hour": Discrete(24, start=1),
            }
        )
        self.action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        self.seen = {
            "price": self.np_random.uniform(0, 1e5, 3),
            "stock": self.np_random.integers(0, 3, 3),
            "wish": int(self.np_random.integers(3)),
            "hour": int(self.np_random.integers(1, 25)),
        }
        return self.seen

    def step(self, action):
        wish = self.seen["wish"]
        best = wish if self.seen["stock"][wish] > 0 else 3  # 3 orders nothing
        self.steps += 1
        return self.observe(), 10.0 if action == best else -5.0, False, self.steps >= 20, {}


class Parity(gymnasium.Env):
    """Answer the question with the number of the two boxes, given as a Tuple: same or not."""

    def __init__(self):
        self.observation_space = Tuple((Discrete(4), MultiBinary(4)))
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.ask(), {}

    def ask(self):
        place, bits = int(self.np_random.integers(4)), self.np_random.integers(0, 2, 4).astype(np.int8)
        self.answer = int(bits[place])
        return place, bits

    def step(self, action):
        reward = 1.0 if action == self.answer else 0.0
        self.steps += 1
        return self.ask(), reward, False, self.steps >= 20, {}


class Knobs(gymnasium.Env):
    """Turn six knobs to the shown positions, beside twelve numbers of noise."""

    def __init__(self):
        self.observation_space = Box(-10, 10, (18,), np.float32)
        self.action_space = MultiDiscrete([3, 4, 3, 5, 2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.show(), {}

    def show(self):
        self.wanted = self.np_random.integers(self.action_space.nvec)
        noise = self.np_random.uniform(-9, 9, 12)
        return np.concatenate([self.wanted, noise]).astype(np.float32)

    def step(self, action):
        reward = float(np.mean(np.asarray(action) == self.wanted))
        self.steps += 1
        return self.show(), reward, False, self.steps >= 25, {}


class Switches(gymnasium.Env):
    """Copy eight bits with a MultiBinary action."""

    def __init__(self):
        self.observation_space = MultiBinary(8)
        self.action_space = MultiBinary(8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.bits = 0, self.np_random.integers(0, 2, 8).astype(np.int8)
        return self.bits, {}

    def step(self, action):
        reward = float(np.mean(np.asarray(action) == self.bits))
        self.steps += 1
        self.bits = self.np_random.integers(0, 2, 8).astype(np.int8)
        return self.bits, reward, False, self.steps >= 20, {}


class Cards(gymnasium.Env):
    """Play the highest of the cards in hand. The mask of the observation allows only those."""

    def __init__(self):
        mask = Box(0, 1, (12,), np.int8)
        self.observation_space = Dict({"observation": Box(0, 1, (12,), np.float32), "action_mask": mask})
        self.action_space = Discrete(12)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.deal(), {}

    def deal(self):
        self.hand = np.zeros(12, np.int8)
        self.hand[self.np_random.choice(12, 4, replace=False)] = 1
        return {"observation": self.hand.astype(np.float32), "action_mask": self.hand}

    def step(self, action):
        if not self.hand[action]:
            return self.deal(), -100.0, True, False, {}
        reward = 1.0 if action == np.flatnonzero(self.hand)[-1] else 0.0
        self.steps += 1
        return self.deal(), reward, False, self.steps >= 20, {}


class LateReward(gymnasium.Env):
    """Walk right along a corridor of 30 cells. The only reward comes after 150 steps, for the cell reached."""

    def __init__(self):
        self.observation_space = Box(0, 150, (2,), np.float32)
        self.action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 15, 0
        return np.array([self.cell, self.steps], np.float32), {}

    def step(self, action):
        self.cell = int(np.clip(self.cell + int(action) - 1, 0, 30))
        self.steps += 1
        done = self.steps >= 150
        return np.array([self.cell, self.steps], np.float32), self.cell / 30.0 if done else 0.0, done, False, {}


class Maze(gymnasium.Env):
    """Find the far corner of a grid of 7 cells a side. There is no other reward, and no end before 60 steps."""

    def __init__(self):
        self.observation_space = Discrete(49)
        self.action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row = self.column = self.steps = 0
        return 0, {}

    def step(self, action):
        row, column = [(0, 1), (0, -1), (1, 0), (-1, 0)][int(action)]
        self.row, self.column = int(np.clip(self.row + row, 0, 6)), int(np.clip(self.column + column, 0, 6))
        self.steps += 1
        found = self.row == self.column == 6
        return 7 * self.row + self.column, float(found), found, self.steps >= 60, {}


class Thermostat(gymnasium.Env):
    """Keep a room at 21 degrees for 2,000 steps, with a window that opens and shuts."""

    def __init__(self):
        self.observation_space = Box(-50, 100, (3,), np.float32)
        self.action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.degrees, self.outside, self.open, self.steps = 15.0, self.np_random.uniform(-5, 10), 0, 0
        return self.observe(), {}

    def observe(self):
        return np.array([self.degrees, self.outside, self.open], np.float32)

    def step(self, action):
        if self.np_random.random() < 0.01:
            self.open = 1 - self.open
        heat = (0.0, 1.5, 5.0)[int(action)]
        self.degrees += 0.3 * heat + (0.05 if self.open else 0.02) * (self.outside - self.degrees)
        self.steps += 1
        reward = 1.0 if abs(self.degrees - 21) < 1 else 0.0
        return self.observe(), reward, False, self.steps >= 2000, {}


class Escape(gymnasium.Env):
    """Leave through the exit. Each step costs a point, and walking into a pit ends the pain for 30."""

    def __init__(self):
        self.observation_space = Box(-10, 10, (2,), np.int32)
        self.action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.integers(-4, 3, 2), 0
        return self.place.astype(np.int32), {}

    def step(self, action):
        self.place = np.clip(self.place + [(1, 0), (-1, 0), (0, 1), (0, -1)][int(action)], -5, 5)
        self.steps += 1
        if (self.place == -5).any():
            return self.place.astype(np.int32), -30.0, True, False, {}
        done = bool((self.place == 4).all())
        return self.place.astype(np.int32), 0.0 if done else -1.0, done, self.steps >= 100, {}


class Balance(gymnasium.Env):
    """Keep a rod upright for ever. Every episode is cut after 200 steps, which is no fault of the agent."""

    def __init__(self):
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Box(-3.0, 3.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed, self.steps = self.np_random.uniform(-0.3, 0.3), 0.0, 0
        return np.array([self.angle, self.speed], np.float32), {}

    def step(self, action):
        torque = float(np.clip(action[0], -3, 3))
        self.speed += 0.05 * (9.0 * np.sin(self.angle) + torque)
        self.angle += 0.05 * self.speed
        self.steps += 1
        fell = abs(self.angle) > 0.8
        return np.array([self.angle, self.speed], np.float32), 1.0, fell, self.steps >= 200, {}


class Trader(gymnasium.Env):
    """Buy low and sell high. The price is around 30,000, swings slowly, and profits are in the same currency."""

    def __init__(self):
        self.observation_space = Box(0, np.inf, (3,), np.float64)
        self.action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.phase, self.holds, self.steps = self.np_random.uniform(0, 2 * np.pi), 0, 0
        self.last = self.price()
        return self.observe(), {}

    def price(self):
        return 30_000 + 500 * np.sin(self.phase)

    def observe(self):
        return np.array([self.price(), self.last, self.holds])

    def step(self, action):
        self.holds = (0, self.holds, 1)[int(action)]
        self.last = self.price()
        self.phase += 0.2
        self.steps += 1
        return self.observe(), self.holds * (self.price() - self.last), False, self.steps >= 100, {}


class Turret(gymnasium.Env):
    """Aim at the target, and choose its ammunition. The wrong one misses, and firing without a need costs."""

    def __init__(self):
        self.observation_space = Dict({"bearing": Box(-180, 180, (1,), np.float32), "armour": Discrete(3)})
        self.action_space = Dict(
            {"bearing": Box(-180, 180, (1,), np.float32), "ammunition": Discrete(3), "fire": MultiBinary(1)}
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        self.bearing = self.np_random.uniform(-180, 180, 1).astype(np.float32)
        self.armour = int(self.np_random.integers(3))
        return {"bearing": self.bearing, "armour": self.armour}

    def step(self, action):
        error = float(abs(action["bearing"] - self.bearing)[0])
        hits = action["ammunition"] == self.armour and bool(action["fire"][0])
        reward = max(0.0, 1 - error / 90) if hits else -0.1 * float(action["fire"][0])
        self.steps += 1
        return self.observe(), reward, False, self.steps >= 20, {}


@dataclass(frozen=True)
class Task:
    """One task with its budget.

    Attributes:
        make: Class of the environment.
        steps: Agent-steps of training.
        score: Mean return of an episode that a correct learner reaches.
        random: Mean return of random play, about.
    """

    make: Callable[[], gymnasium.Env]
    steps: int
    score: float
    random: float


TASKS = (
    Task(Reach, 150_000, -7.5, -43),
    Task(ReachWithForces, 150_000, -7.5e5, -4.3e6),
    Task(ReachWithTinyActions, 150_000, -7.5, -43),
    Task(ReachWithPositiveActions, 150_000, -7.5, -43),
    Task(ReachInOddUnits, 150_000, -7.5, -43),
    Task(ReachForCents, 150_000, -7.5e-3, -0.043),
    Task(ManyJoints, 300_000, -3.0, -380),
    Task(Quadrant, 150_000, 24.0, 6),
    Task(QuadrantInColour, 150_000, 24.0, 6),
    Task(Shop, 200_000, 180.0, -19),
    Task(Parity, 100_000, 19.0, 10),
    Task(Knobs, 300_000, 23.0, 8),
    Task(Switches, 100_000, 19.0, 10),
    Task(Cards, 150_000, 19.0, -100),
    Task(LateReward, 300_000, 0.95, 0.5),
    Task(Maze, 150_000, 0.95, 0.1),
    Task(Thermostat, 600_000, 1900.0, 200),
    Task(Escape, 200_000, -10.0, -57),
    Task(Balance, 100_000, 190.0, 17),
    Task(Trader, 200_000, 2800.0, 218),
    Task(Turret, 200_000, 17.0, 1),
)
