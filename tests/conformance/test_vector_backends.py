"""Every backend, number of workers and batch size gives the same bytes for the same seed.

The observations of an agent depend only on the seed and on its actions, in whatever order batches are received. The
reference is Serial with all environments in one batch. test_bindings.py does the same for bindings, and tests/cluster
for Ray.
"""

import functools
import sys
from typing import NamedTuple

import cloudpickle
import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.spaces import joint_space
from tests.tiers import once

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

NUM_ENVS, SEED = 4, 7

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
OTHERS = [name for name in LAYOUTS if name != "serial"]
# The other layouts differ from these only in how batches are received, which is tested with the environments below.
MOST = ["1 worker", "2 workers", "4 workers", "4 workers, blocks of 2", "4 workers, first 3"]
MODES = ["same_step", "next_step", "disabled"]
FEW = ["2 workers", "4 workers, blocks of 2"]  # for environments that are slow or slow to start
SAMPLE = {"breakout", "multiagent", "pymultiagent"}  # one agent, agents that come and go, and without C
IN_THE_DAY = ["4 workers, first 3"]  # the most difficult layout, in which batches are mixed and in any order


class LineEnv(pufferlib.PufferEnv):
    """Native environment: three agents on a line, each of which restarts when it leaves the line."""

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


class CoinEnv(gymnasium.Env):
    """Gymnasium environment with Dict observations, Box actions and episodes of random length."""

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


class RaceEnv(ParallelEnv):
    """PettingZoo environment whose agents leave one after the other."""

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
    "native": LineEnv,
    "absent agents": functools.partial(ocean.OceanEnv, "multiagent", num_envs=2, players=4, absence=0.5),
    "gymnasium": functools.partial(GymnasiumPufferEnv, env_creator=CoinEnv),
    "gymnasium cartpole": functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"]),
    "pettingzoo": functools.partial(PettingZooPufferEnv, env_creator=RaceEnv),
}


class Trajectory(NamedTuple):
    """Digests of the rows of every agent: for each array, one digest per step and agent."""

    digests: dict[str, np.ndarray]
    infos: list[str]  # per batch
    agents_per_env: int


# A digest is the sum of the bytes times odd numbers, modulo 2**64. It detects every change of one byte.
WEIGHTS = np.random.default_rng(0).integers(0, 2**64, 2**18, np.uint64) | 1


def digest(array):
    rows = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)
    return rows @ WEIGHTS[: rows.shape[1]]


