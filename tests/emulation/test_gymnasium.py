"""Emulation: what goes in comes out again, and what does not fit is refused with a sentence."""

import functools
import pickle
import re

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Text, Tuple
from gymnasium.wrappers import DelayObservation, FrameStackObservation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pufferlib import APIUsageError, vector
from pufferlib._native import Packer
from pufferlib.emulation import GymnasiumPufferEnv, action_layout, observation_layout
from pufferlib.wrappers import ClipAction, EpisodeStats, ResizeObservation

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]
NESTED = Dict(
    {
        "map": Box(0, 255, (3, 5), np.uint8),
        "hero": Tuple([Discrete(4, start=7), Box(-1, 1, (2,), np.float64)]),
        "items": MultiDiscrete([3, 4, 5]),
        "flags": MultiBinary(3),
        "gold": Box(0, 1, (), np.float32),
    }
)

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
boxes = st.one_of(
    st.builds(lambda shape, dtype: Box(-2, 3, shape, dtype), shapes, st.sampled_from(FLOATS)),
    st.builds(lambda shape, dtype: Box(0, 100, shape, dtype), shapes, st.sampled_from(INTEGERS)),
    st.builds(lambda shape: Box(0, 1, shape, np.bool_), shapes),
)
discrete_spaces = st.one_of(
    st.builds(lambda n, start: Discrete(n, start=start), st.integers(1, 2**31), st.integers(-(2**31), 2**31)),
    st.builds(lambda nvec: MultiDiscrete(nvec), st.lists(st.integers(1, 9), min_size=1, max_size=4)),
    st.builds(lambda nvec: MultiDiscrete([nvec, nvec]), st.lists(st.integers(1, 2**33), min_size=1, max_size=3)),
    st.builds(lambda n: MultiBinary(n), st.integers(1, 5)),
)
leaves = st.one_of(boxes, discrete_spaces)


def nested(inner, max_leaves=8):
    return st.recursive(
        inner,
        lambda child: st.one_of(
            st.dictionaries(st.text(max_size=3).filter(lambda key: "\0" not in key), child, min_size=1, max_size=3).map(
                Dict
            ),
            st.lists(child, min_size=1, max_size=3).map(Tuple),
        ),
        max_leaves=max_leaves,
    )


def flatten(space, sample):
    """Leaves of a sample in order, by an independent route."""
    if isinstance(space, Dict):
        return [leaf for key, child in space.spaces.items() for leaf in flatten(child, sample[key])]
    if isinstance(space, Tuple):
        return [leaf for child, value in zip(space.spaces, sample, strict=True) for leaf in flatten(child, value)]
    return [np.asarray(sample)]


def fields(dtype, row):
    """Leaves of a structured element in order."""
    if dtype.names is None:
        return [row]
    return [leaf for name in dtype.names for leaf in fields(dtype.fields[name][0], row[name])]


class Replay(gymnasium.Env):
    """Shows samples of its observation space and keeps the actions it got."""

    def __init__(self, observation_space, action_space=None, length=3):
        self.observation_space = observation_space
        self.action_space = action_space or Discrete(2)
        self.length = length
        self.shown, self.actions, self.seeds = [], [], []

    def observe(self):
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observe(), {"options": options}

    def step(self, action):
        self.actions.append(action)
        self.count += 1
        return self.observe(), 0.5 * self.count, self.count >= self.length, False, {"count": self.count}


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(nested(leaves), st.integers(0, 2**31))
def test_round_trip_of_any_nested_observation(space, seed):
    layout = observation_layout(space)
    if layout.dtype.itemsize == 0:
        return  # nothing to see
    space.seed(seed)
    samples = [space.sample() for _ in range(3)]
    batch = np.zeros((3, *layout.flat_space.shape), layout.flat_space.dtype)
    packer = Packer(layout)
    for row, sample in enumerate(samples):
        layout.check(sample)
        packer.pack(batch, row, sample)
    for row, sample in enumerate(samples):
        expected = flatten(space, sample)
        assert len(expected) == len(layout.leaves)
        if isinstance(space, Dict | Tuple):
            restored = fields(layout.dtype, batch[row].view(layout.dtype)[0])
        else:
            restored = [batch[row, ...].view(layout.dtype.base).reshape(layout.dtype.shape)]
        for leaf, value, want in zip(layout.leaves, restored, expected, strict=True):
            assert leaf.offset % leaf.dtype.alignment == 0
            np.testing.assert_array_equal(value, want)
        if layout.flat_space.dtype != np.float16:
            assert layout.flat_space.contains(batch[row, ...])


