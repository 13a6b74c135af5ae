"""GymnasiumPufferEnv: observations, outcomes of steps, and errors for wrong ones."""

import pickle
import re
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.wrappers import DelayObservation, FrameStackObservation

from pufferlib import APIUsageError
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv, observation_layout
from pufferlib.wrappers import ClipAction, EpisodeStats, ResizeObservation
from tests.envs import NESTED, FunctionEnv, ScriptedParallelEnv, alive, counting_env

FLOATS = [np.float16, np.float32, np.float64]


def env_returning(*outcome):
    """Make an environment whose steps return ``outcome``."""
    env = FunctionEnv()
    env.step = lambda action: outcome
    return env


def test_discrete_observation_has_one_element():
    env = GymnasiumPufferEnv(FunctionEnv(Discrete(9, start=3)))
    observation, _ = env.reset()
    assert observation.shape == (1,)
    assert observation[0] == env.env.observations[-1]


def test_structured_view_has_fields_of_nested_observations():
    env = GymnasiumPufferEnv(FunctionEnv(NESTED))
    observation, _ = env.reset()
    view, shown = observation.view(env.obs_dtype)[0], env.env.observations[-1]
    np.testing.assert_array_equal(view["map"], shown["map"])
    np.testing.assert_array_equal(view["hero"]["f1"], shown["hero"][1])
    assert view["hero"]["f0"] == shown["hero"][0]
    assert env.emulated == {
        "observation_dtype": np.uint8,
        "emulated_observation_dtype": env.obs_dtype,
        "observation_bounds": {
            "map": (0, 255),
            "hero": {"f0": (7, 10), "f1": (-1, 1)},
            "items": (0, 4),
            "flags": (0, 1),
            "gold": (0, 1),
        },
    }


def test_observation_of_empty_leaves_has_one_byte():
    env = GymnasiumPufferEnv(FunctionEnv(Dict({"a": Box(0, 1, (0,)), "b": Dict({"c": Box(0, 1, (2, 0))})})))
    assert env.observation_space == Box(0, 255, (1,), np.uint8)
    flat, _ = env.reset()
    fields = flat.view(env.obs_dtype)
    assert (fields["a"].shape, fields["b"]["c"].shape) == ((1, 0), (1, 2, 0))


def test_observations_and_outcomes_are_written_into_buf():
    env = GymnasiumPufferEnv(FunctionEnv(Box(0, 1, (2,))))
    batch = np.zeros((3, 2), np.float32)
    buf = {
        "observations": batch[1:2],
        "actions": np.zeros(1, np.int32),
        "rewards": np.ones(1, np.float32),
        **{name: np.zeros(1, bool) for name in ("terminals", "truncations", "masks")},
    }
    env = GymnasiumPufferEnv(FunctionEnv(Box(0, 1, (2,)), length=1, info=lambda env: {"count": env.count}), buf=buf)
    observation, _ = env.reset()
    assert np.shares_memory(observation, batch)
    assert buf["rewards"][0] == 0
    assert buf["masks"][0]
    _, reward, terminated, truncated, info = env.step(1)
    np.testing.assert_array_equal(batch[1], env.env.observations[-1])
    assert (reward, terminated, truncated, info) == (1.0, True, False, {"count": 1})
    assert (buf["rewards"][0], buf["terminals"][0], buf["truncations"][0]) == (1.0, True, False)
    assert not batch[[0, 2]].any()


def test_replaced_observations_array_is_written():
    env = GymnasiumPufferEnv(FunctionEnv(NESTED))
    env.reset()
    env.observations = np.zeros_like(env.observations)
    observation, *_ = env.step(0)
    np.testing.assert_array_equal(observation, env.observations[0])
    np.testing.assert_array_equal(observation.view(env.obs_dtype)[0]["map"], env.env.observations[-1]["map"])


