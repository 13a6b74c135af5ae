"""``to_gymnasium``: vector environments with Gymnasium's interface, compared with SyncVectorEnv."""

import functools
import itertools
import sys
import warnings

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.rows import columns_of
from tests.envs import MIXED, NESTED, FunctionEnv, ScriptedParallelEnv, ScriptedPufferEnv, alive
from tests.tiers import once
from tests.vector_envs import RandomWalk

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
SEEDS = [3, 1, 4, 1]


WALK = functools.partial(RandomWalk, Discrete(3, start=4))


def make_envs(creator=WALK, backend="Serial", autoreset="same_step", copy=True, **options):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=creator)
    vecenv = pufferlib.vector.make(creator, num_envs=4, backend=backend, autoreset=autoreset, overwork=True, **options)
    return pufferlib.vector.to_gymnasium(vecenv, copy=copy)


def assert_same(mine, theirs):
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key in theirs:
            assert_same(mine[key], theirs[key])
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("backend", "autoreset"),
    once(
        list(itertools.product(["Serial", "Multiprocessing"], MODES)),
        [*(("Serial", mode) for mode in MODES), ("Multiprocessing", "same_step")],
    ),
)
def test_to_gymnasium_matches_sync_vector_env(backend, autoreset):
    mine = make_envs(backend=backend, autoreset=autoreset, num_workers=2 if backend != "Serial" else None)
    theirs = SyncVectorEnv([WALK] * 4, autoreset_mode=MODES[autoreset])
    assert mine.metadata["autoreset_mode"] is mine.autoreset_mode is theirs.autoreset_mode
    assert mine.observation_space == theirs.observation_space
    assert mine.action_space == theirs.action_space
    rng, ends = np.random.default_rng(0), 0
    assert_same(*(dict(enumerate(env.reset(seed=SEEDS, options={"a": 1}))) for env in (mine, theirs)))
    for _ in range(60):
        actions = rng.integers(3, size=4)
        outcomes = [dict(enumerate(env.step(actions))) for env in (mine, theirs)]
        outcomes[1][1] = outcomes[1][1].astype(np.float32)
        assert_same(*outcomes)
        over = outcomes[0][2] | outcomes[0][3]
        ends += over.sum()
        if autoreset == "disabled" and over.any():
            options = [{"reset_mask": over.copy()} for _ in range(2)]
            resets = [env.reset(seed=SEEDS, options=each) for env, each in zip((mine, theirs), options, strict=True)]
            assert_same(*(dict(enumerate(reset)) for reset in resets))
    assert ends > 5
    mine.close()
    theirs.close()


def test_call_attributes_render_and_seeds_reach_environments():
    env = make_envs(backend="Multiprocessing", num_workers=2)
    env.reset(seed=SEEDS)
    assert env.np_random_seed == tuple(SEEDS)
    assert [frame.shape for frame in env.render()] == [(2, 2, 3)] * 4
    env.set_attr("render_mode", ["a", "b", "c", "d"])
    assert env.call("render_mode") == env.get_attr("render_mode") == ("a", "b", "c", "d")
    env.close()


def test_copy_decides_whether_returned_arrays_change():
    for copy in (True, False):
        env = make_envs(functools.partial(gymnasium.make, "CartPole-v1"), copy=copy)
        env.reset(seed=0)
        first = env.step([0] * 4)[0]
        before = first.copy()
        env.step([1] * 4)
        assert np.array_equal(first, before) == copy
        env.close()


