"""One seed, one trajectory: every backend, number of workers and batch size gives the same bytes."""

import functools
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

NUM_ENVS, STEPS, SEED = 4, 40, 7

LAYOUTS = {
    "serial": {"backend": "Serial"},
    "serial, batches of 2": {"backend": "Serial", "batch_size": 2},
    "1 worker": {"backend": "Multiprocessing", "num_workers": 1},
    "2 workers": {"backend": "Multiprocessing", "num_workers": 2},
    "4 workers": {"backend": "Multiprocessing", "num_workers": 4},
    "2 workers, one per batch": {"backend": "Multiprocessing", "num_workers": 2, "batch_size": 2},
    "4 workers, blocks of 2": {"backend": "Multiprocessing", "num_workers": 4, "batch_size": 2},
    "4 workers, first 1": {"backend": "Multiprocessing", "num_workers": 4, "batch_size": 1, "zero_copy": False},
    "4 workers, first 3": {"backend": "Multiprocessing", "num_workers": 4, "batch_size": 3, "zero_copy": False},
}


class Walkers(pufferlib.PufferEnv):
    """Native: three agents on a line, each starts anew as soon as it leaves it."""

    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=-9, high=9, shape=(2,))
        self.single_action_space = gymnasium.spaces.MultiDiscrete([3, 2])
        self.num_agents = 3
        super().__init__(buf)
        self.random = np.random.default_rng()

    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.observations[:] = self.random.uniform(-1, 1, self.observations.shape)
        return self.observations, []

    def step(self, actions):
        self.observations[:, 0] += (actions[:, 0] - 1) * (1 + actions[:, 1])
        self.rewards[:] = self.observations[:, 0] - self.observations[:, 1]
        self.terminals[:] = abs(self.observations[:, 0]) > 3
        self.final_observations[self.terminals] = self.observations[self.terminals]
        self.observations[self.terminals] = self.random.uniform(-1, 1, (int(self.terminals.sum()), 2))
        return self.observations, self.rewards, self.terminals, self.truncations, [{"n": 1}] * int(self.terminals.sum())

    def close(self):
        pass


class Coins(gymnasium.Env):
    """Gymnasium: structured observations, real-valued actions, episodes of random length."""

    observation_space = gymnasium.spaces.Dict(
        {"coins": gymnasium.spaces.MultiBinary(5), "sum": gymnasium.spaces.Box(-50, 50, (1,), np.float32)}
    )
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum = np.zeros(1, np.float32)
        return self._observation(), {"start": True}

    def _observation(self):
        return {"coins": self.np_random.integers(0, 2, 5, dtype=np.int8), "sum": self.sum.copy()}

    def step(self, action):
        self.sum += action.sum()
        end = self.np_random.random()
        return self._observation(), float(self.sum[0]), end < 0.1, end > 0.9, {}


