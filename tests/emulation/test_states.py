"""``save_state`` and ``load_state`` of emulated environments."""

import collections
import enum
import functools
import importlib.util
import json
import pickle
import random
import sys
from dataclasses import dataclass
from typing import ClassVar

import cloudpickle
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

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

ROWS = ("observations", "rewards", "terminals", "truncations", "masks")


def play(env, steps, seed):
    """Return the bytes of all rows for ``steps`` random steps, with resets at the ends of episodes."""
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
    """Object of which an environment holds a variable number."""

    __slots__ = ("at", "kind", "owner")

    def __init__(self, at, kind, owner):
        self.at, self.kind, self.owner = at, kind, owner


@dataclass(frozen=True)
class Place:
    """Object whose hash depends on its attributes."""

    x: int
    y: int


class Field(gymnasium.Env):
    """Environment with many kinds of attributes: three random generators, objects, and shared arrays."""

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
        memory = np.zeros(4)
        self.left, self.right, self.memory = memory[:2], memory[2:], memory
        self.places, self.closed = {Place(0, 1): 3}, frozenset([Place(1, 1)])
        self.ordered = collections.OrderedDict(b=1, a=2)
        return self._observe(), {}

    def step(self, action):
        self.alias += self._moves[int(action)]  # changes ``at`` too, because both are one array
        self.recent.append(int(action))
        if self.np_random.random() < 0.2:
            self.things.append(Thing(self.at.copy(), Kind(len(self.things) % 2), self))
        total = len(self.things) + sum(self.recent) + sum(thing.kind is Kind.LEFT for thing in self.things)
        self.memory += 1  # changes ``left`` and ``right`` too
        self.ordered.move_to_end(next(iter(self.ordered)))
        total += self.left.sum() + 2 * self.right.sum() + self.places[Place(0, 1)] + (Place(1, 1) in self.closed)
        total += 7 * list(self.ordered).index("a")
        return self._observe(), float(total), len(self.things) > 9, False, {}

    def _show(self, scale):
        draws = self._python.random(), self._legacy.rand(), self.np_random.random()
        return {"at": self.at * scale, "draw": np.array(draws)}


class SelfSavingEnv(gymnasium.Env):
    """Environment with ``save_state`` and ``load_state``. It also holds an iterator, which is no plain data."""

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


class PicklableEnv(SelfSavingEnv):
    """Environment that can be pickled, but is no plain data and has no ``save_state``."""

    save_state = load_state = None

    def __getstate__(self):
        return {**vars(self), "_count": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self._count = iter(range(state["_at"] + 1, 99))


class UnpicklableEnv(SelfSavingEnv):
    """Environment that can neither be saved nor pickled."""

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
    SelfSavingEnv,
    needs("ale_py", atari, id="atari"),
    needs("minigrid", minigrid, id="minigrid"),
    needs("mujoco", functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=30), id="HalfCheetah-v5"),
    needs("mujoco", functools.partial(gymnasium.make, "Ant-v5"), id="Ant-v5"),
]


def make_two(make):
    """Make two environments in the middle of different episodes."""
    env, other = GymnasiumPufferEnv(env=make()), GymnasiumPufferEnv(env=make())
    env.reset(seed=1)
    other.reset(seed=2)
    play(env, 25, 1)
    play(other, 7, 2)
    return env, other


