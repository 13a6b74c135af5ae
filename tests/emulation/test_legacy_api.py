"""Environments of the APIs before Gymnasium: wrapped as they are, without the packages they came from."""

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
from pufferlib.wrappers import MultiagentEpisodeStats, PadAgents


class Old(SimpleNamespace):
    """A space or an environment that inherits from nothing we know."""

    def sample(self):
        raise AssertionError("nobody should ask")


DISCRETE = Old(n=np.int64(4), shape=())
BOX = Old(low=np.zeros(3, np.float32), high=np.ones(3, np.float32), shape=(3,), dtype=np.dtype(np.float32))


class Walk:
    """As environments for gym 0.21 were written: four values, no info, its own seed()."""

    observation_space = Old(spaces={"place": BOX, "size": DISCRETE})
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


def test_four_values_become_five():
    env = GymToGymnasium(Walk())
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


def test_a_time_limit_is_no_end():
    env = GymToGymnasium(Walk(limit=2))
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (False, True)
    env = GymToGymnasium(Walk(length=2, limit=2))  # both at once: the end counts
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (True, False)


def test_no_seed_is_no_call():
    env = GymToGymnasium(Walk())
    env.env.random = np.random.RandomState(0)
    env.reset()
    assert env.env.seeds == []


class Later(Walk):
    """As for gym 0.26: five values, reset with seed and info."""

    def reset(self, *, seed=None, options=None):
        self.seed((seed, "reset") and seed)
        self.options = options
        return super().reset(), {"fresh": True}

    def step(self, action):
        observation, reward, done, info = super().step(action)
        return observation, reward, False, bool(done), info


def test_later_versions_of_the_api():
    env = GymToGymnasium(Later(length=1))
    _, info = env.reset(seed=7, options={"x": 1})
    assert (info, env.env.seeds, env.env.options) == ({"fresh": True}, [7], {"x": 1})
    assert env.step(0)[1:4] == (1, False, True)


class OldWrapper:
    """A wrapper of the old kind, which hands on whatever it gets."""

    def __init__(self, env):
        self.env = self.unwrapped = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)


@pytest.mark.parametrize("kind", [Walk, Later])
def test_seeds_pass_through_wrappers(kind):
    env = GymToGymnasium(OldWrapper(kind()))
    env.reset(seed=3)
    assert env.unwrapped.env.env.seeds == [3]


def test_who_cannot_be_seeded_says_so():
    class Fixed(Walk):
        seed = None
        random = np.random.RandomState(0)

    with pytest.warns(UserWarning, match="cannot be seeded: it has neither"):
        GymToGymnasium(Fixed()).reset(seed=3)


def test_a_tuple_observation_is_no_info():
    class Pair(Walk):
        observation_space = Old(spaces=[DISCRETE, Old(spaces={"a": DISCRETE})])

        def reset(self):
            return (1, {"a": 2})

    observation, info = GymToGymnasium(Pair()).reset(seed=0)
    assert (observation, info) == ((1, {"a": 2}), {})


def test_other_numbers_of_values_are_refused():
    class Three(Walk):
        def step(self, action):
            return 1, 2, 3

    with pytest.raises(APIUsageError, match=r"GymToGymnasium: step must return 4 values.*or 5.*got \(1, 2, 3\)"):
        GymToGymnasium(Three()).step(0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DISCRETE, Discrete(4)),
        (Old(n=4, shape=(), start=-1), Discrete(4, start=-1)),
        (Old(n=3, shape=(3,)), MultiBinary(3)),
        (Old(n=(2, 3), shape=(2, 3)), MultiBinary([2, 3])),
        (Old(nvec=np.array([2, 3]), shape=(2,)), MultiDiscrete([2, 3])),
        (BOX, Box(0, 1, (3,))),
        (Old(low=np.zeros(2), high=np.ones(2), shape=(2,), dtype=None), Box(0, 1, (2,))),
        (Old(spaces=(DISCRETE, BOX)), Tuple([Discrete(4), Box(0, 1, (3,))])),
        (Old(max_length=3, min_length=0, character_set=frozenset("ab")), Text(3, min_length=0, charset="ab")),
        (Old(feature_space=BOX), Sequence(Box(0, 1, (3,)))),
        (Old(node_space=BOX, edge_space=DISCRETE), Graph(Box(0, 1, (3,)), Discrete(4))),
        (Old(node_space=BOX, edge_space=None), Graph(Box(0, 1, (3,)), None)),
    ],
)
def test_spaces_by_what_they_have(old, new):
    assert new_space("observation", old) == new


def test_unknown_spaces_are_named():
    with pytest.raises(APIUsageError, match=r"observation\['a'\]\[0\] space Old\(\) looks like no known space"):
        new_space("observation", Old(spaces={"a": Old(spaces=[Old()])}))