class Race(ParallelEnv):
    """PettingZoo: agents leave one after the other."""

    metadata = {"name": "race"}  # noqa: RUF012
    possible_agents = ["a", "b", "c"]  # noqa: RUF012

    def observation_space(self, agent):
        return gymnasium.spaces.Box(-9, 9, (2,), np.float32)

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        return self._observations(), {agent: {} for agent in self.agents}

    def _observations(self):
        return {agent: self.random.uniform(-1, 1, 2).astype(np.float32) for agent in self.agents}

    def step(self, actions):
        observations = self._observations()
        rewards = {agent: float(action) for agent, action in actions.items()}
        ends = {agent: bool(self.random.random() < 0.2) for agent in self.agents}
        cuts = {agent: bool(self.random.random() < 0.1) for agent in self.agents}
        infos = {agent: {"out": True} if ends[agent] else {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not ends[agent] and not cuts[agent]]
        return observations, rewards, ends, cuts, infos


CREATORS = {
    "native": Walkers,
    "gymnasium": functools.partial(GymnasiumPufferEnv, env_creator=Coins),
    "cartpole": functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"]),
    "pettingzoo": functools.partial(PettingZooPufferEnv, env_creator=Race),
}


def play(creator, layout, **options):
    """What each agent lives through: a list of bytes for every agent, and the number of infos."""
    vecenv = pufferlib.vector.make(creator, num_envs=NUM_ENVS, seed=SEED, **layout, **options, overwork=True)
    with vecenv:
        plans = actions_of(vecenv)
        lives = [[] for _ in range(vecenv.num_agents)]
        num_infos = 0
        vecenv.async_reset()
        while min(map(len, lives)) < STEPS:
            *batch, infos, agent_ids, masks = vecenv.recv()
            assert agent_ids.shape == masks.shape == (vecenv.agents_per_batch,)
            rows = [*batch, masks]
            if vecenv.autoreset == "same_step":
                ended = batch[2] | batch[3]
                finals = np.where(ended.reshape(-1, *[1] * (batch[0].ndim - 1)), vecenv.final_observations, 0)
                rows.append(finals)
            num_infos += len(infos)
            for row, agent in enumerate(agent_ids):
                lives[agent].append(b"|".join(array[row].tobytes() for array in rows))
            vecenv.send([plans[agent][len(lives[agent]) % STEPS] for agent in agent_ids])
    return [life[:STEPS] for life in lives], num_infos


def actions_of(vecenv):
    """The same actions for the same agent and step, whatever the order of batches."""
    plans = []
    for agent in range(vecenv.num_agents):
        vecenv.single_action_space.seed(agent)
        plans.append([vecenv.single_action_space.sample() for _ in range(STEPS)])
    return plans


@functools.cache
def serial_lives(kind, autoreset):
    return play(CREATORS[kind], LAYOUTS["serial"], autoreset=autoreset)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "serial"])
@pytest.mark.parametrize(
    ("kind", "autoreset"),
    [
        ("native", None),
        ("cartpole", "next_step"),
        *((k, m) for k in ("gymnasium", "pettingzoo") for m in ("next_step", "same_step")),
    ],
)
def test_same_bytes_everywhere(kind, autoreset, layout):
    lives, num_infos = play(CREATORS[kind], LAYOUTS[layout], autoreset=autoreset)
    expected, expected_infos = serial_lives(kind, autoreset)
    assert lives == expected
    if "batch" not in layout and "first" not in layout and "blocks" not in layout:
        assert num_infos == expected_infos


def native_names():
    return [name for name in pufferlib.list_envs() if "/" not in name]


@pytest.mark.parametrize("name", native_names())
def test_same_bytes_for_every_ocean_environment(name):
    creator = pufferlib.env_creator(name)
    expected, _ = play(creator, LAYOUTS["serial"])
    for layout in ("2 workers", "4 workers, first 3", "serial, batches of 2"):
        assert play(creator, LAYOUTS[layout])[0] == expected


@pytest.mark.parametrize("name", native_names())
def test_games_of_one_native_environment_play_as_environments_of_one_game(name):
    creator = pufferlib.env_creator(name)
    env = pufferlib.vector.make(creator, env_kwargs={"num_envs": NUM_ENVS}, seed=SEED)
    serial = pufferlib.vector.make(creator, num_envs=NUM_ENVS, seed=SEED, backend="Serial")
    actions = actions_of(serial)
    for vecenv in (env, serial):
        vecenv.async_reset()
    for step in range(STEPS):
        for ours, theirs in zip(env.recv()[:4], serial.recv()[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for vecenv in (env, serial):
            vecenv.send([plan[step] for plan in actions])


@pytest.mark.parametrize("layout", ["serial", "2 workers", "4 workers, first 3"])
@pytest.mark.parametrize("kind", CREATORS)
def test_reset_with_a_seed_starts_all_over(kind, layout):
    with pufferlib.vector.make(
        CREATORS[kind], num_envs=NUM_ENVS, **{**LAYOUTS[layout], "batch_size": NUM_ENVS}, overwork=True
    ) as vecenv:
        first = vecenv.reset(seed=3)[0].copy()
        for _ in range(5):
            vecenv.step(vecenv.action_space.sample())
        vecenv.send(vecenv.action_space.sample())  # its outcome is dropped
        assert not np.array_equal(vecenv.reset()[0], first)
        np.testing.assert_array_equal(vecenv.reset(seed=3)[0], first)
        assert not np.array_equal(vecenv.reset(seed=4)[0], first)