@pytest.mark.parametrize(
    "wrapper",
    [
        wrappers.RecordEpisodeStatistics,
        wrappers.DictInfoToList,
        wrappers.NormalizeReward,
        lambda env: wrappers.ClipReward(env, -1, 1),
        lambda env: wrappers.TransformAction(env, lambda actions: actions % 2),
        wrappers.NormalizeObservation,
        lambda env: wrappers.RescaleObservation(env, -1, 1),
    ],
)
def test_gymnasium_vector_wrappers_return_the_same_as_on_sync_vector_env(wrapper):
    space = gymnasium.spaces.Box(-1, 1, (3,))
    creator = functools.partial(
        FunctionEnv,
        space,
        length=4,
        observe=lambda env: env.np_random.uniform(-1, 1, 3).astype(np.float32),
        reward=lambda env: env.count - 2.5,
        info=_count,
    )
    mine = wrapper(make_envs(creator, autoreset="next_step"))
    theirs = wrapper(SyncVectorEnv([creator] * 4, autoreset_mode=AutoresetMode.NEXT_STEP))
    for env in (mine, theirs):
        env.action_space.seed(0)
    observations, _ = mine.reset(seed=SEEDS)
    np.testing.assert_allclose(observations, theirs.reset(seed=SEEDS)[0], rtol=1e-6)
    for _ in range(9):
        actions = theirs.action_space.sample()
        for found, expected in zip(mine.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    for env in (mine, theirs):
        env.close()


def test_native_environment_has_one_row_per_agent():
    env = pufferlib.vector.to_gymnasium(pufferlib.make("squared", num_envs=64, size=3, log_interval=1))
    observations, infos = env.reset(seed=5)
    assert (env.num_envs, observations.shape, infos) == (64, (64, 9), {})
    seen = {}
    for _ in range(30):
        *_, terminations, _, infos = env.step(env.action_space.sample())
        assert ("final_obs" in infos) == terminations.any()
        seen |= infos
    assert seen["_score"].tolist() == [True] + [False] * 63, "a native environment reports all its episodes in row 0"
    with pytest.raises(APIUsageError, match="a native environment has keywords instead of options"):
        env.reset(options={"size": 5})
    env.close()


def test_native_environment_takes_reset_mask_and_list_of_seeds():
    seeds = [3, 1 << 40, 5]
    alone = [gymnasium.make("puffer/breakout") for _ in seeds]
    games = pufferlib.vector.to_gymnasium(pufferlib.make("breakout", num_envs=3, autoreset="disabled"))
    shown, _ = games.reset(seed=seeds)
    assert [row.tolist() for row in shown] == [
        env.reset(seed=seed)[0].tolist() for env, seed in zip(alone, seeds, strict=True)
    ]
    for _ in range(40):
        played, *_ = games.step(np.array([1, 1, 2]))
    again, _ = games.reset(seed=seeds, options={"reset_mask": np.array([True, False, True])})
    assert again[[0, 2]].tolist() == shown[[0, 2]].tolist()
    assert again[1].tolist() == played[1].tolist() != shown[1].tolist()
    games.close()


def test_list_of_seeds_needs_partial_resets():
    env = pufferlib.vector.to_gymnasium(ScriptedPufferEnv(num_agents=2))
    with pytest.raises(APIUsageError, match="ScriptedPufferEnv resets all its agents at once, by one seed, got"):
        env.reset(seed=[1, 2])


def test_nested_observations_are_restored():
    env = make_envs(functools.partial(FunctionEnv, NESTED, length=3))
    observations, _ = env.reset(seed=2)
    assert env.single_observation_space == NESTED
    with warnings.catch_warnings(action="ignore"):  # Gymnasium warns about Boxes with shape ()
        assert env.observation_space.contains(observations)
    for _ in range(3):
        *_, infos = env.step(env.action_space.sample())
    assert set(infos["final_obs"][1]) == set(NESTED.spaces)
    env.close()


def _count(env):
    return {"n": env.count}


def assert_refused(creator, message, **options):
    vecenv = pufferlib.vector.make(creator, num_envs=2, backend="Serial", **options)
    with vecenv, pytest.raises(APIUsageError, match=message):
        pufferlib.vector.to_gymnasium(vecenv)


def test_unsupported_environments_and_calls_are_refused():
    assert_refused(
        functools.partial(PettingZooPufferEnv, env_creator=ScriptedParallelEnv, env_args=["ab", alive("a", "b")]),
        "an environment must have one agent, got 3 that come and go",
    )
    assert_refused(functools.partial(GymnasiumPufferEnv, env_creator=WALK), "got batches of 1; make it", batch_size=1)
    text = gymnasium.spaces.Dict({"t": gymnasium.spaces.Text(4)})
    assert_refused(
        functools.partial(GymnasiumPufferEnv, env_creator=FunctionEnv, env_args=[text]),
        r"got Text\(1, 4, .* as observation\['t'\]",
    )
    env = make_envs(functools.partial(FunctionEnv, length=1), autoreset="disabled")
    env.reset(seed=1)
    env.step([0] * 4)
    with pytest.raises(APIUsageError, match=r"got rows \[0, 1, 2, 3\]; call reset\(options="):
        env.step([0] * 4)
    with pytest.raises(APIUsageError, match=r"options must be one dict for all environments, got \[\{'a': 1\}"):
        env.reset(options=[{"a": 1}] * 4)
    env.close()


@pytest.mark.parametrize(
    "space",
    [
        Discrete(5),
        MultiDiscrete([2, 3]),
        MultiDiscrete([2, 3], dtype=np.int8),
        MultiDiscrete([2, 3], dtype=np.uint16),
        Dict({"a": Discrete(3, start=2)}),
    ],
)
def test_observations_have_the_dtype_of_their_space(space):
    mine = make_envs(functools.partial(FunctionEnv, space, length=1))
    theirs = SyncVectorEnv([functools.partial(FunctionEnv, space, length=1)] * 4, autoreset_mode=MODES["same_step"])
    for env in (mine, theirs):
        observations, _ = env.reset(seed=SEEDS)
        *_, infos = env.step(env.action_space.sample())
        leaf, expected = observations, env.observation_space
        if isinstance(space, Dict):
            leaf, expected = leaf["a"], expected["a"]
        assert leaf.dtype == expected.dtype
        assert observations in env.observation_space
        assert infos["final_obs"][0] in env.single_observation_space
    mine.close()


@pytest.mark.parametrize("info", [None, lambda env: {"n": env.count} if env.actions[-1] else {}])
def test_ended_rows_have_a_final_info_even_if_it_is_empty(info):
    creator = functools.partial(FunctionEnv, length=2, info=info)
    mine, theirs = make_envs(creator), SyncVectorEnv([creator] * 4, autoreset_mode=MODES["same_step"])
    outcomes = []
    for env in (mine, theirs):
        env.reset(seed=SEEDS)
        outcomes.append([env.step([1, 0, 0, 1])[4] for _ in range(3)])
    for one, other in zip(*outcomes, strict=True):
        one.pop("final_obs", None), other.pop("final_obs", None)
        assert_same(one, other)
    assert outcomes[0][1]["_final_info"].all()
    mine.close()


@pytest.mark.parametrize("kind", ["Serial", "native"])
def test_first_reset_with_full_mask_resets_all(kind):
    options = {"reset_mask": np.ones(4, bool)}
    make = functools.partial(gymnasium.make, "CartPole-v1")
    native = functools.partial(pufferlib.make, "cartpole", num_envs=4, autoreset="disabled")
    env, same = (
        make_envs(make, autoreset="disabled") if kind == "Serial" else pufferlib.vector.to_gymnasium(native())
        for _ in range(2)
    )
    shown, _ = env.reset(seed=SEEDS, options=options)
    assert shown.tolist() == same.reset(seed=SEEDS)[0].tolist()
    env.close()
    same.close()


def test_native_environment_has_seeds_and_renders_every_row():
    env = pufferlib.vector.to_gymnasium(
        pufferlib.make("cartpole", num_envs=3, autoreset="disabled", render_mode="rgb_array")
    )
    assert env.np_random_seed == (-1, -1, -1)
    env.reset(seed=[5, 6, 7])
    env.reset(seed=[1, 8, 1], options={"reset_mask": np.array([False, True, False])})
    assert env.np_random_seed == (5, 8, 7)
    with pytest.raises(
        APIUsageError, match=r"one for each of the 3 environments, also with a reset_mask, got 1: \[4\]"
    ):
        env.reset(seed=[4], options={"reset_mask": np.array([False, True, False])})
    with pytest.raises(APIUsageError, match="np_random must be a generator of numpy, which native environments do"):
        _ = env.np_random
    frames = env.render()
    assert len(frames) == 3
    assert (frames[0] != frames[1]).any()
    env.close()
    env = pufferlib.vector.to_gymnasium(pufferlib.make("cartpole", num_envs=2))
    assert env.render() is None
    env.close()


@pytest.mark.parametrize(
    "values",
    [
        (0, 0.5),
        (False, 0.5),
        (1, None),
        (1, "left"),
        (np.int8(3), 300),
        (2, {"x": 1}),
        (None, 1.0),
        (1, 2**80),
        (np.uint64(2**63), -1),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2, int), np.full(2, 0.5)),
        (np.array("a"), np.array("bcd")),
    ],
    ids=repr,
)
def test_infos_of_mixed_types_are_kept(values):
    column = columns_of(2, [(row, {"x": value}) for row, value in enumerate(values)])["x"]
    assert all(np.array_equal(got, value) for got, value in zip(column, values, strict=True))


