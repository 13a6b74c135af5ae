"""``nativize_tensor``: views of flat observations, without copies and without graph breaks."""

import shutil
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

from pufferlib import APIUsageError
from pufferlib.emulation import Limits, observation_layout
from pufferlib.emulation._pack import Packer

torch = pytest.importorskip("torch")
from torch.autograd import forward_ad  # noqa: E402

import pufferlib.pytorch  # noqa: E402
from pufferlib.models import Default  # noqa: E402
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


def assert_equal(native, samples, space):
    if isinstance(space, Dict | Tuple):
        items = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        for key, child in items:
            field = key if isinstance(space, Dict) else f"f{key}"
            assert_equal(native[field], [sample[key] for sample in samples], child)
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
def test_nativize_tensor_returns_views_of_the_leaves(space):
    batch, samples, dtype = batch_of(space)
    observations = torch.from_numpy(batch)
    native = nativize_tensor(observations, dtype)
    assert_equal(native, samples, space)
    assert flattened_tensor_size(dtype) == sum(leaf.count for leaf in observation_layout(space).leaves)
    batch[:] = 0
    leaf = native["map"] if space is MIXED else native["a"] if space is SAME else native
    assert not leaf.any()


def test_variable_spaces_become_padded_tensors():
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
def test_nativize_tensor_compiles_without_graph_breaks(space):
    batch, samples, dtype = batch_of(space)
    compiled = torch.compile(lambda x: nativize_tensor(x, dtype), fullgraph=True, backend="eager")
    native = compiled(torch.from_numpy(batch))
    assert type(native) is type(nativize_tensor(torch.from_numpy(batch), dtype))
    assert_equal(native, samples, space)


def test_observations_of_another_dtype_are_refused():
    batch, _, dtype = batch_of(MIXED)
    with pytest.raises(APIUsageError, match=r"must be torch.uint8 or torch.uint8|got torch.float32; nativize them"):
        nativize_tensor(torch.from_numpy(batch).float(), dtype)


def test_dtypes_missing_in_torch_are_named():
    layout = observation_layout(Dict({"a": Box(0, 1, (2,), np.longdouble), "b": Discrete(2)}))
    with pytest.raises(APIUsageError, match=r"observation\['a'\] has dtype float128, which torch does not have"):
        nativize_dtype({"emulated_observation_dtype": layout.dtype})


NESTED = Dict({"a": Box(-1, 1, (2,)), "b": Dict({"c": Discrete(3), "d": Box(0, 255, (3,), np.uint8)})})


def same_tensors(first, second):
    if isinstance(first, dict):
        return all(same_tensors(first[key], second[key]) for key in first)
    return first is second


class ReturnedViews:
    """Structures returned by ``nativize_tensor``, of which some are cached for memory that is seen again."""

    def __init__(self):
        self.returned = []

    def of(self, tensor, dtype):
        native = nativize_tensor(tensor, dtype)
        self.returned.append(weakref.ref(native["a"]))
        return native

    @property
    def kept(self):
        """Number of structures that are still referenced."""
        return len({id(view) for reference in self.returned if (view := reference()) is not None})