@pytest.mark.parametrize("make", GYMNASIUM)
def test_load_state_continues_with_the_same_bytes(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log into the working directory
    env, other = make_two(make)
    state = env.save_state(allow_pickle=False)
    expected = play(env, 80, 3)
    other.load_state(state)
    assert play(other, 80, 3) == expected
    env.load_state(state)
    assert play(env, 80, 3) == expected
    env.close()
    other.close()


def test_state_includes_living_agents():
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
    assert play(other, 20, 0) == play(env, 20, 0)


def test_pettingzoo_environment_continues_from_state():
    rps = pytest.importorskip("pettingzoo.classic.rps.rps")
    env, other = (PettingZooPufferEnv(env=rps.parallel_env(max_cycles=30)) for _ in range(2))
    env.reset(seed=1)
    other.reset(seed=2)
    play(env, 12, 0)
    other.load_state(env.save_state(allow_pickle=False))
    assert play(other, 40, 1) == play(env, 40, 1)


def test_state_keeps_which_objects_are_shared():
    env, other = make_two(lambda: TimeLimit(Field(), 30))
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
    """Environment whose attributes refer to constants of its module."""

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


def test_load_state_does_not_change_constants_of_the_module():
    env, other = make_two(Walk)
    for chosen in (0, 1):
        env.reset(seed=chosen)
        env.step(chosen)
        other.reset(seed=3)
        other.step(1 - chosen)
        other.load_state(env.save_state(allow_pickle=False))
        assert np.array(DIRECTIONS).tolist() == [[1, 0], [0, 1]]
        assert [len(level["walls"]) for level in LEVELS] == [1, 2]
        assert play(other, 20, 1) == play(env, 20, 1)


def test_pickled_states_need_allow_pickle():
    env, other = make_two(PicklableEnv)
    with pytest.raises(
        pufferlib.APIUsageError,
        match=r"GymnasiumPufferEnv\.save_state: PicklableEnv must be plain data to be saved, got .*: env\._count is "
        r"of builtins\.range_iterator, .*; define save_state\(\) and load_state\(state\) in PicklableEnv, or allow",
    ):
        env.save_state(allow_pickle=False)
    state = env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match=r"load_state: the state must be plain data, got a pickle, which"):
        other.load_state(state)
    expected = play(env, 60, 3)
    other.load_state(state, allow_pickle=True)
    assert play(other, 60, 3) == expected
    with pytest.raises(pufferlib.APIUsageError, match=r"in UnpicklableEnv; it cannot be pickled: never"):
        make_two(UnpicklableEnv)[0].save_state()


def test_ez_pickle_without_state_is_refused():
    class Remade(gymnasium.utils.EzPickle, PicklableEnv):
        __getstate__, __setstate__ = gymnasium.utils.EzPickle.__getstate__, gymnasium.utils.EzPickle.__setstate__

    with pytest.raises(pufferlib.APIUsageError, match=r"define save_state\(\) and load_state\(state\) in Remade$"):
        make_two(Remade)[0].save_state()


def test_box2d_state_error_names_methods_to_define():
    pytest.importorskip("Box2D")
    env = GymnasiumPufferEnv(env=gymnasium.make("LunarLander-v3"))
    env.reset(seed=1)
    with pytest.raises(pufferlib.APIUsageError, match=r"LunarLander must be .*SwigPyObject.* in LunarLander$"):
        env.save_state()


def cartpole(**kwargs):
    return lambda: gymnasium.make("CartPole-v1", **kwargs)


def with_gymnasium_version(state, version):
    facts, content = unpack("", MAGIC, state)
    facts["versions"]["gymnasium"] = version
    return pack(MAGIC, facts, bytes(content))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: 7, "state must be the bytes that save_state returned, got 7"),
        (lambda: make_two(cartpole())[0].save_state()[:-1], "the state is damaged"),
        (
            lambda: make_two(cartpole(sutton_barto_reward=True))[0].save_state(),
            "settings must be .*reward=None, got .*=True",
        ),
        (lambda: make_two(lambda: TimeLimit(cartpole()(), 9))[0].save_state(), "env must be .* in the same wrappers"),
        (lambda: make_two(SelfSavingEnv)[0].save_state(), r"env must be .*CartPoleEnv, got a state of .*SelfSavingEnv"),
        (
            lambda: with_gymnasium_version(make_two(cartpole())[0].save_state(), "0.1"),
            "versions must be gymnasium=.*gymnasium=0.1; ",
        ),
    ],
)
def test_wrong_states_are_refused_and_change_nothing(state, message):
    env, _ = make_two(cartpole())
    before = env.save_state()
    with pytest.raises(pufferlib.APIUsageError, match=rf"GymnasiumPufferEnv\.load_state: {message}"):
        env.load_state(state())
    assert env.save_state() == before


class Sentinel:
    """Class that records its instances, to detect that a state made one."""

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
def test_forged_state_creates_and_changes_nothing(forged):
    env, _ = make_two(Field)
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
def test_load_state_of_a_batch_continues_on_every_backend(layout):
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


def test_c_environments_in_a_batch_have_states():
    with pufferlib.vector.make(
        pufferlib.env_creator("breakout"), num_envs=2, backend="Serial", env_kwargs={"num_envs": 3}
    ) as vecenv:
        vecenv.reset(seed=1)
        states = vecenv.save_state()
        first = [vecenv.step([1] * 6)[0].tolist() for _ in range(9)]
        vecenv.load_state(states)
        assert [vecenv.step([1] * 6)[0].tolist() for _ in range(9)] == first


def test_states_can_be_pickled():
    env, other = make_two(cartpole())
    other.load_state(pickle.loads(pickle.dumps(env.save_state())))
    assert play(other, 9, 1) == play(env, 9, 1)