class TestOutsideABatch:
    """Callers outside of a batch can keep the observations that they get."""

    def test_each_call_returns_a_new_array(self):
        env = GymnasiumPufferEnv(counting_env())
        shown = [env.reset()[0], env.step(0)[0], env.step(0)[0], env.reset()[0]]
        assert [observation.tolist() for observation in shown] == [[0], [1], [2], [0]]

    def test_environments_without_seed_differ(self):
        def first(**seed):
            return GymnasiumPufferEnv(gymnasium.make("CartPole-v1"), **seed).reset()[0].tolist()

        assert first() != first()
        assert first(seed=0) == first(seed=0)

    def test_seed_may_be_an_integer_of_numpy(self):
        env = GymnasiumPufferEnv(gymnasium.make("CartPole-v1"), seed=np.int64(3))
        observations = [env.reset(seed=seed)[0].tolist() for seed in (None, np.uint8(3), 3)]
        assert observations[0] == observations[1] == observations[2]

    def test_wrappers_can_keep_observations(self):
        stack = FrameStackObservation(GymnasiumPufferEnv(counting_env()), 3)
        late = DelayObservation(GymnasiumPufferEnv(counting_env()), 2)
        seen = [(stack.reset()[0].ravel().tolist(), late.reset()[0].tolist())]
        seen += [(stack.step(0)[0].ravel().tolist(), late.step(0)[0].tolist()) for _ in range(3)]
        assert seen == [([0, 0, 0], [0]), ([0, 0, 1], [0]), ([0, 1, 2], [0]), ([1, 2, 3], [1])]

    def test_sync_vector_env_has_final_observations(self):
        make = partial(GymnasiumPufferEnv, env_creator=counting_env)
        envs = gymnasium.vector.SyncVectorEnv([make, make], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
        envs.reset()
        for _ in range(3):
            observations, _, _, _, infos = envs.step(np.zeros(2, int))
        assert observations.tolist() == [[0], [0]]
        assert [last.tolist() for last in infos["final_obs"]] == [[3], [3]]

    @pytest.mark.parametrize("reward", [2, 0.5, np.float64(0.1), np.float32(0.1), np.array([0.3]), np.int64(2)])
    def test_step_returns_python_numbers_and_bools(self, reward):
        env = GymnasiumPufferEnv(env_returning(np.zeros(1, np.float32), reward, np.bool_(False), np.array(True), {}))
        env.reset()
        _, got, terminated, truncated, _ = env.step(0)
        assert isinstance(got, int | float)
        assert (got, terminated, truncated) == (reward, False, True)
        assert (type(terminated), type(truncated)) == (bool, bool)


def test_spec_recreates_environment_with_wrappers():
    dim = partial(FunctionEnv, Box(0, 1, (4, 2)), Box(-1, 1, (1,)))
    inner = ResizeObservation(
        EpisodeStats(ClipAction(gymnasium.make(EnvSpec("Dim-v0", dim)))),
        downscale=2,
    )
    env = gymnasium.make(GymnasiumPufferEnv(inner, seed=3, max_length=5).spec)
    assert str(env).startswith("<GymnasiumPufferEnv<ResizeObservation<EpisodeStats<ClipAction<")
    assert env.observation_space == Box(0, 1, (2, 1))
    env.reset()
    assert env.unwrapped.np_random_seed == 3


GOOD = {"a": np.zeros(2, np.float32), "b": 1}


class TestObservations:
    def show(self, space, *observations):
        queue = iter(observations)
        env = GymnasiumPufferEnv(FunctionEnv(space, observe=lambda _: next(queue)))
        env.reset()
        for _ in observations[1:]:
            env.step(0)
        return env.observations[0]

    space = Dict({"a": Box(-1, 1, (2,)), "b": Discrete(2)})

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"a": {"x": 1}, "b": 1}, r"observation\['a'\] must have an array of shape \(2,\), got {'x': 1}; let the"),
            ({"a": np.zeros(3, np.float32), "b": 1}, r"observation\['a'\] must have shape \(2,\), got shape \(3,\)"),
            ({"a": np.array(["x", "y"]), "b": 1}, r"observation\['a'\] must have dtype float32, got dtype <U1"),
            ({"a": [[0], [0, 0]], "b": 1}, r"observation\['a'\] must have an array of shape \(2,\)"),
            ({"a": np.zeros(2, np.float32), "b": 1.0}, r"observation\['b'\] must have dtype int32, got dtype float64"),
            ({"a": np.zeros(2, np.float32), "b": 2**40}, r"observation\['b'\] must have values that int32 can hold"),
            ({"a": np.zeros(2, np.float32)}, r"'b'"),
            (3, r"observation"),
        ],
    )
    def test_wrong_observations_are_refused_at_reset_and_step(self, bad, message):
        with pytest.raises(APIUsageError, match=message):
            self.show(self.space, bad)
        with pytest.raises(APIUsageError, match=message):
            self.show(self.space, GOOD, bad)

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({**GOOD, "c": 0}, r"observation must have the keys \['a', 'b'\], got \['a', 'b', 'c'\]"),
            ({**GOOD, "b": 2}, r"observation\['b'\] must have values in Discrete\(2\), got 2 to 2"),
            ({**GOOD, "a": np.array([0, 2], np.float32)}, r"observation\['a'\] must have values in Box"),
            ({**GOOD, "a": np.array([0, np.nan], np.float32)}, r"observation\['a'\] must have values in Box"),
        ],
    )
    def test_values_of_the_first_observation_are_checked(self, bad, message):
        with pytest.raises(APIUsageError, match=message):
            self.show(self.space, bad)

    @pytest.mark.parametrize(
        "sloppy",
        [
            {"a": [0.5, 1], "b": np.int64(1)},
            {"a": np.array([0.5, 1]), "b": np.array(1)},
            {"a": np.array([[0.5, 0], [1, 0]], np.float32)[:, 0], "b": True},
            {"b": 1, "a": np.array([0.5, 1], ">f4")},
        ],
    )
    def test_convertible_observations_are_accepted(self, sloppy):
        view = self.show(self.space, sloppy).view(observation_layout(self.space).dtype)[0]
        np.testing.assert_array_equal(view["a"], [0.5, 1])
        assert view["b"] == 1

    @pytest.mark.parametrize(
        ("space", "observation"),
        [(MultiBinary(2), np.array([0.0, 1.0])), (Tuple((Discrete(2), Discrete(3))), np.array([0, 1]))],
        ids=["MultiBinary as float64", "Tuple as an array"],
    )
    def test_arrays_that_the_space_contains_are_accepted(self, space, observation):
        assert space.contains(observation)
        np.testing.assert_array_equal(self.show(space, observation, observation), [0, 1])

    @pytest.mark.parametrize("bad", [[0, 0.5], [0, np.nan], [0, 256]])
    def test_floats_other_than_0_and_1_are_refused_for_multi_binary(self, bad):
        for observations in ([bad], [[0, 1], bad]):
            with pytest.raises(APIUsageError, match="observation must have values that int8 can hold"):
                self.show(MultiBinary(2), *map(np.array, observations))

    def test_fractions_and_overflows_are_refused(self):
        pixels = Box(0, 255, (2,), np.uint8)
        np.testing.assert_array_equal(self.show(pixels, np.array([3, 200])), [3, 200])
        for bad in ([0.5, 1.0], [0, 256], [-1, 0]):
            with pytest.raises(APIUsageError, match=r"observation must have"):
                self.show(pixels, np.array(bad))
        with pytest.raises(APIUsageError, match=r"int32 can hold"):
            self.show(MultiDiscrete([2, 2]), np.array([0, 2**40]))

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_nan_is_refused_at_any_step(self, dtype):
        space = Dict({"b": Discrete(2), "a": Box(-1, 1, (3,), dtype)})
        good, bad = np.zeros(3, dtype), np.array([0, 1, np.nan], dtype)
        for value in (bad, bad.tolist()):
            with pytest.raises(APIUsageError, match=r"observation\['a'\] must have numbers, got nan"):
                self.show(space, {"a": good, "b": 0}, {"a": good, "b": 1}, {"a": value, "b": 0})

    def test_nan_in_a_large_leaf_is_refused_at_reset(self):
        good, bad = np.zeros(2000, np.float32), np.full(2000, np.nan, np.float32)
        queue = iter([good, good, bad])
        env = GymnasiumPufferEnv(FunctionEnv(Box(-1, 1, (2000,)), observe=lambda _: next(queue)))
        for _ in range(2):
            env.reset()
        with pytest.raises(APIUsageError, match=r"observation must have numbers, got nan"):
            env.reset()

    def test_float64_observations_become_float32(self):
        space = Box(-np.inf, np.inf, (2,))
        np.testing.assert_array_equal(self.show(space, np.array([0.1, -np.inf])), np.float32([0.1, -np.inf]))

    def test_pickled_dtypes_are_accepted(self):
        space = pickle.loads(pickle.dumps(Dict({"a": Box(-1, 1, (2,)), "b": Discrete(2)})))
        value = np.zeros(2, pickle.loads(pickle.dumps(np.dtype(np.float32)))) + np.float32(0.5)
        assert self.show(space, {"a": value, "b": 1}).view(observation_layout(space).dtype)[0]["a"].tolist() == [
            0.5,
            0.5,
        ]


