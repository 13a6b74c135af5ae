"""Environments of old APIs (gym, old PettingZoo), which are wrapped without installing these packages."""

import functools
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Sequence, Text, Tuple
from pettingzoo import AECEnv, ParallelEnv

import pufferlib
import pufferlib.vector
from pufferlib import (
    APIUsageError,
    ClipAction,
    EpisodeStats,
    GymToGymnasium,
    PettingZooTruncatedWrapper,
    ResizeObservation,
)
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.emulation.legacy_api import converted, new_space
from pufferlib.render.picture import picture_of
from pufferlib.wrappers import MultiagentEpisodeStats, PadAgents
from tests.envs import FunctionEnv


class OldSpace(SimpleNamespace):
    """Space with the attributes of an old gym space, but without a known base class."""

    def sample(self):
        raise AssertionError("sample must not be called")


DISCRETE = OldSpace(n=np.int64(4), shape=())
BOX = OldSpace(low=np.zeros(3, np.float32), high=np.ones(3, np.float32), shape=(3,), dtype=np.dtype(np.float32))


class Gym21Env:
    """Environment for gym 0.21: ``step`` returns four values, ``reset`` no info, and it has a ``seed`` method."""

    observation_space = OldSpace(spaces={"place": BOX, "size": DISCRETE})
    action_space = DISCRETE

    def __init__(self, length=3, limit=None):
        self.length, self.limit, self.seeds, self.is_open = length, limit, [], True
        self.metadata = {"render.modes": ["rgb_array"]}

    def seed(self, seed=None):
        self.seeds.append(seed)
        self.random = np.random.RandomState(seed)

    def observe(self):
        return {"place": self.random.rand(3), "size": np.int64(3)}

    def reset(self):
        self.count = 0
        return self.observe()

    def step(self, action):
        assert type(action) is int
        self.count += 1
        done = np.bool_(self.count == self.length)
        if self.count == self.limit:
            return self.observe(), np.float64(1), True, {"TimeLimit.truncated": not done}
        return self.observe(), np.float64(1), done, {}

    def render(self, mode="human"):
        return mode

    def close(self):
        self.is_open = False


def test_gym_21_environment_is_converted():
    env = GymToGymnasium(Gym21Env())
    assert isinstance(env, gymnasium.Env)
    assert env.observation_space == Dict({"place": Box(0, 1, (3,)), "size": Discrete(4)})
    observation, info = env.reset(seed=5)
    assert (env.env.seeds, info) == ([5], {})
    assert observation["place"].tolist() == np.random.RandomState(5).rand(3).tolist()
    outcomes = [env.step(0)[1:] for _ in range(3)]
    assert outcomes == [(1, False, False, {}), (1, False, False, {}), (1, True, False, {})]
    assert env.metadata["render_modes"] == ["rgb_array"]
    assert env.render() == "rgb_array"
    env.close()
    assert not env.env.is_open
    assert "gym" not in sys.modules


def test_environment_without_render_has_no_picture():
    blind = SimpleNamespace(observation_space=BOX, action_space=DISCRETE, reset=None, step=None)
    assert picture_of(GymToGymnasium(blind)) is None


def test_time_limit_of_gym_is_a_truncation():
    env = GymToGymnasium(Gym21Env(limit=2))
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (False, True)
    env = GymToGymnasium(Gym21Env(length=2, limit=2))  # termination wins if both happen at once
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (True, False)


def test_reset_without_seed_does_not_call_seed():
    env = GymToGymnasium(Gym21Env())
    env.env.random = np.random.RandomState(0)
    env.reset()
    assert env.env.seeds == []


class Gym26Env(Gym21Env):
    """Environment for gym 0.26: ``step`` returns five values, and ``reset`` takes a seed and returns an info."""

    def reset(self, *, seed=None, options=None):
        self.seed((seed, "reset") and seed)
        self.options = options
        return super().reset(), {"fresh": True}

    def step(self, action):
        observation, reward, done, info = super().step(action)
        return observation, reward, False, bool(done), info


def test_gym_26_environment_is_converted():
    env = GymToGymnasium(Gym26Env(length=1))
    _, info = env.reset(seed=7, options={"x": 1})
    assert (info, env.env.seeds, env.env.options) == ({"fresh": True}, [7], {"x": 1})
    assert env.step(0)[1:4] == (1, False, True)