@pytest.mark.parametrize(
    ("space", "shape", "dtype"),
    [
        (Box(-1, 1, (2, 3), np.float32), (2, 3), np.float32),
        (Discrete(5, start=2), (1,), np.int32),
        (Discrete(2**40), (1,), np.int64),
        (MultiDiscrete([3, 4]), (2,), np.int32),
        (MultiBinary(4), (4,), np.int8),
        (Dict({"a": Box(0, 1, (2,)), "b": Tuple([Box(0, 1, (3, 2))])}), (8,), np.float32),
        (Dict({"a": Discrete(3), "b": MultiDiscrete([3, 4])}), (3,), np.int32),
        (Dict({"a": Box(0, 9, (3,), np.uint8), "b": Box(0, 1, (2,))}), (12,), np.uint8),
        (NESTED, None, np.uint8),
    ],
)
def test_flat_observation_space(space, shape, dtype):
    flat = observation_layout(space).flat_space
    assert isinstance(flat, Box)
    assert flat.dtype == dtype
    assert shape is None or flat.shape == shape
    assert (flat is space) == isinstance(space, Box)


def test_flat_observation_keeps_the_bounds():
    flat = observation_layout(Dict({"a": Discrete(3, start=5), "b": MultiDiscrete([3, 4])})).flat_space
    np.testing.assert_array_equal(flat.low, [5, 0, 0])
    np.testing.assert_array_equal(flat.high, [7, 2, 3])


def test_one_element_for_a_discrete_observation():
    env = GymnasiumPufferEnv(Replay(Discrete(9, start=3)))
    observation, _ = env.reset()
    assert observation.shape == (1,)
    assert observation[0] == env.env.shown[-1]


def test_structured_view_restores_the_fields():
    env = GymnasiumPufferEnv(Replay(NESTED))
    observation, _ = env.reset()
    view, shown = observation.view(env.obs_dtype)[0], env.env.shown[-1]
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


def test_leaves_without_elements_leave_something_to_view():
    env = GymnasiumPufferEnv(Replay(Dict({"a": Box(0, 1, (0,)), "b": Dict({"c": Box(0, 1, (2, 0))})})))
    assert env.observation_space == Box(0, 255, (1,), np.uint8)
    flat, _ = env.reset()
    fields = flat.view(env.obs_dtype)
    assert (fields["a"].shape, fields["b"]["c"].shape) == ((1, 0), (1, 2, 0))


def test_rows_of_a_batch_are_written_in_place():
    env = GymnasiumPufferEnv(Replay(Box(0, 1, (2,))))
    batch = np.zeros((3, 2), np.float32)
    buf = {
        "observations": batch[1:2],
        "actions": np.zeros(1, np.int32),
        "rewards": np.ones(1, np.float32),
        **{name: np.zeros(1, bool) for name in ("terminals", "truncations", "masks")},
    }
    env = GymnasiumPufferEnv(Replay(Box(0, 1, (2,)), length=1), buf=buf)
    observation, _ = env.reset()
    assert np.shares_memory(observation, batch)
    assert buf["rewards"][0] == 0
    assert buf["masks"][0]
    _, reward, terminated, truncated, info = env.step(1)
    np.testing.assert_array_equal(batch[1], env.env.shown[-1])
    assert (reward, terminated, truncated, info) == (0.5, True, False, {"count": 1})
    assert (buf["rewards"][0], buf["terminals"][0], buf["truncations"][0]) == (0.5, True, False)
    assert not batch[[0, 2]].any()


