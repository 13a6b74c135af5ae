"""Valid and invalid arguments of NativePool. After an error the pool works as before."""

import numpy as np
import pytest

from pufferlib.envpool.native import NativeBackend
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.envpool.native_pools import make_pool

PUSHES = [0, 1, 1]


@pytest.mark.parametrize(
    "actions",
    [
        PUSHES,
        tuple(PUSHES),
        *(np.array(PUSHES, dtype) for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?")),
        np.array(PUSHES, ">i4"),
        np.array([0, 9, 1, 9, 1, 9])[::2],
        {"action": np.array(PUSHES, np.int32)},
        {"action": PUSHES, "env_id": np.arange(3)},
        {"action": PUSHES, "env_id": [0, 1, 2], "players.env_id": [0, 1, 2]},
        {"action": PUSHES, "players": {"env_id": np.arange(3)}},
    ],
    ids=lambda actions: f"{type(actions).__name__} {getattr(actions, 'dtype', '')}",
)
def test_integer_actions_of_any_dtype_are_accepted(actions):
    pool, other = make_pool("cartpole", 3), make_pool("cartpole", 3)
    for _ in range(3):
        assert np.array_equal(pool.step(actions)[0], other.step(np.array(PUSHES, np.int32))[0])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8"])
def test_box_actions_of_any_float_dtype_are_accepted(dtype):
    pool, other = (make_pool("cartpole", 2, params={"continuous": True}) for _ in range(2))
    pool.step(np.zeros((2, 1)))
    other.step(np.zeros((2, 1)))
    actions = np.array([[1], [-1]], dtype)
    assert np.array_equal(pool.step(actions)[0], other.step(actions.astype(np.float32))[0])
    assert np.array_equal(pool.step(actions * 3)[0], other.step(actions.astype(np.float32))[0])  # clipped


def test_every_part_of_a_multidiscrete_action_is_checked():
    pool = make_pool("moba", 1)
    sizes = pool.spec.action_space.nvec
    rows = np.tile(sizes - 1, (pool.spec.num_players, 1))
    pool.step(rows)
    for component in range(len(sizes)):
        beyond = rows.copy()
        beyond[1, component] += 1
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            with pytest.raises(APIUsageError, match=f"got {sizes[component]}.* in row 1"):
                pool.step(beyond.astype(dtype))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (1, r"shape \(3,\).* got shape \(\)"),
        ([0, 1], r"got shape \(2,\)"),
        (np.zeros(4, np.int32), r"got shape \(4,\)"),
        (np.zeros((3, 1), np.int32), r"got shape \(3, 1\)"),
        (np.zeros((1, 3), np.int64), r"got shape \(1, 3\)"),
        ([0, 0.5, 1], "from 0 to 1, got 0.5 in row 1"),
        ([0, np.nan, 1], "got nan in row 1"),
        (np.array([0, 1, np.inf], np.float32), "got inf in row 2"),
        ([2, 0, 0], "from 0 to 1, got 2 in row 0"),
        (np.array([0, 0, -1], np.int32), "got -1 in row 2"),
        (np.array([0, 2**40, 1]), f"got {2**40} in row 1"),
        (np.array([0, 0, 2**64 - 1], np.uint64), f"got {2**64 - 1} in row 2"),
        (["a", "b", "c"], "got dtype <U1"),
        (np.zeros(3, complex), "got dtype complex128"),
        (np.zeros(3, object), "got dtype object"),
        (None, r"got shape \(\)"),
        ([[0], [1, 2], [3]], "rows of one length"),
        ({"env_id": [0, 1, 2]}, 'must have the key "action", got'),
        ({"action": PUSHES, "env_ids": [0]}, "unknown key of an action 'env_ids'; did you mean 'env_id'"),
        ({"action": PUSHES, "players.env_id": [0, 2, 2]}, r"players\.env_id must name each environment 1 times"),
    ],
)
def test_invalid_actions_raise(actions, message):
    pool, other = make_pool("cartpole", 3), make_pool("cartpole", 3)
    pool.step(PUSHES)
    other.step(PUSHES)
    for call in (pool.step, pool.send):
        with pytest.raises(APIUsageError, match=message):
            call(actions)
    assert pool.num_in_flight == 0
    assert np.array_equal(pool.step(PUSHES)[0], other.step(PUSHES)[0])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_box_actions_must_be_finite(number, dtype):
    pool = make_pool("cartpole", 2, params={"continuous": True})
    with np.errstate(over="ignore"):
        actions = np.array([[0], [number]], dtype)
    with pytest.raises(APIUsageError, match=r"finite numbers of float32, got .* in row 1"):
        pool.step(actions)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([4], "from 0 to 3, got 4"),
        ([0, -1], "from 0 to 3, got -1"),
        ([2**40], f"got {2**40}"),
        (np.array([-(2**31)], np.int32), f"got {-(2**31)}"),
        ([1, 1], "each environment once, got 1 more than once"),
        (np.array([0, 2, 0], np.int32), "got 0 more than once"),
        ([0, 1, 2, 0, 1], "got 0 more than once"),
        ([3], "environment 3 is in flight"),
        ([0, 3], "environment 3 is in flight"),
        (1, "integers in a row"),
        (np.int32(1), "integers in a row"),
        ([], "integers in a row"),
        ([1.0], "got .1.0."),
        (np.ones(1), "got dtype float64"),
        ([True], "got .True."),
        ([[1]], "integers in a row"),
        ("1", "got '1'"),
        ([[1], [2, 3]], "integers in a row"),
        (np.array([2**64 - 1], np.uint64), "from 0 to 3, got"),
    ],
)
def test_invalid_ids_raise(ids, message):
    pool = make_pool("cartpole", 4)
    pool.reset()
    pool.recv()
    pool.reset([3])
    actions = np.zeros(np.size(ids) if np.ndim(ids) else 1) if not isinstance(ids, list) else np.zeros(len(ids))
    calls = [lambda: pool.step(actions, ids), lambda: pool.send(actions, ids), lambda: pool.reset(ids)]
    for call in calls:
        with pytest.raises(APIUsageError, match=message):
            call()
    assert pool.num_in_flight == 1
    assert pool.recv().env_id.tolist() == [3]
    assert len(pool.step(np.zeros(4))[0]) == 4