class OldWrapper:
    """Wrapper like those of gym, which forwards all arguments and attributes."""

    def __init__(self, env):
        self.env = self.unwrapped = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)


@pytest.mark.parametrize("kind", [Gym21Env, Gym26Env])
def test_seeds_pass_through_wrappers(kind):
    env = GymToGymnasium(OldWrapper(kind()))
    env.reset(seed=3)
    assert env.unwrapped.env.env.seeds == [3]


def test_environment_without_seed_warns():
    class Fixed(Gym21Env):
        seed = None
        random = np.random.RandomState(0)

    with pytest.warns(UserWarning, match="^Fixed cannot be seeded: it has neither"):
        GymToGymnasium(Fixed()).reset(seed=3)


def test_tuple_observation_is_not_taken_for_observation_and_info():
    class Pair(Gym21Env):
        observation_space = OldSpace(spaces=[DISCRETE, OldSpace(spaces={"a": DISCRETE})])

        def reset(self):
            return (1, {"a": 2})

    observation, info = GymToGymnasium(Pair()).reset(seed=0)
    assert (observation, info) == ((1, {"a": 2}), {})


def test_step_with_three_values_is_refused():
    class Three(Gym21Env):
        def step(self, action):
            return 1, 2, 3

    with pytest.raises(APIUsageError, match=r"GymToGymnasium: step must return 4 values.*or 5.*got \(1, 2, 3\)"):
        GymToGymnasium(Three()).step(0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DISCRETE, Discrete(4)),
        (OldSpace(n=4, shape=(), start=-1), Discrete(4, start=-1)),
        (OldSpace(n=3, shape=(3,)), MultiBinary(3)),
        (OldSpace(n=(2, 3), shape=(2, 3)), MultiBinary([2, 3])),
        (OldSpace(nvec=np.array([2, 3]), shape=(2,)), MultiDiscrete([2, 3])),
        (BOX, Box(0, 1, (3,))),
        (OldSpace(low=np.zeros(2), high=np.ones(2), shape=(2,), dtype=None), Box(0, 1, (2,))),
        (OldSpace(spaces=(DISCRETE, BOX)), Tuple([Discrete(4), Box(0, 1, (3,))])),
        (OldSpace(max_length=3, min_length=0, character_set=frozenset("ab")), Text(3, min_length=0, charset="ab")),
        (OldSpace(feature_space=BOX), Sequence(Box(0, 1, (3,)))),
        (OldSpace(node_space=BOX, edge_space=DISCRETE), Graph(Box(0, 1, (3,)), Discrete(4))),
        (OldSpace(node_space=BOX, edge_space=None), Graph(Box(0, 1, (3,)), None)),
    ],
)
def test_old_spaces_are_recognized_by_their_attributes(old, new):
    assert new_space("observation", old) == new


def test_unknown_spaces_are_named():
    with pytest.raises(APIUsageError, match=r"observation\['a'\]\[0\] space OldSpace\(\) looks like no known space"):
        new_space("observation", OldSpace(spaces={"a": OldSpace(spaces=[OldSpace()])}))


def test_gymnasium_puffer_env_converts_old_environments():
    env = GymnasiumPufferEnv(Gym21Env(length=2), seed=4)
    observation, _ = env.reset()
    assert env.env.env.seeds == [4]
    assert observation.view(env.obs_dtype)[0]["size"] == 3
    env.step(0)
    assert env.step(np.int64(3))[1:4] == (1, True, False)
    assert GymnasiumPufferEnv(env_creator=Gym21Env).action_space == Discrete(4)
    with pytest.raises(APIUsageError, match=r"env must be a gymnasium.Env, got <class"):
        GymnasiumPufferEnv(Gym21Env)


def test_vector_environments_are_not_taken_for_old_environments():
    for env in (pufferlib.make("squared", num_envs=1), gymnasium.make_vec("CartPole-v1", num_envs=1)):
        with pytest.raises(APIUsageError, match=r"env must be a gymnasium.Env, got"):
            GymnasiumPufferEnv(env)
        env.close()


