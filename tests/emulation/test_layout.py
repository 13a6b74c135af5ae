"""Layouts, which give each leaf of a space its place in a row, and the packer that writes them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from hypothesis import HealthCheck, given, settings, strategies as st

from pufferlib import APIUsageError
from pufferlib.emulation import observation_layout
from pufferlib.emulation._pack import Packer
from tests.envs import NESTED

FLOATS = [np.float16, np.float32, np.float64]


INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]


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
    """Return the leaves of a sample in order, without using layouts."""
    if isinstance(space, Dict):
        return [leaf for key, child in space.spaces.items() for leaf in flatten(child, sample[key])]
    if isinstance(space, Tuple):
        return [leaf for child, value in zip(space.spaces, sample, strict=True) for leaf in flatten(child, value)]
    return [np.asarray(sample)]


def fields(dtype, row):
    """Return the leaves of a structured element in order."""
    if dtype.names is None:
        return [row]
    return [leaf for name in dtype.names for leaf in fields(dtype.fields[name][0], row[name])]


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(nested(leaves), st.integers(0, 2**31))
def test_round_trip_of_any_nested_observation(space, seed):
    layout = observation_layout(space)
    if layout.dtype.itemsize == 0:
        return  # no leaf has elements
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


def test_mission_of_minigrid_gets_advice():
    class MissionSpace(gymnasium.Space):
        """Space of texts, as minigrid has it."""

    with pytest.raises(APIUsageError, match=r"observation\['mission'\] .*leave the mission out with minigrid's ImgObs"):
        observation_layout(Dict({"image": Box(0, 1), "mission": MissionSpace()}))


def test_unsupported_spaces_are_named():
    with pytest.raises(APIUsageError, match=r"observation\['b'\]\[0\] space <.*> is not supported; use Box"):
        observation_layout(Dict({"a": Discrete(2), "b": Tuple([gymnasium.Space()])}))
    with pytest.raises(APIUsageError, match=r"is empty"):
        observation_layout(Dict({}))
    with pytest.raises(APIUsageError, match=r"unusable keys.*rename"):
        observation_layout(Dict({1: Discrete(2), "1": Discrete(2)}))


def test_packer_refuses_rows_and_arrays_that_do_not_fit():
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