class TestOutcome:
    def step(self, *outcome):
        env = GymnasiumPufferEnv(env_returning(np.zeros(1, np.float32), *outcome))
        env.reset()
        env.step(0)
        return float(env.rewards[0]), bool(env.terminals[0]), bool(env.truncations[0]), env.done

    @pytest.mark.parametrize(
        "reward", [2, 2.0, np.float32(2), np.float64(2), np.int8(2), np.array(2), np.array(2.0), np.array([2.0])]
    )
    def test_rewards_can_have_any_number_type(self, reward):
        assert self.step(reward, False, False, {}) == (2.0, False, False, False)

    @pytest.mark.parametrize("true", [True, np.bool_(True), np.array(True), np.array([True]), 1, 1.0])
    @pytest.mark.parametrize("false", [False, np.bool_(False), np.array(False), np.array([False]), 0, 0.0])
    def test_flags_can_have_any_type_of_bool(self, true, false):
        assert self.step(0.0, true, false, {}) == (0.0, True, False, True)
        assert self.step(0.0, false, true, {}) == (0.0, False, True, True)
        assert self.step(0.0, false, false, {}) == (0.0, False, False, False)

    @pytest.mark.parametrize("flag", ["False", None, [False], 2, float("nan"), np.zeros(2, bool)])
    def test_flags_that_are_no_bools_are_refused(self, flag):
        with pytest.raises(APIUsageError, match=r"terminated must be True or False, got .* from <Func"):
            self.step(0.0, flag, False, {})
        with pytest.raises(APIUsageError, match=r"truncated must be True or False, got .* from <Func"):
            self.step(0.0, False, flag, {})

    def test_flags_in_an_array_are_refused_inside_of_episode_stats_too(self):
        env = GymnasiumPufferEnv(
            EpisodeStats(env_returning(np.zeros(1, np.float32), 0.0, np.zeros(2, bool), False, {}))
        )
        env.reset()
        with pytest.raises(APIUsageError, match="terminated must be True or False, got array"):
            env.step(0)

    @pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.array(np.nan)])
    def test_nan_rewards_are_refused(self, nan):
        with pytest.raises(
            APIUsageError,
            match=r"the reward must be a finite number that float32 can hold, got .*nan.* from <Func",
        ):
            self.step(nan, False, False, {})

    @pytest.mark.parametrize(
        "reward", [None, "1", [1.0, 2.0], np.zeros(2), np.zeros(0), -1e39, float("inf"), np.float32("-inf")]
    )
    def test_rewards_that_are_no_finite_float32_are_refused(self, reward):
        with pytest.raises(
            APIUsageError, match=r"the reward must be a finite number that float32 can hold, got .* from <Func"
        ):
            self.step(reward, False, False, {})

    @pytest.mark.parametrize("outcome", [(0.0, False, {}), (0.0, False, False, {}, 1)])
    def test_step_must_return_five_values(self, outcome):
        with pytest.raises(APIUsageError, match=rf"step must return .*, got {1 + len(outcome)} values from <Func"):
            self.step(*outcome)

    @pytest.mark.parametrize("returned", [None, 7, np.zeros(5)])
    def test_wrong_return_value_of_step_is_shown(self, returned):
        env = GymnasiumPufferEnv(env_returning())
        env.reset()
        env.env.step = lambda action: returned
        with pytest.raises(APIUsageError, match=rf"step must return .*, got {re.escape(repr(returned))} from <Func"):
            env.step(0)

    @pytest.mark.parametrize(
        ("returned", "got"), [(None, "NoneType"), (np.zeros(2, np.float32), "ndarray"), (([0.0, 0.0],), "1 values")]
    )
    def test_reset_must_return_observation_and_info(self, returned, got):
        env = env_returning()
        env.reset = lambda seed=None, options=None: returned
        with pytest.raises(APIUsageError, match=rf"reset must return a tuple of observation and info, got {got} from"):
            GymnasiumPufferEnv(env).reset()

    def test_pair_without_info_from_reset_raises(self):
        """An observation that is a tuple of two numbers looks like an observation and an info."""
        env = env_returning()
        env.reset = lambda seed=None, options=None: (3, 4)
        with pytest.raises(
            APIUsageError, match=r"where info is a dict, got int as info from .*return observation, \{\}"
        ):
            GymnasiumPufferEnv(env).reset()