def test_old_environments_run_in_a_batch():
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(EpisodeStats(Gym21Env()), buf=buf, seed=seed)

    for maker in (creator, functools.partial(GymnasiumPufferEnv, env_creator=Gym21Env)):
        envs = pufferlib.vector.make(maker, num_envs=2, backend=pufferlib.vector.Serial)
        envs.reset(seed=1)
        ends = [envs.step([0, 1])[2].tolist() for _ in range(4)]
        assert ends == [[False, False], [False, False], [True, True], [False, False]]
        envs.close()


class OldParallelEnv:
    """Environment for PettingZoo before 1.23: four values of ``step``, no infos of ``reset``, spaces in dicts."""

    possible_agents = ("a", "b")

    def __init__(self):
        self.observation_spaces = {"a": BOX, "b": BOX}
        self.action_spaces = {"a": DISCRETE, "b": DISCRETE}

    def seed(self, seed=None):
        self.seeded = seed

    def reset(self):
        self.agents, self.time = ["a", "b"], 0
        return {agent: np.zeros(3, np.float32) for agent in self.agents}

    def step(self, actions):
        assert actions.keys() == set(self.agents)
        self.time += 1
        agents = self.agents
        self.agents = ["a"] if self.time == 1 else []
        return (
            {agent: np.ones(3, np.float32) for agent in agents},
            dict.fromkeys(agents, 1),
            {agent: agent not in self.agents for agent in agents},
            {agent: {} for agent in agents},
        )


def test_old_pettingzoo_environment_is_converted():
    env = PettingZooTruncatedWrapper(OldParallelEnv())
    observations, infos = env.reset(seed=3)
    assert (observations.keys(), infos, env.env.seeded) == ({"a", "b"}, {"a": {}, "b": {}}, 3)
    assert env.action_space("b") == Discrete(4)
    *_, terminations, truncations, _ = env.step({"a": 0, "b": 1})
    assert (terminations, truncations) == ({"a": False, "b": True}, {"a": False, "b": False})
    assert env.agents == ["a"]


def test_pettingzoo_puffer_env_converts_old_environments():
    env = PettingZooPufferEnv(OldParallelEnv())
    env.reset(seed=0)
    assert env.masks.tolist() == [True, True]
    env.step(np.zeros(2, np.int32))
    assert (env.terminals.tolist(), env.agents) == ([False, True], ["a"])
    env.step(np.zeros(2, np.int32))
    assert (env.masks.tolist(), env.done) == ([True, False], True)


def test_wrappers_convert_old_environments():
    class Steer(Gym21Env):
        observation_space = OldSpace(low=np.zeros((4, 4)), high=np.ones((4, 4)), shape=(4, 4), dtype=np.float32)
        action_space = BOX

    assert ResizeObservation(Steer()).observation_space.shape == (2, 2)
    assert ClipAction(Steer()).action([-1, 0.5, 2]).tolist() == [0, 0.5, 1]
    assert EpisodeStats(Steer()).unwrapped.env.length == 3


