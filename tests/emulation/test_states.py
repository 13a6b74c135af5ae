"""States of emulated environments: saved, loaded elsewhere, to the same bytes; and what is refused."""

import collections
import enum
import functools
import importlib.util
import json
import pickle
import random
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import FrameStackObservation, TimeLimit

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.emulation.dm_env import DMEnvToGymnasium
from pufferlib.emulation.state import MAGIC
from pufferlib.native.state_bytes import pack, unpack
from tests.emulation.test_dm_env import Script
from tests.envs import ScriptedParallelEnv, alive

ROWS = ("observations", "rewards", "terminals", "truncations", "masks")


def played(env, steps, seed):
    """Everything that the rows show of so many steps, over resets."""
    rng = np.random.default_rng(seed)
    actions = env.single_action_space
    seen = []
    for _ in range(steps):
        if env.done:
            env.reset()
        chosen = [
            rng.integers(actions.n) if isinstance(actions, Discrete) else rng.uniform(-1, 1, actions.shape)
            for _ in range(env.num_agents)
        ]
        env.step(np.array(chosen, actions.dtype) if env.num_agents > 1 else chosen[0])
        seen.append([getattr(env, name).tobytes() for name in ROWS])
    return seen


class Kind(enum.Enum):
    LEFT = 0
    RIGHT = 1


class Thing:
    """An object of the environment's own, of which there are now more and now fewer."""

    __slots__ = ("at", "kind", "owner")

    def __init__(self, at, kind, owner):
        self.at, self.kind, self.owner = at, kind, owner