class TestReplacedParts:
    def test_replaced_env_attribute_is_stepped(self):
        env = GymnasiumPufferEnv(FunctionEnv(Box(0, 1, (1,))))
        env.reset()
        env.env = env_returning(np.ones(1, np.float32), 3.0, False, False, {})
        assert env.step(0)[:2] == (np.ones(1, np.float32), 3.0)

    def test_subclass_can_override_step(self):
        class Doubled(GymnasiumPufferEnv):
            def step(self, action):
                observation, reward, *rest = super().step(action)
                return observation, 2 * reward, *rest

        env = Doubled(env_returning(np.zeros(1, np.float32), 3.0, False, False, {}))
        env.reset()
        assert env.step(0)[1] == 6.0

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("observations", np.zeros((1, 2), np.float32)),
            ("observations", np.zeros((2, 1), np.float32)),
            ("rewards", np.zeros(1, np.float64)),
            ("terminals", np.zeros(1, np.int8)),
            ("masks", np.zeros((), bool)),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, name, array):
        env = GymnasiumPufferEnv(FunctionEnv(Box(0, 1, (1,))))
        with pytest.raises(APIUsageError, match=rf"GymnasiumPufferEnv: {name} must have 1 rows"):
            setattr(env, name, array)
        env.reset()
        env.step(0)

    def test_deleted_array_is_still_written(self):
        env = GymnasiumPufferEnv(FunctionEnv(Box(0, 1, (1,)), length=100))
        env.reset()
        rewards = env.rewards
        del env.rewards
        env.step(0)
        assert rewards[0] == 1.0