class TestLimitedReset:
    """Gymnasium and PettingZoo environments whose ``reset`` takes no ``seed`` or no ``options``."""

    class SeedOnly(gymnasium.Env):
        observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

        def reset(self, seed=None):
            super().reset(seed=seed)
            return self.np_random.random(2, np.float32), {}

        def step(self, action):
            return self.np_random.random(2, np.float32), 1.0, False, False, {}

    class OptionsOnly(SeedOnly):
        def reset(self, options=None):
            return self.np_random.random(2, np.float32), {} if options is None else options

    class Neither(OptionsOnly):
        def reset(self):
            return super().reset()

    class AnyKeyword(OptionsOnly):
        def reset(self, **kwargs):
            gymnasium.Env.reset(self, seed=kwargs["seed"])
            return super().reset(kwargs["options"])

    @pytest.mark.parametrize("wrapper", [lambda env: env, EpisodeStats])
    @pytest.mark.parametrize("kind", [SeedOnly, OptionsOnly, Neither, AnyKeyword])
    def test_gymnasium_environment_is_seeded(self, kind, wrapper):
        env = GymnasiumPufferEnv(wrapper(kind()))
        first, other, again = (env.reset(seed=seed)[0].tolist() for seed in (3, 4, 3))
        assert first == again != other

    def test_options_are_refused_if_reset_does_not_take_them(self):
        assert GymnasiumPufferEnv(self.OptionsOnly()).reset(options={"x": 1})[1] == {"x": 1}
        with pytest.raises(APIUsageError, match=r"reset of <Neither.*> takes no options, got {'x': 1}; leave them out"):
            GymnasiumPufferEnv(self.Neither()).reset(options={"x": 1})

    class Pair(ParallelEnv):  # has no metadata, and no render_mode
        def __init__(self):
            self.possible_agents, self.random = ["a", "b"], np.random.default_rng()
            self.observation_space = {agent: Box(0, 1, (2,)) for agent in "ab"}.get
            self.action_space = {agent: Discrete(2) for agent in "ab"}.get

        def reset(self, seed=None):
            self.agents, self.random = ["a", "b"], np.random.default_rng(seed)
            return {agent: self.random.random(2, np.float32) for agent in "ab"}, {"a": {}, "b": {}}

    class PairWithSeed(Pair):
        def seed(self, seed):
            self.drawn_from = seed

        def reset(self):
            return super().reset(self.drawn_from)

    @pytest.mark.parametrize("wrapper", [lambda env: env, MultiagentEpisodeStats, PadAgents])
    @pytest.mark.parametrize("kind", [Pair, PairWithSeed])
    def test_pettingzoo_environment_is_seeded(self, kind, wrapper):
        env = PettingZooPufferEnv(wrapper(kind()))
        first, other, again = (env.reset(seed=seed)[0]["a"].tolist() for seed in (3, 4, 3))
        assert first == again != other
        assert (env.metadata, env.render_mode) == ({}, None)

    def test_aec_environment_is_seeded(self):
        class Turns(AECEnv):  # has no render_mode
            metadata = {"is_parallelizable": True}  # noqa: RUF012
            possible_agents = agents = ["a"]  # noqa: RUF012
            terminations = truncations = {"a": False}  # noqa: RUF012
            infos = {"a": {}}  # noqa: RUF012

            def observation_space(self, agent):
                return Box(0, 9, (1,))

            def action_space(self, agent):
                return Discrete(2)

            def observe(self, agent):
                return np.full(1, self.shown, np.float32)

            def reset(self, seed=None):
                self.shown = seed

        env = PettingZooPufferEnv(Turns())
        assert env.reset(seed=3)[0]["a"].tolist() == [3]
        assert env.render_mode is None
        del Turns.metadata
        with pytest.raises(APIUsageError, match="metadata of a turn-based environment must have is_parallelizable"):
            PettingZooPufferEnv(Turns())


def test_reset_without_infos_raises_in_wrappers():
    env = FunctionEnv()
    env.reset = lambda seed=None, options=None: np.zeros(1, np.float32)
    with pytest.raises(APIUsageError, match="reset must return a tuple of observation and info, got ndarray"):
        EpisodeStats(env).reset()


def test_gymnasium_environment_with_old_step_names_the_wrapper():
    old_step = FunctionEnv(Discrete(2))
    old_step.step = lambda action: (0, 1.0, True, {})
    env = GymnasiumPufferEnv(old_step)
    env.reset()
    with pytest.raises(APIUsageError, match=r"step must return .* got 4 values.*pufferlib.GymToGymnasium"):
        env.step(0)
    env = GymnasiumPufferEnv(GymToGymnasium(old_step))
    env.reset()
    assert env.step(0)[1:4] == (1, True, False)


class SingleEnv(Gym21Env):
    """Environment with the attributes by which wrappers of gym mark a single environment."""

    num_envs, is_vector_env = 1, False


class BatchEnv(Gym21Env):
    num_envs = 2


class AsyncEnv(SingleEnv):
    def step_async(self, actions): ...


class VectorFlagEnv(SingleEnv):
    is_vector_env = True


@pytest.mark.parametrize(
    ("kind", "is_one"), [(SingleEnv, True), (BatchEnv, False), (AsyncEnv, False), (VectorFlagEnv, False)]
)
def test_only_single_environments_are_converted(kind, is_one):
    assert isinstance(converted(kind()), GymToGymnasium) is is_one