class Field(gymnasium.Env):
    """A tutorial's environment, with everything that these keep: chance of three kinds, objects, shared arrays."""

    def __init__(self, size=6):
        self.size = size
        self.observation_space = Dict({"at": Box(-99, 99, (2,), np.int64), "draw": Box(0, 1, (3,), np.float64)})
        self.action_space = Discrete(2)
        self._moves = {0: np.array([1, 0]), 1: np.array([0, 1])}
        self._python, self._legacy = random.Random(), np.random.RandomState()
        self._observe = functools.partial(self._show, scale=1)
        self.things, self.recent, self.where = [], collections.deque(maxlen=3), {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self._python.seed(seed)
            self._legacy.seed(seed)
        self.at = self.np_random.integers(0, self.size, 2)
        self.alias = self.at
        self.things = [Thing((i, None), Kind.RIGHT, self) for i in range(self.np_random.integers(1, 4))]
        self.where = {
            (0, 1): self.things[0],
            Kind.LEFT: {1, 2},
            "nan": np.float32("nan"),
            "c": 1j,
            "n": collections.Counter("aab"),
            "r": slice(2),
        }
        self.recent.clear()
        return self._observe(), {}

    def step(self, action):
        self.alias += self._moves[int(action)]  # moves ``at`` as well, while both are one array
        self.recent.append(int(action))
        if self.np_random.random() < 0.2:
            self.things.append(Thing(self.at.copy(), Kind(len(self.things) % 2), self))
        total = len(self.things) + sum(self.recent) + sum(thing.kind is Kind.LEFT for thing in self.things)
        return self._observe(), float(total), len(self.things) > 9, False, {}

    def _show(self, scale):
        draws = self._python.random(), self._legacy.rand(), self.np_random.random()
        return {"at": self.at * scale, "draw": np.array(draws)}


class Told(gymnasium.Env):
    """An environment that says itself what its state is; what else it holds is no plain data."""

    observation_space, action_space = Box(0, 99, (1,)), Discrete(2)

    def __init__(self):
        self._count = iter(range(0))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at, self._count = 0, iter(range(99))
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._at = next(self._count)
        return np.array([self._at + self.np_random.random()], np.float32), 0.0, self._at >= 40, False, {}

    def save_state(self):
        return {"at": self._at}

    def load_state(self, state):
        self._at, self._count = state["at"], iter(range(state["at"] + 1, 99))


class Opaque(Told):
    """The same, without the methods, but with a description for pickle."""

    save_state = load_state = None

    def __getstate__(self):
        return {**vars(self), "_count": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self._count = iter(range(state["_at"] + 1, 99))


class Closed(Told):
    """The same, and not even that."""

    save_state = load_state = None

    def __getstate__(self):
        raise TypeError("never")


def atari():
    from pufferlib.bindings.atari.env import make_env

    return make_env("breakout", episodic_life=True, reward_clip=True)


def minigrid():
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-5x5-v0", max_steps=60))


def needs(module, make, **options):
    absent = importlib.util.find_spec(module) is None
    return pytest.param(make, marks=pytest.mark.skipif(absent, reason=f"{module} is not installed"), **options)


GYMNASIUM = [
    *(functools.partial(gymnasium.make, f"{name}") for name in ("CartPole-v1", "Pendulum-v1")),
    functools.partial(gymnasium.make, "Acrobot-v1", max_episode_steps=50),
    functools.partial(gymnasium.make, "MountainCar-v0", max_episode_steps=50),
    lambda: pufferlib.EpisodeStats(FrameStackObservation(TimeLimit(gymnasium.make("CartPole-v1"), 30), 3)),
    lambda: TimeLimit(Field(), 30),
    lambda: DMEnvToGymnasium(Script((1.0,) * 9 + (0.0,)), reseed=lambda env, seed: env.rng.seed(seed)),
    Told,
    needs("ale_py", atari, id="atari"),
    needs("minigrid", minigrid, id="minigrid"),
    needs("mujoco", functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=30), id="HalfCheetah-v5"),
    needs("mujoco", functools.partial(gymnasium.make, "Ant-v5"), id="Ant-v5"),
]


def two(make):
    """Two environments in the middle of different episodes."""
    env, other = GymnasiumPufferEnv(env=make()), GymnasiumPufferEnv(env=make())
    env.reset(seed=1)
    other.reset(seed=2)
    played(env, 25, 1)
    played(other, 7, 2)
    return env, other


@pytest.mark.parametrize("make", GYMNASIUM)
def test_another_environment_goes_on_from_a_state_to_the_same_bytes(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log where it is
    env, other = two(make)
    state = env.save_state(allow_pickle=False)
    expected = played(env, 80, 3)
    other.load_state(state)
    assert played(other, 80, 3) == expected
    env.load_state(state)
    assert played(env, 80, 3) == expected
    env.close()
    other.close()


def test_agents_that_are_left_go_on():
    def make():
        script = "abc", {**alive(*"abc"), "b": "dead"}, alive(*"ac"), {"a": "cut", "c": "alive"}, {"c": "dead"}
        return PettingZooPufferEnv(env=ScriptedParallelEnv(*script, names="abc"))

    env, other = make(), make()
    env.reset(seed=1)
    other.reset(seed=1)
    env.step([0, 0, 0])
    state = env.save_state(allow_pickle=False)
    other.load_state(state)
    assert (other.agents, other.masks.tolist()) == (env.agents, [True, True, True])
    assert played(other, 20, 0) == played(env, 20, 0)


def test_a_pettingzoo_game_goes_on():
    rps = pytest.importorskip("pettingzoo.classic.rps.rps")
    env, other = (PettingZooPufferEnv(env=rps.parallel_env(max_cycles=30)) for _ in range(2))
    env.reset(seed=1)
    other.reset(seed=2)
    played(env, 12, 0)
    other.load_state(env.save_state(allow_pickle=False))
    assert played(other, 40, 1) == played(env, 40, 1)


def test_what_is_shared_stays_shared_and_what_is_not_does_not():
    env, other = two(lambda: TimeLimit(Field(), 30))
    env.reset(seed=3)
    other.unwrapped.alias = other.unwrapped.at = np.zeros(2, np.int64)
    env.unwrapped.alias = env.unwrapped.at.copy()
    other.load_state(env.save_state())
    inner = other.unwrapped
    assert not np.shares_memory(inner.alias, inner.at)
    assert inner.things[0] is inner.where[0, 1]
    assert inner.things[0].owner is inner
    assert inner.where["n"] == collections.Counter("aab")


DIRECTIONS = [np.array([1, 0]), np.array([0, 1])]
LEVELS = [{"walls": [0]}, {"walls": [1, 2]}]


class Walk(gymnasium.Env):
    """A tutorial's environment that points to constants of its module."""

    observation_space, action_space = Box(-99, 99, (2,), np.int64), Discrete(2)

    def __init__(self):
        self._seen = []
        self._note = self._seen.append

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.direction, self.level = np.zeros(2, np.int64), DIRECTIONS[0], LEVELS[self.np_random.integers(2)]
        return self.at.copy(), {}

    def step(self, action):
        self.direction = DIRECTIONS[int(action)]
        self._note(int(action))
        self.at += self.direction * len(self.level["walls"])
        return self.at.copy(), float(sum(self._seen)), len(self._seen) % 9 == 8, False, {}


def test_constants_that_a_state_points_to_stay_what_they_are():
    env, other = two(Walk)
    for chosen in (0, 1):
        env.reset(seed=chosen)
        env.step(chosen)
        other.reset(seed=3)
        other.step(1 - chosen)
        other.load_state(env.save_state(allow_pickle=False))
        assert np.array(DIRECTIONS).tolist() == [[1, 0], [0, 1]]
        assert [len(level["walls"]) for level in LEVELS] == [1, 2]
        assert played(other, 20, 1) == played(env, 20, 1)


def test_what_is_no_plain_data_is_pickled_and_loaded_only_by_who_asks_for_it():
    env, other = two(Opaque)
    with pytest.raises(
        pufferlib.APIUsageError,
        match=r"GymnasiumPufferEnv\.save_state: Opaque must be plain data to be saved, got .*: env\._count is "
        r"of builtins\.range_iterator, .*; define save_state\(\) and load_state\(state\) in Opaque, or allow",
    ):
        env.save_state(allow_pickle=False)
    state = env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match=r"load_state: the state must be plain data, got a pickle, which"):
        other.load_state(state)
    expected = played(env, 60, 3)
    other.load_state(state, allow_pickle=True)
    assert played(other, 60, 3) == expected
    with pytest.raises(pufferlib.APIUsageError, match=r"in Closed; it cannot be pickled: never"):
        two(Closed)[0].save_state()


def test_pickles_that_begin_anew_are_no_states():
    class Remade(gymnasium.utils.EzPickle, Opaque):
        __getstate__, __setstate__ = gymnasium.utils.EzPickle.__getstate__, gymnasium.utils.EzPickle.__setstate__

    with pytest.raises(pufferlib.APIUsageError, match=r"define save_state\(\) and load_state\(state\) in Remade$"):
        two(Remade)[0].save_state()


def test_box2d_says_what_to_define():
    pytest.importorskip("Box2D")
    env = GymnasiumPufferEnv(env=gymnasium.make("LunarLander-v3"))
    env.reset(seed=1)
    with pytest.raises(pufferlib.APIUsageError, match=r"LunarLander must be .*SwigPyObject.* in LunarLander$"):
        env.save_state()


def cartpole(**kwargs):
    return lambda: gymnasium.make("CartPole-v1", **kwargs)


def of_version(state, version):
    facts, content = unpack("", MAGIC, state)
    facts["versions"]["gymnasium"] = version
    return pack(MAGIC, facts, bytes(content))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: 7, "state must be the bytes that save_state returned, got 7"),
        (lambda: two(cartpole())[0].save_state()[:-1], "the state is damaged"),
        (
            lambda: two(cartpole(sutton_barto_reward=True))[0].save_state(),
            "settings must be .*reward=None, got .*=True",
        ),
        (lambda: two(lambda: TimeLimit(cartpole()(), 9))[0].save_state(), "env must be .* in the same wrappers"),
        (lambda: two(Told)[0].save_state(), r"env must be .*CartPoleEnv, got a state of .*Told"),
        (lambda: of_version(two(cartpole())[0].save_state(), "0.1"), "versions must be gymnasium=.*gymnasium=0.1; "),
    ],
)
def test_what_is_no_state_of_this_environment_is_refused_and_changes_nothing(state, message):
    env, _ = two(cartpole())
    before = env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match=rf"GymnasiumPufferEnv\.load_state: {message}"):
        env.load_state(state())
    assert env.save_state() == before


