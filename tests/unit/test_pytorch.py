"""Flat observations become tensors again, without copies and without graph breaks."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

from pufferlib import APIUsageError
from pufferlib._native import Packer
from pufferlib.emulation import Limits, observation_layout

torch = pytest.importorskip("torch")
from pufferlib.pytorch import flattened_tensor_size, nativize_dtype, nativize_tensor  # noqa: E402

MIXED = Dict(
    {
        "map": Box(0, 255, (3, 5), np.uint8),
        "hero": Tuple([Discrete(4, start=7), Box(-1, 1, (2,), np.float64)]),
        "flags": MultiBinary(3),
        "alive": Box(0, 1, (), np.bool_),
        "none": Box(0, 1, (0, 2), np.int16),
    }
)
SAME = Dict({"a": Box(-1, 1, (2, 2)), "b": Dict({"c": Box(-1, 1, ()), "d": Box(-1, 1, (3,))})})


def batch_of(space, rows=4):
    layout = observation_layout(space)
    batch = np.zeros((rows, *layout.flat_space.shape), layout.flat_space.dtype)
    packer, samples = Packer(layout), [space.sample() for _ in range(rows)]
    for row, sample in enumerate(samples):
        packer.pack(batch, row, sample)
    return batch, samples, nativize_dtype({"emulated_observation_dtype": layout.dtype})


def equal(native, samples, space):
    if isinstance(space, Dict | Tuple):
        items = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        for key, child in items:
            field = key if isinstance(space, Dict) else f"f{key}"
            equal(native[field], [sample[key] for sample in samples], child)
        return
    expected = np.stack([np.asarray(sample) for sample in samples])
    assert native.shape == expected.shape
    np.testing.assert_array_equal(native.numpy(), expected)


SPACES = [
    MIXED,
    SAME,
    Discrete(5, start=2),
    MultiDiscrete([[2, 3], [4, 5]]),
    MultiBinary(3),
    Box(0, 255, (4, 4), np.uint8),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_tensors_are_views_of_the_leaves(space):
    batch, samples, dtype = batch_of(space)
    observations = torch.from_numpy(batch)
    native = nativize_tensor(observations, dtype)
    equal(native, samples, space)
    assert flattened_tensor_size(dtype) == sum(leaf.count for leaf in observation_layout(space).leaves)
    batch[:] = 0
    leaf = native["map"] if space is MIXED else native["a"] if space is SAME else native
    assert not leaf.any()


def test_spaces_that_vary_in_size_become_padded_tensors():
    space = Dict({"crew": Sequence(Dict({"name": Text(4), "hp": Box(0, 9, (2,), np.float64)})), "hero": Discrete(3)})
    layout = observation_layout(space, Limits(max_length=3))
    batch = np.zeros((2, *layout.flat_space.shape), layout.flat_space.dtype)
    Packer(layout).pack(batch, 1, {"crew": ({"name": "ab", "hp": [3.5, 4]},), "hero": 2})
    native = nativize_tensor(torch.from_numpy(batch), nativize_dtype({"emulated_observation_dtype": layout.dtype}))
    items = native["crew"]["items"]
    assert native["crew"]["length"].tolist() == [0, 1]
    assert items["hp"].tolist() == [[[0, 0]] * 3, [[3.5, 4], [0, 0], [0, 0]]]
    assert items["name"]["length"].tolist() == [[0, 0, 0], [2, 0, 0]]
    assert items["name"]["codes"][1, 0].tolist() == [97, 98, 0, 0]
    assert native["hero"].tolist() == [0, 2]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_compiles_into_one_graph(space):
    batch, samples, dtype = batch_of(space)
    compiled = torch.compile(lambda x: nativize_tensor(x, dtype), fullgraph=True, backend="eager")
    native = compiled(torch.from_numpy(batch))
    assert type(native) is type(nativize_tensor(torch.from_numpy(batch), dtype))
    equal(native, samples, space)


def test_converted_observations_are_refused():
    batch, _, dtype = batch_of(MIXED)
    with pytest.raises(APIUsageError, match=r"must be torch.uint8 or torch.uint8|got torch.float32; nativize them"):
        nativize_tensor(torch.from_numpy(batch).float(), dtype)


def test_dtypes_that_torch_lacks_are_named():
    layout = observation_layout(Dict({"a": Box(0, 1, (2,), np.longdouble), "b": Discrete(2)}))
    with pytest.raises(APIUsageError, match=r"observation\['a'\] has dtype float128, which torch does not have"):
        nativize_dtype({"emulated_observation_dtype": layout.dtype})