@pytest.mark.parametrize(
    "values",
    [
        (1, 2),
        (0.5, 1.5),
        (True, False),
        (np.int8(1), np.int8(2)),
        (np.zeros(2), np.ones(2)),
        ("a", "b"),
        ({"y": 1}, {"y": 2}),
        (np.array(0.5), 1.5),
        (0.5, np.array(1.5)),
        (np.array(0.5), np.array(1.5)),
    ],
    ids=repr,
)
def test_infos_of_one_type_are_grouped_as_in_gymnasium(values):
    infos = [{"x": value} for value in values]
    theirs = SyncVectorEnv([functools.partial(FunctionEnv, info=lambda env, info=info: info) for info in infos])
    theirs.reset()
    assert repr(columns_of(2, enumerate(infos))) == repr(theirs.step(np.zeros(2, int))[4])


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_mixed_actions_have_the_space_of_the_environment(backend):
    env = make_envs(functools.partial(FunctionEnv, action_space=MIXED), backend)
    env.reset(seed=1)
    assert env.single_action_space == MIXED
    env.action_space.seed(1)
    batch = env.action_space.sample()
    rows = list(gymnasium.vector.utils.iterate(env.action_space, batch))
    env.step(batch)
    env.step(rows)
    for actions, expected in zip(env.get_attr("actions"), rows, strict=True):
        for action in actions:
            assert MIXED.contains(action)
            assert str(action) == str({**expected, "button": int(expected["button"])})
    with pytest.raises(
        APIUsageError, match=r"(?s)to_gymnasium: actions must be a dict or tuple of arrays with 4 rows.*KeyError"
    ):
        env.step({"aim": batch["aim"]})
    env.close()