class Sentinel:
    """Notes that somebody made one."""

    made: ClassVar = []

    def __new__(cls):
        cls.made.append(cls)
        return super().__new__(cls)

    def __reduce__(self):
        return Sentinel, ()


@pytest.mark.parametrize(
    "forged",
    [
        ["object", "subprocess.Popen", {}],
        ["object", "tests.emulation.test_states.Sentinel", {}],
        ["constant", "builtins.builtin_function_or_method"],
        ["simulator", "ale_py._ale_py.ALEInterface", 1],
        ["same", 10**6],
        ["nothing"],
        ["array", "|O", [1], "C", None, ["bytes", "bytes", 0, 8]],
        ["generator", "PCG64", ["dict", "builtins.dict", []]],
        ["object", "tests.emulation.test_states.Thing", 3],
        functools.reduce(lambda inner, _: ["tuple", [inner]], range(400), 0),
        ["enum", "tests.emulation.test_states.Kind", "UP"],
    ],
)
def test_a_forged_state_makes_nothing_and_changes_nothing(forged):
    env, _ = two(Field)
    Sentinel.made.clear()
    state = env.save_state()
    facts, content = unpack("", MAGIC, state)
    tree = json.loads(bytes(content[: facts["tree_bytes"]]))
    contents = next(value for key, value in tree[2] if key == "env")
    contents[2]["size"] = forged
    head = json.dumps(tree).encode()
    content = head + bytes(content[facts["tree_bytes"] :])
    with pytest.raises(pufferlib.APIUsageError, match="the state does not fit this environment"):
        env.load_state(pack(MAGIC, {**facts, "tree_bytes": len(head)}, content))
    assert Sentinel.made == []
    assert env.save_state() == state


