"""Spaces of variable size (Sequence, Graph, Text, OneOf), which are padded to rows of fixed size."""

import copy

import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from hypothesis import HealthCheck, given, settings, strategies as st

import pufferlib.vector
from pufferlib import APIUsageError
from pufferlib.emulation import GymnasiumPufferEnv, Limits, action_layout, observation_layout
from pufferlib.emulation._pack import Packer
from pufferlib.emulation.actions import ActionDecoder
from tests.envs import FunctionEnv

LIMITS = Limits(max_length=3, max_nodes=4, max_edges=5)

boxes = st.builds(
    lambda shape, dtype: Box(0, 1, shape, dtype),
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.sampled_from([np.bool_, np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64]),
)
multi_discrete = st.builds(
    lambda nvec, start: MultiDiscrete([nvec, nvec], start=np.full((2, len(nvec)), start)),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.integers(-5, 5),
)
leaves = st.one_of(
    boxes,
    st.builds(lambda n, start: Discrete(n, start=start), st.integers(1, 2**40), st.integers(-5, 5)),
    multi_discrete,
    st.builds(MultiBinary, st.integers(1, 4)),
    st.builds(
        lambda length, charset: Text(length, min_length=0, charset=charset),
        st.integers(1, 4),
        st.frozensets(st.characters(), min_size=1, max_size=4),
    ),
)


def containers(child):
    children = st.lists(child, min_size=1, max_size=3)
    return st.one_of(
        st.dictionaries(st.text("abc", max_size=2), child, min_size=1, max_size=3).map(Dict),
        children.map(Tuple),
        children.map(OneOf),
        st.builds(lambda item, stack: Sequence(item, stack=stack), child, st.booleans()),
        st.builds(Graph, child, st.one_of(st.none(), child)),
    )


spaces = st.recursive(leaves, containers, max_leaves=5)


