"""Arrays of a batch, which ``set_buffers`` uses without copying."""

import mmap

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from pufferlib import APIUsageError, set_buffers
from pufferlib.buffers import BufferLayout, allocate, array_specs, clear_rows, slice_rows


class Agents:
    single_observation_space = Box(0, 255, (2, 3), np.uint8)
    single_action_space = Discrete(3)
    num_agents = 4


def arrays(rows=4):
    return allocate(Agents.single_observation_space, Agents.single_action_space, rows)


def test_set_buffers_uses_given_arrays():
    env, buf = Agents(), arrays()
    set_buffers(env, buf)
    for name, array in buf.items():
        assert getattr(env, name) is array


def test_set_buffers_uses_rows_of_a_larger_batch():
    env, batch = Agents(), arrays(12)
    set_buffers(env, slice_rows(batch, 4, 8))
    env.observations[:] = 7
    assert batch["observations"].reshape(12, -1).any(1).tolist() == [False] * 4 + [True] * 4 + [False] * 4


def test_set_buffers_makes_new_arrays_without_buf():
    env = Agents()
    set_buffers(env)
    for name, (shape, dtype) in array_specs(env.single_observation_space, env.single_action_space, 4).items():
        array = getattr(env, name)
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.all() if name == "masks" else not array.any()


def test_large_arrays_have_pages_of_their_own():
    large = [array for array in arrays(4096).values() if array.nbytes >= mmap.PAGESIZE]
    assert len(large) == len(arrays())
    starts = [array.ctypes.data for array in large]
    assert not any(start % mmap.PAGESIZE for start in starts)
    pages = [
        range(start // mmap.PAGESIZE, -(-(start + array.nbytes) // mmap.PAGESIZE))
        for start, array in zip(starts, large, strict=True)
    ]
    assert len(set().union(*pages)) == sum(map(len, pages))


def test_final_observations_are_optional():
    env, buf = Agents(), arrays()
    del buf["final_observations"]
    set_buffers(env, buf)
    assert env.final_observations.shape == (4, 2, 3)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("rewards", None, r"buf lacks rewards; it has observations"),
        (
            "rewards",
            np.zeros(4),
            r"rewards must have shape \(4,\) and dtype float32, got shape \(4,\) and dtype float64",
        ),
        ("observations", np.zeros((4, 6), np.uint8), r"observations must have shape \(4, 2, 3\)"),
        ("masks", np.ones(5, bool), r"masks must have shape \(4,\)"),
        ("terminals", np.zeros(8, bool)[::2], r"terminals must be C-contiguous and writable"),
        ("actions", np.broadcast_to(np.int32(0), 4), r"actions must be C-contiguous and writable"),
    ],
)
def test_arrays_of_wrong_shape_or_dtype_are_refused(name, array, message):
    buf = arrays()
    buf[name] = array
    if array is None:
        del buf[name]
    with pytest.raises(APIUsageError, match=message):
        set_buffers(Agents(), buf)


def test_layout_aligns_arrays_to_cache_lines():
    specs = array_specs(Agents.single_observation_space, Agents.single_action_space, 4)
    layout = BufferLayout(specs)
    memory = np.zeros(layout.nbytes, np.uint8)
    views = layout.arrays(memory.data)
    assert {name: (array.shape, array.dtype) for name, array in views.items()} == specs
    starts = [array.ctypes.data - memory.ctypes.data for array in views.values()]
    assert starts == [layout.start(name) for name in specs] == [64 * place for place in range(len(specs))]
    assert list(layout.arrays(memory.data[: layout.start("rewards")])) == list(specs)[:3]


def test_clear_rows_keeps_observations_and_actions():
    buf = arrays()
    for array in buf.values():
        array[:] = 1
    clear_rows(buf, slice(1, 3))
    for name in ("rewards", "terminals", "truncations", "masks"):
        assert buf[name].tolist() == [1, 0, 0, 1]
    assert buf["observations"].all()
    assert buf["actions"].all()