def test_new_buffers_are_noticed():
    env = GymnasiumPufferEnv(Replay(NESTED))
    env.reset()
    env.observations = np.zeros_like(env.observations)
    observation, *_ = env.step(0)
    np.testing.assert_array_equal(observation, env.observations[0])
    np.testing.assert_array_equal(observation.view(env.obs_dtype)[0]["map"], env.env.shown[-1]["map"])


class Clock(gymnasium.Env):
    """Tells the time, and ends when that is 3."""

    observation_space, action_space = Box(0, 3, (1,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.full(1, self.time, np.float32), 1.0, self.time == 3, False, {}


class TestWhatNobodyBatches:
    """Whoever gets an observation may keep it."""

    def test_each_call_returns_an_array_of_its_own(self):
        env = GymnasiumPufferEnv(Clock())
        shown = [env.reset()[0], env.step(0)[0], env.step(0)[0], env.reset()[0]]
        assert [observation.tolist() for observation in shown] == [[0], [1], [2], [0]]

    def test_no_two_play_alike_unless_they_are_seeded(self):
        def first(**seed):
            return GymnasiumPufferEnv(gymnasium.make("CartPole-v1"), **seed).reset()[0].tolist()

        assert first() != first()
        assert first(seed=0) == first(seed=0)

    def test_wrappers_that_keep_observations(self):
        stack = FrameStackObservation(GymnasiumPufferEnv(Clock()), 3)
        late = DelayObservation(GymnasiumPufferEnv(Clock()), 2)
        seen = [(stack.reset()[0].ravel().tolist(), late.reset()[0].tolist())]
        seen += [(stack.step(0)[0].ravel().tolist(), late.step(0)[0].tolist()) for _ in range(3)]
        assert seen == [([0, 0, 0], [0]), ([0, 0, 1], [0]), ([0, 1, 2], [0]), ([1, 2, 3], [1])]

    def test_gymnasiums_vector_keeps_the_last_observation(self):
        make = functools.partial(GymnasiumPufferEnv, env_creator=Clock)
        envs = gymnasium.vector.SyncVectorEnv([make, make], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
        envs.reset()
        for _ in range(3):
            observations, _, _, _, infos = envs.step(np.zeros(2, int))
        assert observations.tolist() == [[0], [0]]
        assert [last.tolist() for last in infos["final_obs"]] == [[3], [3]]

    @pytest.mark.parametrize("reward", [2, 0.5, np.float64(0.1), np.float32(0.1), np.array([0.3]), np.int64(2)])
    def test_the_reward_is_the_environments_own_number(self, reward):
        class Paid(Clock):
            def step(self, action):
                return np.zeros(1, np.float32), reward, np.bool_(False), np.array(True), {}

        env = GymnasiumPufferEnv(Paid())
        env.reset()
        _, got, terminated, truncated, _ = env.step(0)
        assert isinstance(got, int | float)
        assert (got, terminated, truncated) == (reward, False, True)
        assert (type(terminated), type(truncated)) == (bool, bool)


def test_its_spec_makes_it_again():
    inner = ResizeObservation(EpisodeStats(ClipAction(gymnasium.make(EnvSpec("Dim-v0", Dim)))), downscale=2)
    env = gymnasium.make(GymnasiumPufferEnv(inner, seed=3, max_length=5).spec)
    assert str(env).startswith("<GymnasiumPufferEnv<ResizeObservation<EpisodeStats<ClipAction<")
    assert env.observation_space == Box(0, 1, (2, 1))
    env.reset()
    assert env.unwrapped.np_random_seed == 3


class Dim(gymnasium.Env):
    """A picture."""

    observation_space, action_space = Box(0, 1, (4, 2)), Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((4, 2), np.float32), {}


class TestActions:
    def sent(self, space, action):
        env = GymnasiumPufferEnv(Replay(Discrete(2), space))
        env.reset()
        env.step(action)
        return env.env.actions[-1]

    @pytest.mark.parametrize("action", [3, np.int32(3), np.int64(3), np.uint8(3), np.array(3), np.array([3]), [3]])
    def test_discrete_gets_a_python_int(self, action):
        assert self.sent(Discrete(4), action) == 3
        assert type(self.sent(Discrete(4), action)) is int

    @pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, list, tuple])
    def test_structures(self, dtype):
        space = Dict({"a": Discrete(2), "b": Tuple([Discrete(3), MultiDiscrete([4, 5])]), "c": MultiBinary(2)})
        flat = [1, 2, 3, 4, 0, 1]
        action = self.sent(space, dtype(flat) if dtype in (list, tuple) else np.array(flat, dtype))
        assert action["a"] == 1
        assert action["b"][0] == 2
        assert type(action["a"]) is int
        np.testing.assert_array_equal(action["b"][1], [3, 4])
        np.testing.assert_array_equal(action["c"], [0, 1])
        assert space.contains(action)

    def test_nested_boxes_are_one_box(self):
        space = Dict({"a": Box(-1, 1, (2, 2)), "b": Tuple([Box(0, 5, (), np.float64), Box(-2, 2, (1,), np.float16)])})
        flat = action_layout(space).flat_space
        assert flat == Box(np.array([-1, -1, -1, -1, 0, -2.0]), np.array([1, 1, 1, 1, 5, 2.0]), dtype=np.float64)
        action = self.sent(space, [0.5, -0.5, 1, -1, 4.5, 0.25])
        assert space.contains(action)
        assert action["a"].tolist() == [[0.5, -0.5], [1, -1]]
        assert [part.tolist() for part in action["b"]] == [4.5, [0.25]]
        shared = np.zeros(6)
        assert not np.shares_memory(self.sent(space, shared)["a"], shared)

    def test_one_of_several(self):
        space = OneOf([Discrete(2), Tuple([Discrete(3), Box(-1, 1, (2,), np.int8)])])
        assert action_layout(space).flat_space == MultiDiscrete([2, 2, 3, 3, 3], start=[0, 0, 0, -1, -1])
        assert self.sent(space, [0, 1, 2, 0, 0]) == (0, 1)
        action = self.sent(space, [1, 1, 2, 0, -1])
        assert action[1][1].tolist() == [0, -1]
        assert space.contains(action)

    def test_a_text_is_its_length_and_its_characters(self):
        space = Text(3, charset="zab")
        assert action_layout(space).flat_space == MultiDiscrete([3, 3, 3, 3], start=[1, 0, 0, 0])
        assert self.sent(space, [2, 2, 0, 1]) == "za"
        for action, place in (
            ([0, 0, 0, 0], "length must be in 1 to 3"),
            ([1, 3, 0, 0], "characters must be in 0 to 2"),
        ):
            with pytest.raises(APIUsageError, match=rf"action\.{place}"):
                self.sent(space, action)

    @pytest.mark.parametrize(
        ("space", "message"),
        [
            (Dict({"a": Sequence(Discrete(2))}), r"action\['a'\] is Sequence.*any number of parts; use Discrete"),
            (Graph(Discrete(2), None), r"action is Graph"),
            (Dict({"a": Box(0, 1, (2,)), "b": Discrete(2)}), r"action\['a'\] is Box.*beside discrete.*one kind"),
            (Tuple([Box(-np.inf, np.inf, (1,), np.int64)]), r"action\[0\] must be within int32.*smaller bounds"),
            (Discrete(2**40), r"action must be within int32, got Discrete"),
            (Tuple([]), r"action space Tuple.* is empty"),
        ],
    )
    def test_spaces_that_cannot_be_acted_in(self, space, message):
        with pytest.raises(APIUsageError, match=message):
            action_layout(space)

    def test_start_is_part_of_the_action(self):
        layout = action_layout(Dict({"a": Discrete(2, start=5), "b": Discrete(3)}))
        assert layout.flat_space == MultiDiscrete([2, 3], start=[5, 0])

    def test_a_bound_that_float32_cannot_write_exactly(self):
        assert self.sent(Box(-0.7, 0.7, (2,)), [-0.7, 0.7]).tolist() == np.float32([-0.7, 0.7]).tolist()

    def test_reals_out_of_range_are_refused_on_every_call(self):
        space = Dict({"a": Box(-1, 1, (2,)), "b": Box(-1, 1, (1,), np.float64)})
        for kind, size in ((space, 3), (Box(-1, 1, (2,)), 2)):
            env = GymnasiumPufferEnv(Replay(Discrete(2), kind))
            for bad in (1.5, np.inf, np.nan):
                env.reset()
                env.step(np.full(size, 0.5))
                with pytest.raises(APIUsageError, match=rf"the action must be in .*, got {bad} to {bad}; wrap"):
                    env.step(np.full(size, bad))

    @pytest.mark.parametrize(
        "space",
        [
            Discrete(5, start=-2),
            Box(-1, 1, (2, 3)),
            Box(-1, 1, (2,), np.float64),
            Box(0, 255, (4,), np.uint8),
            MultiDiscrete([3, 4], start=[-1, 5]),
            MultiBinary((2, 2)),
            Dict({"a": Box(-1, 1, (2,)), "b": Tuple([Box(-1, 1, (), np.float64), Box(-1, 1, (1,), np.float16)])}),
            Dict({"a": Discrete(3), "b": Box(-300, 300, (2, 2), np.int16), "c": Box(0, 200, (3,), np.uint8)}),
            Tuple([MultiDiscrete([5, 6]), OneOf([Discrete(3), MultiBinary(2), Dict({"x": Discrete(7)})])]),
        ],
        ids=str,
    )
    def test_a_row_of_a_batch_gives_what_step_gives(self, space):
        creator = functools.partial(GymnasiumPufferEnv, env_creator=lambda: Replay(Discrete(2), space, length=99))
        vecenv = vector.make(lambda buf: creator(buf=buf), num_envs=2, backend="Serial")
        alone = [creator(), creator()]
        flat = vecenv.single_action_space
        flat.seed(0)
        vecenv.reset()
        for env in alone:
            env.reset()
        for _ in range(20):
            actions = [flat.sample() for _ in alone]
            vecenv.step(np.array(actions))
            for env, action in zip(alone, actions, strict=True):
                env.step(action)
        for env, other in zip(vecenv.envs, alone, strict=True):
            for got, want in zip(env.env.actions, other.env.actions, strict=True):
                assert space.contains(got)
                assert repr(got) == repr(want)
        kept = [repr(action) for action in vecenv.envs[0].env.actions]
        vecenv.actions[...] = flat.sample()  # whoever keeps an action keeps its numbers
        assert [repr(action) for action in vecenv.envs[0].env.actions] == kept

    def test_box_is_copied_and_converted(self):
        action = np.array([0.5, -0.5])
        got = self.sent(Box(-1, 1, (2,)), action)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, action)
        shared = np.zeros(2, np.float32)
        assert not np.shares_memory(self.sent(Box(-1, 1, (2,)), shared), shared)

    @pytest.mark.parametrize(
        ("space", "action", "message"),
        [
            (Discrete(4), 4, r"action must be in 0 to 3, got 4"),
            (Discrete(4), -1, r"in 0 to 3"),
            (Discrete(4), 1.5, r"must be integers of shape \(\), got float64"),
            (Discrete(4), np.array([1, 2]), r"got int64 of shape \(2,\)"),
            (Discrete(4), True, r"got bool"),
            (Discrete(4), None, r"got object"),
            (MultiDiscrete([2, 3]), [1, 3], r"action must be in 0 to 2, got 3"),
            (MultiDiscrete([2, 3]), [1, 1, 1], r"of shape \(2,\), got int64 of shape \(3,\)"),
            (Dict({"a": Discrete(2), "b": Discrete(3)}), [1, 3], r"action\['b'\] must be in 0 to 2, got 3"),
            (Dict({"a": Discrete(2)}), {"a": 1}, r"must be integers of shape \(1,\), got object"),
            (Box(-1, 1, (2,)), [0.0, 2.0], r"must be in Box.*got 0.0 to 2.0.*ClipAction"),
            (Box(-1, 1, (2,)), [0.0, np.nan], r"must be in Box"),
            (Box(-1, 1, (2,)), [0.0], r"must be numbers of shape \(2,\), got float64 of shape \(1,\)"),
            (Box(-1, 1, (1, 2)), [[0.0], [0.0, 0.0]], r"a list of rows of one length, got \[\[0.0\], \[0.0, 0.0\]\]"),
            (Box(0, 3, (1,), np.int32), [0.5], r"must be int32 of shape"),
            (Dict({"a": Box(-1, 1, (2,)), "b": Box(0, 5, ())}), [0, 0, 6], r"must be in Box.*got 0.0 to 6.0"),
            (Dict({"a": Box(-1, 1, (2,))}), {"a": [0, 0]}, r"must be numbers of shape \(2,\), got object"),
            (Tuple([Box(1, 3, (1,), np.uint8)]), [4], r"action\[0\] must be in 1 to 3, got 4"),
            (OneOf([Discrete(2), Discrete(9)]), [1, 2, 8], r"action.f0 must be in 0 to 1, got 2"),
        ],
    )
    def test_refused(self, space, action, message):
        with pytest.raises(APIUsageError, match=message):
            self.sent(space, action)