class TestConstruction:
    def test_exactly_one_of_env_and_env_creator_is_required(self):
        with pytest.raises(APIUsageError, match="got none"):
            GymnasiumPufferEnv()
        with pytest.raises(APIUsageError, match="got both"):
            GymnasiumPufferEnv(FunctionEnv(Discrete(2)), env_creator=FunctionEnv)
        with pytest.raises(APIUsageError, match="env_creator must be callable"):
            GymnasiumPufferEnv(env_creator=FunctionEnv(Discrete(2)))
        with pytest.raises(APIUsageError, match=r"env must be a gymnasium\.Env, got <class"):
            GymnasiumPufferEnv(FunctionEnv)

    def test_creator_gets_its_arguments_and_no_seed(self):
        env = GymnasiumPufferEnv(env_creator=FunctionEnv, env_args=[Discrete(2)], env_kwargs={"length": 7}, seed=3)
        assert env.env.length == 7
        env.reset()
        env.reset()
        env.reset(seed=0)
        assert env.env.seeds == [3, None, 0]

    def test_is_a_gymnasium_env(self):
        inner = FunctionEnv(NESTED)
        env = GymnasiumPufferEnv(inner)
        assert isinstance(env, gymnasium.Env)
        assert env.unwrapped is inner
        assert env.observation_space is env.single_observation_space
        assert (env.is_obs_emulated, env.is_atn_emulated, env.num_agents) == (True, False, 1)


def test_order_of_calls():
    env = GymnasiumPufferEnv(FunctionEnv(Discrete(2), length=1))
    assert env.done
    with pytest.raises(APIUsageError, match="step: no episode is running; call reset first"):
        env.step(0)
    _, info = env.reset(options={"x": 1})
    assert info == {"x": 1}
    assert not env.done
    env.step(0)
    assert env.done
    with pytest.raises(APIUsageError, match="no episode is running"):
        env.step(0)
    env.reset()
    assert not env.done


@pytest.mark.parametrize(("reward", "terminated"), [([0.0, 1.0], False), (0.0, [False, False]), ({"a": 1.0}, False)])
def test_rewards_and_flags_of_several_agents_name_pettingzoo_puffer_env(reward, terminated):
    two_agents = FunctionEnv(Tuple([Box(-9, 9, (4,))] * 2), Tuple([Discrete(5)] * 2))  # like EPyMARL
    two_agents.step = lambda actions: (two_agents.observation_space.sample(), reward, terminated, False, {})
    env = GymnasiumPufferEnv(env=two_agents)
    env.reset()
    with pytest.raises(APIUsageError, match=r"several agents, .* PettingZoo ParallelEnv .* PettingZooPufferEnv"):
        env.step([1, 2])