class TestCachedViews:
    @pytest.fixture
    def batch(self):
        return batch_of(NESTED, rows=4)

    def test_same_memory_returns_the_same_views(self, batch):
        array, samples, dtype = batch
        first = nativize_tensor(torch.from_numpy(array), dtype)
        second = nativize_tensor(torch.from_numpy(array), dtype)  # another tensor of the same memory
        assert same_tensors(first, second)
        assert_equal(second, samples, NESTED)
        array[:] = 0
        assert not second["a"].any()

    def test_changed_dicts_are_not_cached(self, batch):
        array, samples, dtype = batch
        native = nativize_tensor(torch.from_numpy(array), dtype)
        native["a"], native["b"]["c"] = None, None
        native["b"].pop("d")
        assert_equal(nativize_tensor(torch.from_numpy(array), dtype), samples, NESTED)

    def test_same_memory_in_another_shape(self, batch):
        array, samples, dtype = batch
        observations = torch.from_numpy(array)
        for rows in (4, 2, 4, 1):
            assert_equal(nativize_tensor(observations[:rows], dtype), samples[:rows], NESTED)

    def test_same_memory_with_other_strides(self, batch):
        array, samples, dtype = batch
        observations = torch.from_numpy(array)
        nativize_tensor(observations[:2], dtype)
        assert_equal(nativize_tensor(observations[::2], dtype), samples[::2], NESTED)
        assert_equal(nativize_tensor(observations[:2], dtype), samples[:2], NESTED)

    def test_same_memory_with_another_structure(self, batch):
        array, samples, dtype = batch
        observations = torch.from_numpy(array)
        nativize_tensor(observations, dtype)
        assert nativize_tensor(observations, {"x": dtype["b"]["d"]}).keys() == {"x"}
        assert_equal(nativize_tensor(observations, dtype), samples, NESTED)

    def test_cache_does_not_keep_tensors_alive(self, batch):
        array, _, dtype = batch
        views = ReturnedViews()
        for _ in range(50):  # temporary tensors, whose views the caller keeps for a while
            owned = torch.from_numpy(array).clone()
            rows = [views.of(owned[row : row + 1], dtype) for row in range(4)]
            assert views.kept <= 8
        assert torch.equal(rows[0]["a"], owned[:1, :8].view(torch.float32))
        owner = weakref.ref(owned)
        del owned
        assert owner() is None
        assert views.kept <= 4
        rows.clear()

    def test_reused_addresses_do_not_return_old_views(self):
        dtype = batch_of(Dict({"a": Box(-1, 1, (500,)), "b": Box(-1, 1, (500,))}))[2]
        for _ in range(100):  # usually the allocator reuses the address of ``moved`` for one of the others
            moved = torch.zeros(2, 1000)
            nativize_tensor(moved, dtype)
            moved.resize_(3, 1000)  # like out= arguments that are too small
            others = [torch.full((2, 1000), 7.0) for _ in range(4)]
            assert all((nativize_tensor(other, dtype)["a"] == 7).all() for other in others)

    def test_views_of_numpy_arrays_are_limited(self, batch):
        array, _, dtype = batch
        views = ReturnedViews()
        for copy in [array.copy() for _ in range(50)]:
            views.of(torch.from_numpy(copy), dtype)
        assert views.kept == pufferlib.pytorch.MAX_FOREIGN

    def test_views_of_one_tensor_are_limited(self):
        dtype = batch_of(SAME)[2]
        views = ReturnedViews()
        replay = torch.zeros(3 * pufferlib.pytorch.MAX_SEEN, 8)
        for row in range(len(replay)):
            views.of(replay[row : row + 1], dtype)
        assert 0 < views.kept <= pufferlib.pytorch.MAX_SEEN
        del replay
        assert views.kept <= pufferlib.pytorch.MAX_FOREIGN + 8

    def test_cached_views_have_gradients(self):
        array, _, dtype = batch_of(SAME, rows=4)
        observations = torch.from_numpy(array).clone()
        nativize_tensor(observations, dtype)
        observations.requires_grad_()
        nativize_tensor(observations, dtype)["a"].sum().backward()
        assert observations.grad.sum() == 4 * 4

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch uses what it deprecates
    def test_cached_views_support_func_grad_jvp_and_forward_ad(self):
        array, _, dtype = batch_of(SAME, rows=4)
        observations, ones = torch.from_numpy(array), torch.ones(array.shape)
        nativize_tensor(observations, dtype)

        def total(x):
            return nativize_tensor(x, dtype)["a"].sum()

        assert torch.func.grad(total)(observations).sum() == 4 * 4
        assert torch.func.jvp(total, (observations,), (ones,))[1] == 4 * 4
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(total(forward_ad.make_dual(observations, ones))).tangent == 4 * 4

    def test_in_place_change_before_backward_raises(self):
        array, _, dtype = batch_of(SAME, rows=4)
        observations = torch.from_numpy(array).clone()
        weight = torch.ones(3, requires_grad=True)
        for _ in range(2):
            loss = (nativize_tensor(observations, dtype)["b"]["d"] * weight).sum()
        observations.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()

    def test_memory_seen_in_inference_mode_can_be_trained_on(self):
        array, _, dtype = batch_of(SAME, rows=4)
        weight = torch.ones(3, requires_grad=True)
        with torch.inference_mode():
            for _ in range(2):
                nativize_tensor(torch.from_numpy(array), dtype)
        (nativize_tensor(torch.from_numpy(array), dtype)["b"]["d"] * weight).sum().backward()
        assert weight.grad is not None

    def test_empty_batches_and_tensors_without_memory(self, batch):
        array, samples, dtype = batch
        for _ in range(2):
            assert nativize_tensor(torch.from_numpy(array)[:0], dtype)["a"].shape == (0, 2)
            assert nativize_tensor(torch.from_numpy(array[np.zeros(0, int)]), dtype)["a"].shape == (0, 2)
            assert nativize_tensor(torch.empty(array.shape, dtype=torch.uint8, device="meta"), dtype)["a"].is_meta
        stacked = torch.from_numpy(np.stack([array, array]))
        native = torch.vmap(lambda observations: nativize_tensor(observations, dtype)["a"])(stacked)
        assert native.shape == (2, 4, 2)
        np.testing.assert_array_equal(native[1], [sample["a"] for sample in samples])

    def test_compile_succeeds_with_cached_views(self, batch):
        array, _, dtype = batch
        nativize_tensor(torch.from_numpy(array), dtype)
        for backend in ("eager", "aot_eager"):
            torch.compiler.reset()
            compiled = torch.compile(
                lambda x: {"a": nativize_tensor(x, dtype)["a"] * 2}, fullgraph=True, backend=backend
            )
            compiled(torch.from_numpy(array))
            other, others, _ = batch_of(NESTED, rows=4)
            native = compiled(torch.from_numpy(other))
            np.testing.assert_array_equal(native["a"], np.stack([sample["a"] for sample in others]) * 2)

    @pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated
    def test_jit_trace_does_not_store_cached_views(self):
        array, _, dtype = batch_of(SAME)
        observations = torch.from_numpy(array)
        nativize_tensor(observations, dtype)
        traced = torch.jit.trace(lambda x: nativize_tensor(x, dtype)["a"], observations)
        assert not traced(torch.zeros_like(observations)).any()


def test_policy_on_structures_compiles_without_graph_breaks():
    array, _, _ = batch_of(MIXED)
    layout = observation_layout(MIXED)
    env = SimpleNamespace(
        single_observation_space=layout.flat_space, single_action_space=Discrete(3), emulated=layout.emulated
    )
    policy = Default(env, hidden_size=8)
    observations = torch.from_numpy(array)
    params, values = policy.forward_eval(observations)
    compiled = torch.compile(policy.forward_eval, fullgraph=True, backend="aot_eager")(observations)
    torch.testing.assert_close(compiled, (params, values))


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch uses what it deprecates
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
def test_nativize_tensor_compiles_with_inductor():
    array, samples, dtype = batch_of(MIXED)
    compiled = torch.compile(lambda x: nativize_tensor(x, dtype), fullgraph=True)
    assert_equal(compiled(torch.from_numpy(array)), samples, MIXED)