def test_send_to_all_while_some_are_in_flight_raises():
    pool = make_pool("cartpole", 3)
    pool.send(np.zeros(2), [0, 2])
    for call in (lambda: pool.step(np.zeros(3)), lambda: pool.send(np.zeros(3)), pool.reset):
        with pytest.raises(APIUsageError, match="for all 3 environments, but 2 of them are in flight"):
            call()


def test_recv_that_would_wait_forever_raises():
    sync, first = make_pool("cartpole", 3), make_pool("cartpole", 3, 2)
    for pool in (sync, first):
        with pytest.raises(APIUsageError, match=r"wait for ever: a batch needs . environments in flight, got 0"):
            pool.recv()
    first.reset([0])
    with pytest.raises(APIUsageError, match="needs 2 environments in flight, got 1"):
        first.recv()
    with pytest.raises(APIUsageError, match=r"\.recv: .* got 0"):
        make_pool("cartpole", 3, 2).recv_step()
    first.reset([1])
    assert len(first.recv().env_id) == 2
    with pytest.raises(APIUsageError, match=r"step: .* needs 2 environments in flight, got 1"):
        first.step([0], [1])
    assert first.num_in_flight == 0


def test_ids_in_dict_and_argument_raise():
    pool = make_pool("cartpole", 2)
    with pytest.raises(APIUsageError, match="env_id must be given once"):
        pool.step({"action": [0], "env_id": [1]}, [1])


def test_environment_keywords_are_checked():
    assert make_pool("cartpole", 1, gravity=3.0)
    for params, message in (({"gravity": "x"}, "gravity must be a number"), ({"gravity": -1}, "from 0 to 100")):
        with pytest.raises(APIUsageError, match=message):
            NativeBackend("cartpole", **params).describe({})
    with pytest.raises(UnknownNameError, match="did you mean 'gravity'"):
        NativeBackend("cartpole", gravty=1).describe({})
    with pytest.raises(UnknownNameError, match="did you mean 'cartpole'"):
        NativeBackend("cartpol").describe({})