def test_emulation_converts_by_itself():
    env = GymnasiumPufferEnv(Walk(length=2), seed=4)
    observation, _ = env.reset()
    assert env.env.env.seeds == [4]
    assert observation.view(env.obs_dtype)[0]["size"] == 3
    env.step(0)
    assert env.step(np.int64(3))[1:4] == (1, True, False)
    assert GymnasiumPufferEnv(env_creator=Walk).action_space == Discrete(4)
    with pytest.raises(APIUsageError, match=r"env must be a gymnasium.Env, got <class"):
        GymnasiumPufferEnv(Walk)


def test_batches_are_no_old_environments():
    for env in (pufferlib.make("squared", num_envs=1), gymnasium.make_vec("CartPole-v1", num_envs=1)):
        with pytest.raises(APIUsageError, match=r"env must be a gymnasium.Env, got"):
            GymnasiumPufferEnv(env)
        env.close()


def test_old_environments_in_a_batch():
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(EpisodeStats(Walk()), buf=buf, seed=seed)

    for maker in (creator, functools.partial(GymnasiumPufferEnv, env_creator=Walk)):
        envs = pufferlib.vector.make(maker, num_envs=2, backend=pufferlib.vector.Serial)
        envs.reset(seed=1)
        ends = [envs.step([0, 1])[2].tolist() for _ in range(4)]
        assert ends == [[False, False], [False, False], [True, True], [False, False]]
        envs.close()


class OldDuel:
    """As for PettingZoo before 1.23: four values, no infos from reset, spaces in dicts."""

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


def test_old_pettingzoo():
    env = PettingZooTruncatedWrapper(OldDuel())
    observations, infos = env.reset(seed=3)
    assert (observations.keys(), infos, env.env.seeded) == ({"a", "b"}, {"a": {}, "b": {}}, 3)
    assert env.action_space("b") == Discrete(4)
    *_, terminations, truncations, _ = env.step({"a": 0, "b": 1})
    assert (terminations, truncations) == ({"a": False, "b": True}, {"a": False, "b": False})
    assert env.agents == ["a"]


def test_emulation_converts_old_pettingzoo_by_itself():
    env = PettingZooPufferEnv(OldDuel())
    env.reset(seed=0)
    assert env.masks.tolist() == [True, True]
    env.step(np.zeros(2, np.int32))
    assert (env.terminals.tolist(), env.agents) == ([False, True], ["a"])
    env.step(np.zeros(2, np.int32))
    assert (env.masks.tolist(), env.done) == ([True, False], True)


def test_our_wrappers_convert():
    class Steer(Walk):
        observation_space = Old(low=np.zeros((4, 4)), high=np.ones((4, 4)), shape=(4, 4), dtype=np.float32)
        action_space = BOX

    assert ResizeObservation(Steer()).observation_space.shape == (2, 2)
    assert ClipAction(Steer()).action([-1, 0.5, 2]).tolist() == [0, 0.5, 1]
    assert EpisodeStats(Steer()).unwrapped.env.length == 3


class TestLimitedReset:
    """Environments of today whose ``reset`` has no ``seed`` or no ``options``, wrapped or not."""

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
    def test_of_gymnasium(self, kind, wrapper):
        env = GymnasiumPufferEnv(wrapper(kind()))
        first, other, again = (env.reset(seed=seed)[0].tolist() for seed in (3, 4, 3))
        assert first == again != other

    def test_options_pass_where_they_are_taken_and_are_refused_elsewhere(self):
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
    def test_of_pettingzoo(self, kind, wrapper):
        env = PettingZooPufferEnv(wrapper(kind()))
        first, other, again = (env.reset(seed=seed)[0]["a"].tolist() for seed in (3, 4, 3))
        assert first == again != other
        assert (env.metadata, env.render_mode) == ({}, None)

    def test_of_pettingzoo_in_turns(self):
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


def test_wrappers_tell_of_a_reset_without_infos():
    class Bare(gymnasium.Env):
        observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

        def reset(self, seed=None, options=None):
            return np.zeros(2, np.float32)

    with pytest.raises(APIUsageError, match="reset must return a tuple of observation and info, got ndarray"):
        EpisodeStats(Bare()).reset()


def test_gymnasium_environments_with_the_old_step_are_told_how():
    class Half(gymnasium.Env):
        observation_space = action_space = Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 0, 1.0, True, {}

    env = GymnasiumPufferEnv(Half())
    env.reset()
    with pytest.raises(APIUsageError, match=r"step must return .* got 4 values.*pufferlib.GymToGymnasium"):
        env.step(0)
    env = GymnasiumPufferEnv(GymToGymnasium(Half()))
    env.reset()
    assert env.step(0)[1:4] == (1, True, False)


class Counted(Walk):
    """Notes, as wrappers of gym do, that it is one environment."""

    num_envs, is_vector_env = 1, False


class Batch(Walk):
    num_envs = 2


class Stepper(Counted):
    def step_async(self, actions): ...


class Marked(Counted):
    is_vector_env = True


@pytest.mark.parametrize(("kind", "is_one"), [(Counted, True), (Batch, False), (Stepper, False), (Marked, False)])
def test_one_environment_may_count_itself(kind, is_one):
    assert isinstance(converted(kind()), GymToGymnasium) is is_one