GOOD = {"a": np.zeros(2, np.float32), "b": 1}


class TestObservations:
    def show(self, space, *observations):
        class Show(Replay):
            def observe(self):
                return next(self.queue)

        wrapped = Show(space)
        wrapped.queue = iter(observations)
        env = GymnasiumPufferEnv(wrapped)
        env.reset()
        for _ in observations[1:]:
            env.step(0)
        return env.observations[0]

    space = Dict({"a": Box(-1, 1, (2,)), "b": Discrete(2)})

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"a": np.zeros(3, np.float32), "b": 1}, r"observation\['a'\] must have shape \(2,\), got shape \(3,\)"),
            ({"a": np.array(["x", "y"]), "b": 1}, r"observation\['a'\] must have dtype float32, got dtype <U1"),
            ({"a": [[0], [0, 0]], "b": 1}, r"observation\['a'\] must have an array of shape \(2,\)"),
            ({"a": np.zeros(2, np.float32), "b": 1.0}, r"observation\['b'\] must have dtype int32, got dtype float64"),
            ({"a": np.zeros(2, np.float32), "b": 2**40}, r"observation\['b'\] must have values that int32 can hold"),
            ({"a": np.zeros(2, np.float32)}, r"'b'"),
            (3, r"observation"),
        ],
    )
    def test_what_does_not_fit_is_refused_at_any_step(self, bad, message):
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
    def test_what_can_be_converted_is(self, sloppy):
        view = self.show(self.space, sloppy).view(observation_layout(self.space).dtype)[0]
        np.testing.assert_array_equal(view["a"], [0.5, 1])
        assert view["b"] == 1

    def test_fractions_and_overflows_are_not_cut_off(self):
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

    def test_nan_in_a_large_leaf_is_refused_when_an_episode_begins(self):
        good, bad = np.zeros(2000, np.float32), np.full(2000, np.nan, np.float32)
        wrapped = Replay(Box(-1, 1, (2000,)))
        queue = iter([good, good, bad])
        wrapped.observe = lambda: next(queue)
        env = GymnasiumPufferEnv(wrapped)
        for _ in range(2):
            env.reset()
        with pytest.raises(APIUsageError, match=r"observation must have numbers, got nan"):
            env.reset()

    def test_double_precision_is_narrowed(self):
        space = Box(-np.inf, np.inf, (2,))
        np.testing.assert_array_equal(self.show(space, np.array([0.1, -np.inf])), np.float32([0.1, -np.inf]))

    def test_a_dtype_that_was_pickled_is_the_same(self):
        space = pickle.loads(pickle.dumps(Dict({"a": Box(-1, 1, (2,)), "b": Discrete(2)})))
        value = np.zeros(2, pickle.loads(pickle.dumps(np.dtype(np.float32)))) + np.float32(0.5)
        assert self.show(space, {"a": value, "b": 1}).view(observation_layout(space).dtype)[0]["a"].tolist() == [
            0.5,
            0.5,
        ]