CREATOR = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
WORKERS = {"backend": "Multiprocessing", "num_workers": 2, "overwork": True}


@pytest.mark.parametrize("layout", [{"backend": "Serial"}, WORKERS, {**WORKERS, "batch_size": 2, "num_workers": 4}])
def test_environments_of_a_batch_go_on_from_states_wherever_they_live(layout):
    with pufferlib.vector.make(CREATOR, num_envs=4, zero_copy=False, **layout) as vecenv:
        with pytest.raises(pufferlib.APIUsageError, match=r"save_state: no episode has begun; call reset first"):
            vecenv.save_state()
        vecenv.reset(seed=1)
        env_ids = vecenv.agent_ids.tolist()
        vecenv.load_state(vecenv.save_state(env_ids)[0], env_ids[1])
        assert np.array_equal(vecenv.observations[0], vecenv.observations[1])
        states = vecenv.save_state(env_ids)
        before = vecenv.observations.copy()
        vecenv.load_state(states[:1] * len(env_ids), env_ids)
        assert not (vecenv.observations != before[0]).any()
        with pytest.raises(pufferlib.APIUsageError, match=r"states must be one for all, or a list of .*, got 1"):
            vecenv.load_state(states[:1], env_ids)
        if len(env_ids) == 4:
            vecenv.load_state(states)
            outcomes = []
            for _ in range(2):
                vecenv.load_state(states)
                outcomes.append([vecenv.step([1, 0, 1, 1])[0].tolist() for _ in range(30)])
            assert outcomes[0] == outcomes[1]


def test_a_batch_of_c_environments_has_states_too():
    with pufferlib.vector.make(
        pufferlib.env_creator("breakout"), num_envs=2, backend="Serial", env_kwargs={"num_envs": 3}
    ) as vecenv:
        vecenv.reset(seed=1)
        states = vecenv.save_state()
        first = [vecenv.step([1] * 6)[0].tolist() for _ in range(9)]
        vecenv.load_state(states)
        assert [vecenv.step([1] * 6)[0].tolist() for _ in range(9)] == first


def test_states_can_be_sent_to_other_processes():
    env, other = two(cartpole())
    other.load_state(pickle.loads(pickle.dumps(env.save_state())))
    assert played(other, 9, 1) == played(env, 9, 1)
