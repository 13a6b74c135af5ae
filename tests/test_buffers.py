"""The arrays of a batch: adopted as they are, or refused."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from pufferlib import APIUsageError, set_buffers
from pufferlib.buffers import allocate, layout, slice_rows


class Agents:
    single_observation_space = Box(0, 255, (2, 3), np.uint8)
    single_action_space = Discrete(3)
    num_agents = 4


def arrays(rows=4):
    return allocate(Agents.single_observation_space, Agents.single_action_space, rows)


def test_arrays_are_adopted():
    env, buf = Agents(), arrays()
    set_buffers(env, buf)
    for name, array in buf.items():
        assert getattr(env, name) is array


def test_rows_of_a_larger_batch_are_adopted():
    env, batch = Agents(), arrays(12)
    set_buffers(env, slice_rows(batch, 4, 8))
    env.observations[:] = 7
    assert batch["observations"].reshape(12, -1).any(1).tolist() == [False] * 4 + [True] * 4 + [False] * 4


def test_new_arrays():
    env = Agents()
    set_buffers(env)
    for name, (shape, dtype) in layout(env.single_observation_space, env.single_action_space, 4).items():
        array = getattr(env, name)
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.all() if name == "masks" else not array.any()


def test_final_observations_may_be_left_out():
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
def test_arrays_that_do_not_fit(name, array, message):
    buf = arrays()
    buf[name] = array
    if array is None:
        del buf[name]
    with pytest.raises(APIUsageError, match=message):
        set_buffers(Agents(), buf)