class Returns(Replay):
    """Its steps return what they are told."""

    def __init__(self, *outcome):
        super().__init__(Box(0, 1, (1,)))
        self.outcome = outcome

    def step(self, action):
        return self.outcome


class TestOutcome:
    def step(self, *outcome):
        env = GymnasiumPufferEnv(Returns(np.zeros(1, np.float32), *outcome))
        env.reset()
        env.step(0)
        return float(env.rewards[0]), bool(env.terminals[0]), bool(env.truncations[0]), env.done

    @pytest.mark.parametrize(
        "reward", [2, 2.0, np.float32(2), np.float64(2), np.int8(2), np.array(2), np.array(2.0), np.array([2.0])]
    )
    def test_any_kind_of_number_is_a_reward(self, reward):
        assert self.step(reward, False, False, {}) == (2.0, False, False, False)

    @pytest.mark.parametrize("true", [True, np.bool_(True), np.array(True), np.array([True]), 1, 1.0])
    @pytest.mark.parametrize("false", [False, np.bool_(False), np.array(False), np.array([False]), 0, 0.0])
    def test_any_kind_of_truth_is_an_end(self, true, false):
        assert self.step(0.0, true, false, {}) == (0.0, True, False, True)
        assert self.step(0.0, false, true, {}) == (0.0, False, True, True)
        assert self.step(0.0, false, false, {}) == (0.0, False, False, False)

    @pytest.mark.parametrize("flag", ["False", None, [False], 2, float("nan"), np.zeros(2, bool)])
    def test_what_is_no_truth_ends_nothing(self, flag):
        with pytest.raises(APIUsageError, match=r"terminated must be True or False, got .* from <Returns"):
            self.step(0.0, flag, False, {})
        with pytest.raises(APIUsageError, match=r"truncated must be True or False, got .* from <Returns"):
            self.step(0.0, False, flag, {})

    @pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.array(np.nan)])
    def test_a_reward_that_is_nan_is_refused(self, nan):
        with pytest.raises(
            APIUsageError, match=r"the reward must be a finite number that float32 can hold, got .*nan.* from <Returns"
        ):
            self.step(nan, False, False, {})

    @pytest.mark.parametrize(
        "reward", [None, "1", [1.0, 2.0], np.zeros(2), np.zeros(0), -1e39, float("inf"), np.float32("-inf")]
    )
    def test_what_is_no_number_of_float32_is_no_reward(self, reward):
        with pytest.raises(
            APIUsageError, match=r"the reward must be a finite number that float32 can hold, got .* from <Returns"
        ):
            self.step(reward, False, False, {})

    @pytest.mark.parametrize("outcome", [(0.0, False, {}), (0.0, False, False, {}, 1)])
    def test_five_values_are_expected(self, outcome):
        with pytest.raises(APIUsageError, match=rf"step must return .*, got {1 + len(outcome)} values from <Returns"):
            self.step(*outcome)

    @pytest.mark.parametrize("returned", [None, 7, np.zeros(5)])
    def test_something_else_than_values_is_shown(self, returned):
        env = GymnasiumPufferEnv(Returns())
        env.reset()
        env.env.step = lambda action: returned
        with pytest.raises(APIUsageError, match=rf"step must return .*, got {re.escape(repr(returned))} from <Returns"):
            env.step(0)

    @pytest.mark.parametrize(
        ("returned", "got"), [(None, "NoneType"), (np.zeros(2, np.float32), "ndarray"), (([0.0, 0.0],), "1 values")]
    )
    def test_reset_returns_an_observation_and_an_info(self, returned, got):
        env = Returns()
        env.reset = lambda seed=None, options=None: returned
        with pytest.raises(APIUsageError, match=rf"reset must return a tuple of observation and info, got {got} from"):
            GymnasiumPufferEnv(env).reset()


