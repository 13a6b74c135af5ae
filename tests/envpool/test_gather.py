"""Gathering rows of some environments from shared arrays, and scattering rows back."""

import numpy as np
import pytest

from pufferlib.envpool.workers._gather import BatchGather, scatter

SOURCES = (np.arange(24, dtype=np.float32).reshape(6, 4), np.arange(3, dtype=np.int32), np.zeros((3, 0), bool))
ORDERS = ([0, 1, 2], [2, 1, 0], [1, 2], [2, 0], [0], [0, 2, 1])


def ids(envs):
    return np.array(envs, np.int32)


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("envs", ORDERS, ids=str)
def test_gather_returns_rows_in_the_order_of_ids(copies, envs):
    numbers, ones, empty = BatchGather(SOURCES, 3, copies).gather(ids(envs))
    np.testing.assert_array_equal(numbers, np.concatenate([SOURCES[0][2 * env : 2 * env + 2] for env in envs]))
    np.testing.assert_array_equal(ones, envs)
    assert empty.shape == (len(envs), 0)
    assert [array.dtype for array in (numbers, ones, empty)] == [source.dtype for source in SOURCES]


def test_referenced_batches_are_not_overwritten():
    source = np.zeros((3, 2), np.float32)
    batches = BatchGather([source], 3, copies=True)
    held = []
    for number in range(10):
        source[:] = number
        held.append(batches.gather(ids([0, 1, 2]))[0][1:])  # a view holds it too
    assert [batch.tolist() for batch in held] == [[[number] * 2] * 2 for number in range(10)]


def test_without_copies_the_next_batch_overwrites_the_last():
    source = np.zeros((3, 2), np.float32)
    batches = BatchGather([source], 3, copies=False)
    first = batches.gather(ids([2, 0]))[0]
    source[:] = 7
    assert not first.any()
    batches.gather(ids([2, 0]))
    assert (first == 7).all()
    assert batches.gather(ids([0, 1, 2]))[0] is source


@pytest.mark.parametrize("envs", ORDERS, ids=str)
def test_scatter_writes_rows_of_the_ids(envs):
    target = np.full((6, 2), -1, np.int32)
    rows = np.arange(4 * len(envs), dtype=np.int32).reshape(-1, 2)
    scatter(rows, target, 3, ids(envs))
    wanted = np.full((3, 4), -1)
    wanted[envs] = rows.reshape(-1, 4)
    np.testing.assert_array_equal(target.reshape(3, 4), wanted)


def test_wrong_shapes_raise():
    with pytest.raises(ValueError, match=r"expected contiguous rows of 3 environments, got shape \(4, 2\)"):
        BatchGather([np.zeros((4, 2))], 3, copies=True)
    for rows in (np.zeros((2, 2)), np.zeros((1, 2), np.int32), np.zeros((2, 4), np.int32)[:, ::2]):
        with pytest.raises(ValueError, match="expected contiguous rows of 1 environments, got shape"):
            scatter(rows, np.zeros((6, 2), np.int32), 3, ids([0]))