def test_spaces_and_observations_of_several_agents_name_pettingzoo_puffer_env():
    match = r"several agents, .* PettingZooPufferEnv"
    with pytest.raises(APIUsageError, match=match):
        GymnasiumPufferEnv(env=FunctionEnv([Box(0, 1, (2,))] * 2))
    env = GymnasiumPufferEnv(env=FunctionEnv(Box(0, 1, (2,)), observe=lambda env: [np.zeros(2, np.float32)] * 2))
    with pytest.raises(APIUsageError, match=match):
        env.reset()


def _shown(observation, env):
    return observation


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-np.pi, np.pi), (1e6, 2e6), (0, np.inf)])
def test_rounding_errors_beyond_box_bounds_are_accepted(low, high, dtype):
    space = Box(low, high, (1,), dtype)
    bounds = [bound for bound in (space.low, space.high) if np.isfinite(bound)]
    step = np.finfo(dtype).eps * max([*np.abs(bounds).ravel(), 1])
    for bound, sign in ((space.low, -1), *([(space.high, 1)] if len(bounds) == 2 else [])):
        env = GymnasiumPufferEnv(env=FunctionEnv(space, observe=partial(_shown, bound + dtype(2 * sign * step))))
        env.reset()
        far = GymnasiumPufferEnv(env=FunctionEnv(space, observe=partial(_shown, bound + dtype(200 * sign * step))))
        with pytest.raises(APIUsageError, match="values in Box"):
            far.reset()


class TestReturnedObservations:
    """Outside of a batch, returned arrays are reused only after the caller has dropped them."""

    def setup_method(self):
        self.env = GymnasiumPufferEnv(
            env=FunctionEnv(Box(0, 99, (3,)), observe=lambda env: np.full(3, env.count, "f4"), length=99)
        )

    def test_kept_observations_and_views_do_not_change(self):
        kept = [self.env.reset()[0], *(self.env.step(0)[0] for _ in range(9))]
        views = [self.env.step(0)[0][1:] for _ in range(9)]
        buffers = [memoryview(self.env.step(0)[0]) for _ in range(9)]
        assert [array[0] for array in kept] == list(range(10))
        assert [view[0] for view in views] == list(range(10, 19))
        assert [buffer[0] for buffer in buffers] == list(range(19, 28))

    def test_memory_of_dropped_observations_is_reused(self):
        self.env.reset()
        observation, places = None, set()
        for _ in range(9):
            observation = self.env.step(0)[0]
            places.add(observation.ctypes.data)
        assert len(places) <= 3

    def test_modified_arrays_are_not_reused(self):
        self.env.reset()
        for _ in range(9):
            observation = self.env.step(0)[0]
            observation.resize((3, 1), refcheck=False)
            observation.flags.writeable = False
        observation = self.env.step(0)[0]
        assert (observation.shape, observation.flags.writeable) == ((3,), True)


@pytest.mark.parametrize(
    ("emulation", "make", "advice"),
    [
        (GymnasiumPufferEnv, lambda: ScriptedParallelEnv(alive("a")), "wrap it with PettingZooPufferEnv"),
        (PettingZooPufferEnv, FunctionEnv, "wrap it with GymnasiumPufferEnv"),
        (GymnasiumPufferEnv, lambda: gymnasium.vector.SyncVectorEnv([FunctionEnv]), "it is a vector environment"),
    ],
    ids=["PettingZoo", "Gymnasium", "vector"],
)
def test_environments_of_another_api_name_the_right_wrapper(emulation, make, advice):
    with pytest.raises(APIUsageError, match=f"{emulation.__name__}: env must be a .*; {advice}"):
        emulation(env_creator=make)


@pytest.mark.parametrize("missing", ["observation_space", "action_space"])
def test_missing_space_raises(missing):
    class Bare(gymnasium.Env):
        def __init__(self):
            for name in {"observation_space", "action_space"} - {missing}:
                setattr(self, name, gymnasium.spaces.Discrete(2))

    with pytest.raises(APIUsageError, match=rf"Bare instance> has no {missing} .*; set it in the class or"):
        GymnasiumPufferEnv(Bare())