class TestReplacedParts:
    def test_another_wrapped_environment_is_stepped(self):
        env = GymnasiumPufferEnv(Replay(Box(0, 1, (1,))))
        env.reset()
        env.env = Returns(np.ones(1, np.float32), 3.0, False, False, {})
        assert env.step(0)[:2] == (np.ones(1, np.float32), 3.0)

    def test_a_subclass_may_have_its_own_step(self):
        class Doubled(GymnasiumPufferEnv):
            def step(self, action):
                observation, reward, *rest = super().step(action)
                return observation, 2 * reward, *rest

        env = Doubled(Returns(np.zeros(1, np.float32), 3.0, False, False, {}))
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
        env = GymnasiumPufferEnv(Replay(Box(0, 1, (1,))))
        with pytest.raises(APIUsageError, match=rf"GymnasiumPufferEnv: {name} must have 1 rows"):
            setattr(env, name, array)
        env.reset()
        env.step(0)

    def test_arrays_are_held_as_long_as_they_are_written_into(self):
        env = GymnasiumPufferEnv(Replay(Box(0, 1, (1,)), length=100))
        env.reset()
        rewards = env.rewards
        del env.rewards
        env.step(0)
        assert rewards[0] == 0.5


def test_unsupported_spaces_are_named():
    with pytest.raises(APIUsageError, match=r"observation\['b'\]\[0\] space <.*> is not supported; use Box"):
        observation_layout(Dict({"a": Discrete(2), "b": Tuple([gymnasium.Space()])}))
    with pytest.raises(APIUsageError, match=r"is empty"):
        observation_layout(Dict({}))
    with pytest.raises(APIUsageError, match=r"unusable keys.*rename"):
        observation_layout(Dict({1: Discrete(2), "1": Discrete(2)}))