def draw(space, rng):
    """Return a random sample of ``space`` within LIMITS."""
    if isinstance(space, Dict):
        return {key: draw(child, rng) for key, child in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(draw(child, rng) for child in space.spaces)
    if isinstance(space, OneOf):
        index = int(rng.integers(len(space.spaces)))
        return index, draw(space.spaces[index], rng)
    if isinstance(space, Sequence):
        items = tuple(draw(space.feature_space, rng) for _ in range(rng.integers(LIMITS.max_length + 1)))
        return stack(space.feature_space, items) if space.stack else items
    if isinstance(space, Graph):
        nodes = [draw(space.node_space, rng) for _ in range(rng.integers(1, LIMITS.max_nodes + 1))]
        if space.edge_space is None or rng.integers(4) == 0:
            return GraphInstance(stack(space.node_space, nodes), None, None)
        edges = [draw(space.edge_space, rng) for _ in range(rng.integers(LIMITS.max_edges + 1))]
        links = rng.integers(len(nodes), size=(len(edges), 2))
        return GraphInstance(stack(space.node_space, nodes), stack(space.edge_space, edges), links)
    return space.sample()


def stack(space, items):
    out = create_empty_array(space, len(items))
    return concatenate(space, items, out) if items else out


def restore(space, fields, index=()):
    """Return the sample that was packed into ``fields[index]``."""
    if isinstance(space, Dict):
        return {
            key: restore(child, fields[name], index)
            for name, (key, child) in zip(fields.dtype.names, space.spaces.items(), strict=True)
        }
    if isinstance(space, Tuple):
        return tuple(restore(child, fields[f"f{i}"], index) for i, child in enumerate(space.spaces))
    if isinstance(space, OneOf):
        choice = int(fields["index"][index])
        return choice, restore(space.spaces[choice], fields[f"f{choice}"], index)
    if isinstance(space, Text):
        return "".join(map(chr, fields["codes"][index][: fields["length"][index]]))
    if isinstance(space, Sequence):
        return tuple(restore(space.feature_space, fields["items"], (*index, i)) for i in range(fields["length"][index]))
    if isinstance(space, Graph):
        return restore_graph(space, fields, index)
    return fields[index]


def restore_graph(space, fields, index):
    nodes = tuple(restore(space.node_space, fields["nodes"], (*index, i)) for i in range(fields["num_nodes"][index]))
    if space.edge_space is None:
        return nodes, (), ()
    count = fields["num_edges"][index]
    edges = tuple(restore(space.edge_space, fields["edges"], (*index, i)) for i in range(count))
    return nodes, edges, fields["edge_links"][index][:count]


def assert_same(space, got, want):
    if isinstance(space, Dict):
        for key, child in space.spaces.items():
            assert_same(child, got[key], want[key])
    elif isinstance(space, Tuple):
        for child, a, b in zip(space.spaces, got, want, strict=True):
            assert_same(child, a, b)
    elif isinstance(space, OneOf):
        assert got[0] == want[0]
        assert_same(space.spaces[got[0]], got[1], want[1])
    elif isinstance(space, Sequence):
        assert_all_same(space.feature_space, got, unstacked(space.stacked_feature_space, want) if space.stack else want)
    elif isinstance(space, Graph):
        nodes, edges, links = got
        assert_all_same(space.node_space, nodes, unstacked(space.batch_node_space, want.nodes))
        if want.edges is None:
            assert len(edges) == len(links) == 0
        else:
            assert_all_same(space.edge_space, edges, unstacked(space.batch_edge_space, want.edges))
            np.testing.assert_array_equal(links, want.edge_links)
    else:
        np.testing.assert_array_equal(got, want)


def assert_all_same(space, got, want):
    for a, b in zip(got, want, strict=True):
        assert_same(space, a, b)


def unstacked(batch, values):
    return list(iterate(batch, values))


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(spaces, st.integers(0, 2**31))
def test_round_trip_of_any_observation(space, seed):
    layout = observation_layout(space, LIMITS)
    space.seed(seed)
    rng = np.random.default_rng(seed)
    samples = [draw(space, rng) for _ in range(3)]
    batch = np.zeros((3, *layout.flat_space.shape), layout.flat_space.dtype)
    packer = Packer(layout)
    for row in (2, 1, 0, 1, 2):  # later samples must overwrite earlier ones
        packer.pack(batch, row, samples[(row + 1) % 3])
    for row, sample in enumerate(samples):
        layout.check(sample)
        packer.pack(batch, row, sample)
    for row, sample in enumerate(samples):
        fields = batch[row, ...].view(layout.dtype.base).reshape(layout.dtype.shape)
        assert_same(space, restore(space, fields if fields.dtype.names is None else fields[()]), sample)


texts = st.builds(
    lambda low, length, charset: Text(low + length, min_length=low, charset=charset),
    st.integers(0, 2),
    st.integers(1, 3),
    st.frozensets(st.characters(), min_size=1, max_size=4),
)
finite = st.one_of(
    texts,
    st.builds(lambda n, start: Discrete(n, start=start), st.integers(1, 2**31 - 6), st.integers(-5, 5)),
    multi_discrete,
    st.builds(MultiBinary, st.integers(1, 4)),
    st.builds(lambda low, dtype: Box(low, 7, (2, 1), dtype), st.integers(0, 7), st.sampled_from([np.int8, np.uint64])),
)
real = st.builds(
    lambda shape, dtype: Box(-3, 2, shape, dtype),
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.sampled_from([np.float16, np.float32, np.float64]),
)


def keyed(child):
    children = st.lists(child, min_size=1, max_size=3)
    return st.one_of(st.dictionaries(st.text("abc"), child, min_size=1, max_size=3).map(Dict), children.map(Tuple))


finite_spaces = st.recursive(
    finite, lambda child: keyed(child) | st.lists(child, min_size=1, max_size=2).map(OneOf), max_leaves=6
)


def flatten(space, sample):
    """Return the flat action for ``sample``. Options that were not chosen get random values."""
    if isinstance(space, Dict):
        return [number for key, child in space.spaces.items() for number in flatten(child, sample[key])]
    if isinstance(space, Tuple):
        return [number for child, part in zip(space.spaces, sample, strict=True) for number in flatten(child, part)]
    if isinstance(space, OneOf):
        parts = [child.sample() for child in space.spaces]
        parts[sample[0]] = sample[1]
        return [sample[0], *flatten(Tuple(space.spaces), parts)]
    if isinstance(space, Text):
        characters = sorted(space.character_set)
        unused = [len(characters) - 1] * (space.max_length - len(sample))
        return [len(sample), *map(characters.index, sample), *unused]
    return np.asarray(sample).ravel().tolist()


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(finite_spaces | st.recursive(real, keyed, max_leaves=6), st.integers(0, 2**31))
def test_round_trip_of_any_action(space, seed):
    layout = action_layout(space)
    space.seed(seed)
    sample = draw(space, np.random.default_rng(seed))
    flat = flatten(space, sample)
    decoder = ActionDecoder("step", layout)
    for sent in (flat, np.array(flat), np.array(flat, layout.flat_space.dtype)):
        action = decoder.decode(sent if layout.is_emulated else np.reshape(sent, space.shape))
        assert space.contains(action)
        assert_same(space, action, sample)
    if layout.is_emulated:
        assert layout.flat_space.contains(np.array(flat, layout.flat_space.dtype))
        assert space.contains(decoder.decode(layout.flat_space.sample()))


CREW = Sequence(Dict({"name": Text(4, charset="abc"), "hp": Box(0, 9, (2,), np.uint8)}))
WORLD = Dict({"crew": CREW, "map": Graph(Box(0, 1, (2,)), Discrete(3)), "goal": OneOf([Discrete(4), Text(2)])})


def pack(space, sample, limits=LIMITS):
    layout = observation_layout(space, limits)
    batch = np.zeros((1, *layout.flat_space.shape), layout.flat_space.dtype)
    Packer(layout).pack(batch, 0, sample)
    return batch[0].view(layout.dtype)[0]


def test_fields_of_variable_spaces_are_padded():
    hp = np.array([7, 8], np.uint8)
    links = GraphInstance(np.ones((2, 2), np.float32), np.array([2, 1]), np.array([[0, 1], [1, 1]]))
    row = pack(WORLD, {"crew": ({"name": "ab", "hp": hp}, {"name": "c", "hp": hp}), "map": links, "goal": (1, "x")})
    assert row["crew"]["length"] == 2
    assert row["crew"]["items"]["name"]["length"].tolist() == [2, 1, 0]
    assert row["crew"]["items"]["name"]["codes"].tolist() == [[97, 98, 0, 0], [99, 0, 0, 0], [0, 0, 0, 0]]
    assert row["crew"]["items"]["hp"].tolist() == [[7, 8], [7, 8], [0, 0]]
    assert (row["map"]["num_nodes"], row["map"]["num_edges"]) == (2, 2)
    assert row["map"]["nodes"].tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    assert row["map"]["edges"].tolist() == [2, 1, 0, 0, 0]
    assert row["map"]["edge_links"].tolist() == [[0, 1], [1, 1], [0, 0], [0, 0], [0, 0]]
    assert row["goal"]["index"] == 1
    assert bytes(row["goal"]["f1"]["codes"]) == b"x\0"


def test_observation_bounds_include_padding():
    space = Dict({"crew": Sequence(Discrete(3, start=5)), "map": Graph(Box(-2, -1, (2,)), Discrete(3)), "none": BARE})
    assert observation_layout(space, LIMITS).emulated["observation_bounds"] == {
        "crew": {"length": (0, 3), "items": (0, 7)},
        "map": {
            "num_nodes": (0, 4),
            "nodes": (-2, 0),
            "num_edges": (0, 5),
            "edges": (0, 2),
            "edge_links": (0, 3),
        },
        "none": {"index": (0, 1), "f0": None, "f1": {"length": (0, 4), "codes": (0, 99)}},
    }


BARE = OneOf([Box(0, 1, (0,)), Text(4, charset="abc")])
NODES = np.zeros((2, 2), np.float32)


@pytest.mark.parametrize(
    ("key", "bad", "message"),
    [
        ("name", 3, r"observation\['name'\] must have a str, got 3"),
        ("name", "aaaaa", r"1 to 4 characters, got 5"),
        ("name", "", r"1 to 4 characters, got 0"),
        ("name", "ax", r"characters of 'abc', got 'ax'"),
        ("list", 3, r"observation\['list'\] must have a collection of samples, got 3"),
        ("list", (0, 1, 0, 1), r"at most 3 items, got 4; give the emulation a larger max_length"),
        ("list", (0, 1.5), r"observation\['list'\]\[:\] must have dtype int32, got dtype float64"),
        ("list", (2**40,), r"observation\['list'\]\[:\] must have values that int32 can hold"),
        ("graph", 3, r"observation\['graph'\] must have nodes, edges and edge_links, got 3"),
        ("graph", GraphInstance(np.zeros((5, 2)), None, None), r"at most 4 nodes, got 5.*larger max_nodes"),
        ("graph", GraphInstance(NODES, np.zeros(6, int), np.zeros((6, 2), int)), r"at most 5 edges.*larger max_edges"),
        (
            "graph",
            GraphInstance(NODES, np.zeros(1, int), np.zeros((2, 2), int)),
            r"edge_links must have shape \(1, 2\)",
        ),
        ("graph", GraphInstance(NODES, np.zeros(1, int), np.array([[0, 2]])), r"edge_links from 0 to 1, got 0 to 2"),
        ("graph", GraphInstance(NODES, np.zeros(1, int), None), r"edge_links must have an array of shape \(1, 2\)"),
        ("graph", GraphInstance(NODES, None, np.zeros((1, 2), int)), r"must have a collection of samples, got None"),
        ("bare", GraphInstance(NODES, np.zeros(1), np.zeros((1, 2), int)), r"observation\['bare'\] must have no edges"),
        (
            "graph",
            GraphInstance(NODES * np.nan, None, None),
            r"nodes must have (numbers, got nan|values in Box)",
        ),
        ("one", 3, r"observation\['one'\] must have a pair \(index, sample\), got 3"),
        ("one", (2, 0), r"an index of 0 to 1, got 2"),
        ("one", (1, {"a": 1}), r"observation\['one'\].f1 must have the keys \['b'\], got \['a'\]"),
    ],
)
def test_observations_that_do_not_fit_are_refused(key, bad, message):
    box = Box(0, 1, (2,))
    space = {
        "name": Text(4, charset="abc"),
        "list": Sequence(Discrete(2)),
        "graph": Graph(box, Discrete(2)),
        "bare": Graph(box, None),
        "one": OneOf([Discrete(2), Dict({"b": Discrete(2)})]),
    }[key]
    with pytest.raises(APIUsageError, match=message):
        pack(Dict({key: space}), {key: bad})
    with pytest.raises(APIUsageError, match=message):
        observation_layout(Dict({key: space}), LIMITS).check({key: bad})


@pytest.mark.parametrize(
    ("space", "bad", "message"),
    [
        (Sequence(Discrete(2)), (0, 2), r"observation\[:\] must have values in Discrete\(2\), got 0 to 2"),
        (OneOf([Discrete(2)]), (0, 2), r"observation.f0 must have values in Discrete\(2\)"),
        (Graph(Discrete(2), None), GraphInstance(np.array([2]), None, None), r"observation.nodes must have values in"),
    ],
)
def test_bounds_of_nested_values_are_checked(space, bad, message):
    with pytest.raises(APIUsageError, match=message):
        observation_layout(space, LIMITS).check(bad)


@pytest.mark.parametrize(
    ("space", "limits", "message"),
    [
        (Sequence(Discrete(2)), Limits(), r"observation is Sequence.*max_length must be a positive integer, got None"),
        (Dict({"a": Graph(Discrete(2), None)}), Limits(3), r"observation\['a'\] is Graph.*max_nodes=..."),
        (Graph(Discrete(2), Discrete(2)), Limits(max_nodes=3), r"max_edges must be a positive integer, got None"),
        (Sequence(Discrete(2)), Limits(0), r"max_length must be a positive integer, got 0"),
    ],
)
def test_variable_spaces_need_limits(space, limits, message):
    with pytest.raises(APIUsageError, match=message):
        observation_layout(space, limits)


def test_gymnasium_puffer_env_takes_limits():
    crowd = FunctionEnv(Sequence(Discrete(9)), observe=lambda _: (7, 8))
    env = GymnasiumPufferEnv(crowd, max_length=3)
    observation, _ = env.reset()
    fields = observation.view(env.obs_dtype)[0]
    assert fields["length"] == 2
    assert fields["items"].tolist() == [7, 8, 0]
    with pytest.raises(APIUsageError, match="max_length must be a positive integer, got None"):
        GymnasiumPufferEnv(crowd)


def world(action_space, buf=None, seed=0):
    """Make an environment whose observations are random samples of WORLD."""
    env = FunctionEnv(
        copy.deepcopy(WORLD), action_space, observe=lambda env: draw(env.observation_space, env.np_random)
    )
    return GymnasiumPufferEnv(env, buf=buf, seed=seed, max_length=3, max_nodes=4, max_edges=5)


ACTION_SPACES = [
    Dict({"a": Box(-1, 1, (2,)), "b": Tuple([Box(0, 5, (), np.float64)])}),
    Tuple([Box(-1, 1, (2, 1), np.float16)]),
    Dict({"d": Discrete(3, start=4), "m": MultiDiscrete([2, 5]), "b": MultiBinary(2), "i": Box(-1, 3, (1,), np.int64)}),
    OneOf([Discrete(2), Tuple([Discrete(3)])]),
    Dict({"say": Text(5, min_length=0, charset="abc"), "to": OneOf([Discrete(2), Text(2)])}),
    Text(3),
    Box(0, 3, (2,), np.int64),
    Discrete(4, start=-2),
    MultiDiscrete([[2, 3], [4, 5]], start=[[1, 1], [1, 1]]),
]


@pytest.mark.parametrize("space", ACTION_SPACES, ids=str)
def test_vector_step_passes_actions_of_any_space(space):
    envs = pufferlib.vector.make(world, num_envs=2, env_args=[space], backend=pufferlib.vector.Serial)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    samples = [draw(space, rng) for _ in range(2)]
    shape = (2, *envs.single_action_space.shape)
    flat = np.array([flatten(space, sample) for sample in samples]).reshape(shape)
    is_integer = envs.action_space.dtype.kind == "i"
    for sent in [flat, flat.tolist(), *(flat.astype(dtype) for dtype in ([np.int32, np.int64] * is_integer))]:
        envs.step(sent)
        for env, sample in zip(envs.envs, samples, strict=True):
            assert_same(space, env.env.actions[-1], sample)
            assert space.contains(env.env.actions[-1])
    if is_integer:
        for bad in (flat + 2**32, flat + 0.5, flat + 2**40, (flat + 2**32).tolist()):
            with pytest.raises(APIUsageError, match="actions must be"):
                envs.step(bad)
    envs.close()


def test_variable_spaces_give_the_same_rows_in_workers():
    batches = []
    for backend, options in ((pufferlib.vector.Serial, {}), (pufferlib.vector.Multiprocessing, {"num_workers": 1})):
        envs = pufferlib.vector.make(world, num_envs=2, env_args=[Discrete(2)], backend=backend, **options)
        rows = [envs.reset(seed=3)[0].copy()]
        rows += [envs.step(np.zeros(2, int))[0].copy() for _ in range(5)]
        batches.append((np.stack(rows), envs.driver_env.obs_dtype))
        if backend is pufferlib.vector.Serial:
            for row, env in zip(rows[-1], envs.envs, strict=True):
                assert_same(WORLD, restore(WORLD, row.view(env.obs_dtype)[0]), env.env.observations[-1])
        envs.close()
    (serial, dtype), (processes, same_dtype) = batches
    assert dtype == same_dtype
    np.testing.assert_array_equal(serial, processes)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(spaces, st.integers(0, 2**31))
def test_nativize_tensor_gives_the_fields_of_numpy(space, seed):
    torch = pytest.importorskip("torch")
    from pufferlib.pytorch import nativize_dtype, nativize_tensor

    layout = observation_layout(space, LIMITS)
    space.seed(seed)
    rng = np.random.default_rng(seed)
    batch = np.zeros((3, *layout.flat_space.shape), layout.flat_space.dtype)
    packer = Packer(layout)
    for row in range(3):
        packer.pack(batch, row, draw(space, rng))
    native = nativize_tensor(torch.from_numpy(batch), nativize_dtype(layout.emulated))
    fields = batch.reshape(3, -1).view(layout.dtype.base).reshape(3, *layout.dtype.shape)
    assert_equal_trees(native, fields)


def assert_equal_trees(native, fields):
    if isinstance(native, dict):
        assert tuple(native) == fields.dtype.names
        for name in native:
            assert_equal_trees(native[name], fields[name])
    else:
        assert native.shape == fields.shape
        np.testing.assert_array_equal(native.numpy(), fields)