def play(vecenv, steps, seed=None):
    """Return the trajectory of ``steps`` steps after a reset, with actions that depend only on agent and step."""
    agents = vecenv.num_agents
    space = joint_space(vecenv.single_action_space, agents)
    space.seed(0)
    actions = np.stack([space.sample() for _ in range(steps)])
    seen, all_infos = {}, []
    clock = np.zeros(agents, int)
    vecenv.async_reset(seed)
    while clock.min() < steps:
        *batch, infos, ids, masks = vecenv.recv()
        assert ids.shape == masks.shape == (vecenv.agents_per_batch,)
        arrays = dict(zip(("observations", "rewards", "terminals", "truncations"), batch, strict=True), masks=masks)
        if vecenv.autoreset == "same_step":
            arrays["final_observations"] = vecenv.final_observations.copy()
            arrays["final_observations"][~(arrays["terminals"] | arrays["truncations"])] = 0
        fresh = clock[ids] < steps  # with batches of the fastest workers, some agents get ahead
        for name, array in arrays.items():
            digests = seen.setdefault(name, np.zeros((steps, agents), np.uint64))
            digests[clock[ids[fresh]], ids[fresh]] = digest(array)[fresh]
        all_infos.append(repr(infos))
        clock[ids] += 1
        vecenv.send(actions[clock[ids] % steps, ids])
    return Trajectory(seen, all_infos, agents // getattr(vecenv, "num_envs", 1))


def first_difference(expected, got):
    """Describe the first difference of two trajectories. Return None if they are equal."""
    places = []
    for name, digests in expected.digests.items():
        differing = np.argwhere(digests != got.digests[name])
        places += [(*differing[0], name)] if len(differing) else []
    if not places:
        return None
    step, agent, name = min(places)
    return f"step {step}, environment {agent // expected.agents_per_env}, agent {agent}: other {name}"


def play_layout(creator, layout, steps, **options):
    with pufferlib.vector.make(creator, num_envs=NUM_ENVS, seed=SEED, **layout, **options, overwork=True) as vecenv:
        return play(vecenv, steps)


@functools.cache
def reference(name, steps, autoreset=None):
    return play_layout(creator_of(name), LAYOUTS["serial"], steps, autoreset=autoreset)


def creator_of(name):
    try:
        return CREATORS[name] if name in CREATORS else pufferlib.env_creator(name)
    except pufferlib.BindingMissing as error:
        pytest.skip(str(error))


def check(name, layout, steps, autoreset=None):
    expected = reference(name, steps, autoreset)
    got = play_layout(creator_of(name), layout, steps, autoreset=autoreset)
    assert first_difference(expected, got) is None
    if layout.get("batch_size") is None:
        assert got.infos == expected.infos


@pytest.fixture
def steps(request):
    """Return the number of steps to compare. Each environment ends several episodes in 250."""
    return 250 if request.config.option.tier == "once" else 1000


KINDS = [
    ("native", None),
    ("absent agents", "same_step"),
    ("absent agents", "next_step"),
    ("gymnasium cartpole", "next_step"),
    *((k, m) for k in ("gymnasium", "pettingzoo") for m in ("next_step", "same_step")),
]


# Without --all, one kind runs in three layouts, and three others in the most difficult one.
@pytest.mark.parametrize(
    ("kind", "autoreset", "layout"),
    once(
        [(*kind, layout) for kind in KINDS for layout in OTHERS],
        [
            *(("gymnasium", "same_step", layout) for layout in ("serial, batches of 2", *FEW)),
            ("native", None, *IN_THE_DAY),
            ("absent agents", "same_step", *IN_THE_DAY),
            ("pettingzoo", "next_step", *IN_THE_DAY),
        ],
    ),
)
def test_layouts_give_the_same_bytes(kind, autoreset, layout, steps):
    check(kind, LAYOUTS[layout], steps, autoreset)


@pytest.mark.parametrize("layout", once(MOST, IN_THE_DAY))
@pytest.mark.parametrize("name", once([name for name in pufferlib.list_envs() if "/" not in name], SAMPLE))
def test_layouts_give_the_same_bytes_for_ocean_environments(name, layout, steps):
    check(name, LAYOUTS[layout], steps)


@pytest.mark.parametrize("layout", once(OTHERS, IN_THE_DAY))
@pytest.mark.parametrize("kind", ["gymnasium", "pettingzoo"])
def test_layouts_give_the_same_bytes_with_autoreset_disabled(kind, layout):
    check(kind, LAYOUTS[layout], 60, "disabled")


@pytest.mark.all
@pytest.mark.parametrize("layout", FEW)
@pytest.mark.parametrize("name", ocean.python_names())
def test_layouts_give_the_same_bytes_for_python_environments(name, layout, steps):
    check(name, LAYOUTS[layout], steps)


@pytest.mark.all
@pytest.mark.parametrize("autoreset", ["next_step", "disabled"])
@pytest.mark.parametrize("name", ocean.names())
def test_layouts_give_the_same_bytes_in_other_autoreset_modes(name, autoreset, steps):
    check(name, LAYOUTS["4 workers, first 3"], steps, autoreset)


@pytest.mark.parametrize(
    ("name", "autoreset"),
    once(
        [(name, mode) for name in ocean.names() for mode in MODES],
        [(name, mode) for name in ("breakout", "multiagent", "snake") for mode in MODES],
    ),
)
def test_num_envs_of_ocean_equals_num_envs_of_serial(name, autoreset, steps):
    creator, kwargs = pufferlib.env_creator(name), {"num_envs": NUM_ENVS}
    env = pufferlib.vector.make(creator, env_kwargs=kwargs, seed=SEED, autoreset=autoreset)
    try:
        assert first_difference(reference(name, steps, autoreset), play(env, steps)) is None
    finally:
        env.close()


class FaultyEnv(LineEnv):
    """Environment that can change one reward in step 30."""

    def __init__(self, buf=None, is_faulty=False):
        super().__init__(buf)
        self.is_faulty, self.clock = is_faulty, 0

    def step(self, actions):
        returned = super().step(actions)
        self.clock += 1
        self.rewards[1] += self.is_faulty and self.clock == 30
        return returned


def test_first_difference_is_described():
    kwargs = [{}, {"is_faulty": True}, {}, {"is_faulty": True}]
    with pufferlib.vector.make([FaultyEnv] * 4, env_kwargs=kwargs, num_envs=4, seed=SEED, backend="Serial") as vecenv:
        got = play(vecenv, 40)
    assert first_difference(reference("native", 40), got) == "step 30, environment 1, agent 4: other rewards"


@pytest.mark.parametrize("layout", once(["serial", "2 workers", "4 workers, first 3"], ["serial", "2 workers"]))
@pytest.mark.parametrize("kind", CREATORS)
def test_reset_with_seed_repeats_the_first_observation(kind, layout):
    with pufferlib.vector.make(
        CREATORS[kind], num_envs=NUM_ENVS, **{**LAYOUTS[layout], "batch_size": NUM_ENVS}, overwork=True
    ) as vecenv:
        first = vecenv.reset(seed=3)[0].copy()
        for _ in range(5):
            vecenv.step(vecenv.action_space.sample())
        vecenv.send(vecenv.action_space.sample())  # the reset discards its result
        assert not np.array_equal(vecenv.reset()[0], first)
        np.testing.assert_array_equal(vecenv.reset(seed=3)[0], first)
        assert not np.array_equal(vecenv.reset(seed=4)[0], first)