class TestConstruction:
    def test_exactly_one_source(self):
        with pytest.raises(APIUsageError, match="got none"):
            GymnasiumPufferEnv()
        with pytest.raises(APIUsageError, match="got both"):
            GymnasiumPufferEnv(Replay(Discrete(2)), env_creator=Replay)
        with pytest.raises(APIUsageError, match="env_creator must be callable"):
            GymnasiumPufferEnv(env_creator=Replay(Discrete(2)))
        with pytest.raises(APIUsageError, match=r"env must be a gymnasium\.Env, got <class"):
            GymnasiumPufferEnv(Replay)

    def test_creator_gets_its_arguments_and_no_seed(self):
        env = GymnasiumPufferEnv(env_creator=Replay, env_args=[Discrete(2)], env_kwargs={"length": 7}, seed=3)
        assert env.env.length == 7
        env.reset()
        env.reset()
        env.reset(seed=0)
        assert env.env.seeds == [3, None, 0]

    def test_is_a_gymnasium_env(self):
        inner = Replay(NESTED)
        env = GymnasiumPufferEnv(inner)
        assert isinstance(env, gymnasium.Env)
        assert env.unwrapped is inner
        assert env.observation_space is env.single_observation_space
        assert (env.is_obs_emulated, env.is_atn_emulated, env.num_agents) == (True, False, 1)


def test_order_of_calls():
    env = GymnasiumPufferEnv(Replay(Discrete(2), length=1))
    assert env.done
    with pytest.raises(APIUsageError, match="step: no episode is running; call reset first"):
        env.step(0)
    _, info = env.reset(options={"x": 1})
    assert info == {"options": {"x": 1}}
    assert not env.done
    env.step(0)
    assert env.done
    with pytest.raises(APIUsageError, match="no episode is running"):
        env.step(0)
    env.reset()
    assert not env.done


def test_packer_keeps_to_its_batch():
    layout = observation_layout(Box(0, 1, (2,)))
    packer = Packer(layout)
    with pytest.raises(IndexError):
        packer.pack(np.zeros((2, 2), np.float32), 2, np.zeros(2, np.float32))
    with pytest.raises((BufferError, ValueError)):
        packer.pack(np.zeros((4, 2), np.float32)[::2], 0, np.zeros(2, np.float32))
    for wrong in (np.zeros((2, 1), np.float32), np.zeros((2, 2), np.float64), np.zeros((), np.float32)):
        with pytest.raises(APIUsageError, match="the rows of a batch must have 8 bytes, got an array of shape"):
            packer.pack(wrong, 0, np.zeros(2, np.float32))
    batch = np.zeros((2, 2), np.float32)
    packer.pack(batch, 1, np.ones(2, np.float32))
    assert batch.tolist() == [[0, 0], [1, 1]]
