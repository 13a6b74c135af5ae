"""Promises of every C environment, whatever the game: a new one is tested by being there."""

import hashlib
import inspect
import json
import pickle
import struct
import weakref
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib import _native, buffers, ocean
from pufferlib.native.source_hash import source_hash
from pufferlib.ocean.types import env_types
from pufferlib.seeding import env_seed

RECORDED = Path(__file__).with_name("trajectories.json")

# The same whatever the seed: nothing in them is left to chance.
WITHOUT_CHANCE = {"multiagent", "password", "stochastic"}
# They show the same from the first step to the last.
CONSTANT = {"bandit", "multiagent", "stochastic"}

every_env = pytest.mark.parametrize("name", ocean.names())


def make(name, num_envs=8, **kwargs):
    env = ocean.OceanEnv(name, num_envs=num_envs, **kwargs)
    env.reset()
    return env


def actions_of(env, rng):
    """Random actions of the joint space, int32 or float32."""
    space = env.single_action_space
    shape = env.actions.shape
    if isinstance(space, gymnasium.spaces.Box):
        return rng.uniform(-1, 1, shape).astype(np.float32)
    sizes = space.n if isinstance(space, gymnasium.spaces.Discrete) else space.nvec
    return rng.integers(0, sizes, shape, dtype=np.int32)


def outcomes(env, num_steps, seed=0, record=None):
    """Hash of everything that ``num_steps`` random steps return; ``record`` sees each step."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256(env.observations.tobytes())
    for _ in range(num_steps):
        *arrays, infos = env.step(actions_of(env, rng))
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        if record is not None:
            record(infos)
    return digest.hexdigest()


# ---- Names and classes ------------------------------------------------------------------------------


def test_the_tables_of_all_environments_together_take_less_than_a_megabyte():
    """Constants and zeroed memory of the library, by its ELF sections; nothing is allocated for tables."""
    file = Path(_native.__file__).read_bytes()
    start, size, count = (struct.unpack_from(kind, file, at)[0] for kind, at in (("Q", 0x28), ("H", 0x3A), ("H", 0x3C)))
    sections = [struct.unpack_from("<IIQQQQ", file, start + i * size) for i in range(count)]
    filled, zeroed, in_memory, code = 1, 8, 2, 4
    data = [s for s in sections if s[1] in (filled, zeroed) and s[2] & (in_memory | code) == in_memory]
    assert 2**16 < sum(bytes_ for *_, bytes_ in data) < 2**20


def test_the_compiled_code_is_that_of_the_sources_beside_it():
    assert _native.source_hash == source_hash(Path(ocean.__file__).parents[1])


def test_the_hash_of_the_sources_changes_with_names_and_contents(tmp_path):
    header = tmp_path / "a.h"
    hashes = {source_hash(tmp_path)}
    for text in ("int a;", "int b;"):
        header.write_text(text)
        hashes.add(source_hash(tmp_path))
    hashes.add(source_hash(header.rename(tmp_path / "b.h").parent))
    (tmp_path / "a.py").write_text("only Python")
    hashes.add(source_hash(tmp_path))
    assert len(hashes) == 4


def test_names_are_those_that_were_built():
    assert {"breakout", "pong", "squared"} <= set(ocean.names())
    assert list(ocean.names()) == sorted(ocean.names())


@every_env
def test_every_way_to_make_it(name):
    class_name = env_types()[name].class_name
    makers = [
        getattr(ocean, class_name),
        ocean.env_creator(name),
        ocean.env_creator(f"puffer_{name}"),
        pufferlib.env_creator(name),
    ]
    for maker in makers:
        env = pickle.loads(pickle.dumps(maker))(num_envs=2)
        assert isinstance(env, ocean.OceanEnv)
        assert (env.name, env.num_envs, env.num_agents % 2) == (name, 2, 0)
        env.close()


@every_env
def test_its_class_says_what_it_takes(name):
    env_class = getattr(ocean, env_types()[name].class_name)
    assert env_class is getattr(ocean, env_class.__name__)
    assert env_class.__name__ in dir(ocean)
    taken = inspect.signature(env_class).parameters
    for parameter in env_types()[name].parameters:
        assert f"{parameter.name}: {parameter.about}" in env_class.__doc__
        assert taken[parameter.name].default == parameter.default
        assert parameter.low <= parameter.default <= parameter.high


@every_env
def test_it_reports_score_and_perf(name):
    assert {"score", "perf"} <= set(env_types()[name].metrics)


def test_an_unknown_name_is_answered_with_the_nearest():
    for call in (ocean.OceanEnv, ocean.env_creator):
        with pytest.raises(pufferlib.UnknownNameError, match="unknown environment 'braekout'; did you mean 'breakout'"):
            call("braekout")
    with pytest.raises(AttributeError, match="no attribute 'Braekout'"):
        _ = ocean.Braekout


# ---- Parameters -------------------------------------------------------------------------------------


def test_an_unknown_keyword_is_answered_with_the_nearest():
    with pytest.raises(
        pufferlib.UnknownNameError, match="Pong: unknown keyword 'frame_skip'; did you mean 'frameskip'"
    ):
        ocean.Pong(frame_skip=4)


@every_env
def test_values_out_of_range_or_of_another_type_are_refused(name):
    for parameter in env_types()[name].parameters:
        wrong = [None, "1", [1], float("nan")]
        if parameter.kind is bool:
            wrong += [1, 0.0]
        else:
            wrong += [True, parameter.high + 1, parameter.low - 1, 10**30]
        if parameter.kind is int:
            wrong += [float(parameter.default)]
        for value in wrong:
            with pytest.raises(pufferlib.APIUsageError, match=f"{parameter.name} must be .*, got"):
                ocean.OceanEnv(name, **{parameter.name: value})


def test_the_extension_itself_refuses_what_would_not_fit():
    for index, num_games, values in [(-1, 1, []), (99, 1, []), (0, 1, [0.0] * 999), (0, 1, []), (0, 0, [0.0] * 14)]:
        with pytest.raises(pufferlib.APIUsageError, match=r"OceanBatch: .*, got"):
            _native.OceanBatch(index, num_games, values, 1)


@every_env
def test_numpy_numbers_are_accepted(name):
    as_numpy = {bool: np.bool_, int: np.int64, float: np.float64}
    values = {p.name: as_numpy[p.kind](p.default) for p in env_types()[name].parameters}
    given, default = ocean.OceanEnv(name, **values), ocean.OceanEnv(name)
    assert given.single_observation_space == default.single_observation_space
    assert np.array_equal(given.reset(seed=1)[0], default.reset(seed=1)[0])
    given.close()
    default.close()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs must be an int from 1 to 2147483647, got 0"),
        ({"num_envs": 2.0}, r"num_envs must be an int from 1 to 2147483647, got 2\.0"),
        ({"num_envs": True}, "num_envs must be an int from 1 to 2147483647, got True"),
        ({"check_actions": 1}, "check_actions must be True or False, got 1"),
        ({"log_interval": 0}, "log_interval must be an int from 1 to 2147483647, got 0"),
        ({"num_envs": 10**12}, "num_envs must be an int from 1 to 2147483647, got 1000000000000"),
        ({"render_mode": "rgb_aray"}, "unknown render_mode 'rgb_aray'; did you mean 'rgb_array'"),
        (
            {"paddle_height": 600, "height": 500},
            "paddle_height must be at most height, got height=500, paddle_height=600$",
        ),
        ({"seed": "one"}, "seed must be an int, got 'one'"),
    ],
)
def test_bad_arguments_raise_a_sentence(kwargs, message):
    with pytest.raises(pufferlib.APIUsageError, match=f"Pong: {message}"):
        ocean.Pong(**kwargs)


# ---- The contract -----------------------------------------------------------------------------------


@every_env
def test_spaces_hold_what_it_returns(name):
    env = make(name)
    space = env.single_observation_space
    rng = np.random.default_rng(1)
    for _ in range(300):
        observations, rewards, terminals, truncations, _ = env.step(actions_of(env, rng))
        assert observations.dtype == space.dtype
        assert observations.shape == (env.num_agents, *space.shape)
        for rows in (observations, env.final_observations):
            assert rows.min() >= space.low.min()
            assert rows.max() <= space.high.max()
        assert rewards.dtype == np.float32
        assert terminals.dtype == truncations.dtype == bool
        assert not (terminals & truncations).any()
        assert env.masks.any()
    env.close()


@every_env
def test_one_seed_one_trajectory(name):
    first, second, other = make(name, seed=7), make(name), make(name, seed=8)
    second.reset(seed=7)
    expected = outcomes(first, 200)
    assert outcomes(second, 200) == expected
    assert (outcomes(other, 200) == expected) == (name in WITHOUT_CHANCE)
    second.reset(seed=7)
    assert outcomes(second, 200) == expected, "a reset with a seed begins anew, whatever came before"


@every_env
def test_a_reset_without_a_seed_goes_on(name):
    first, second = make(name, seed=3), make(name, seed=3)
    assert outcomes(first, 200) == outcomes(second, 200)
    first.reset()
    second.reset()
    assert outcomes(first, 200) == outcomes(second, 200)


@every_env
def test_a_game_does_not_depend_on_the_others(name):
    many, few = make(name, num_envs=5, seed=11), make(name, num_envs=2, seed=11)
    rng = np.random.default_rng(0)
    for _ in range(300):
        actions = actions_of(many, rng)
        rows = len(few.observations)
        for ours, theirs in zip(many.step(actions)[:4], few.step(actions[:rows])[:4], strict=True):
            np.testing.assert_array_equal(ours[:rows], theirs)


@every_env
def test_game_i_is_seeded_with_env_seed_i(name):
    # A batch whose game 0 gets what game 3 of another gets cannot be asked for; so compare the
    # streams through the extension, which takes a seed for each game.
    env, alone = make(name, num_envs=4, seed=5), make(name, num_envs=1)
    alone._batch.reset([env_seed(5, 3)])
    rng = np.random.default_rng(0)
    first = 3 * len(alone.observations)
    for _ in range(300):
        np.testing.assert_array_equal(env.observations[first:], alone.observations)
        actions = actions_of(env, rng)
        env.step(actions)
        alone.step(actions[first:])


@every_env
def test_recorded_trajectory(name):
    """The rules have not changed by accident: 8 games of 500 random steps give the recorded bytes."""
    recorded = json.loads(RECORDED.read_text())
    digest = outcomes(make(name, seed=1234), 500, seed=1)
    if name not in recorded:
        pytest.skip(f"no recording of {name}; add its hash {digest} to {RECORDED.name}")
    assert digest == recorded[name], f"the rules of {name} have changed; if they should, record {digest}"


@every_env
def test_every_finished_episode_is_counted_once(name):
    env = make(name, num_envs=16, log_interval=10)
    players = env.num_agents if env.agents_end else 16  # that have episodes: agents or whole games
    ended, reported, lengths, returns = 0, [], [], []
    length, total = np.zeros(players), np.zeros(players)

    def watch(infos):
        nonlocal ended
        over = (env.terminals | env.truncations).reshape(players, -1).all(axis=1)
        length[:] += 1
        total[:] += env.rewards.reshape(players, -1).mean(axis=1)
        ended += over.sum()
        lengths.extend(length[over])
        returns.extend(total[over])
        length[over] = total[over] = 0
        reported.extend(infos)

    outcomes(env, 5000, record=watch)
    counts = np.array([info["n"] for info in reported])
    assert ended > 0, "5000 random steps finish no episode"
    assert counts.sum() == ended
    assert len(reported) <= 500
    for key, values in (("episode_length", lengths), ("episode_return", returns)):
        means = np.array([info[key] for info in reported])
        np.testing.assert_allclose((means * counts).sum(), sum(values), rtol=1e-4, atol=1e-3)
    for info in reported:
        assert {*env_types()[name].metrics, "episode_return", "episode_length", "n"} == set(info)
        assert 0 <= info["perf"] <= 1


@every_env
def test_the_last_observation_is_kept_and_the_next_episode_begins(name):
    """Same-step reset: where an episode ends, the row is a first observation and the last one is kept."""
    env = make(name, num_envs=1, seed=2)
    rng = np.random.default_rng(0)
    ends, differ = 0, False
    for _ in range(20_000):
        before = env.final_observations.copy()
        env.step(actions_of(env, rng))
        ended = env.terminals | env.truncations
        if not env.agents_end:
            ended[:] = ended.all()
        np.testing.assert_array_equal(env.final_observations[~ended], before[~ended])
        if ended.any():
            ends += 1
            differ = not np.array_equal(env.observations[ended], env.final_observations[ended])
            if differ or ends == 50:
                break
    assert ends, "20 000 random steps finish no episode"
    assert differ == (name not in CONSTANT)


@every_env
def test_async_calls_give_the_same(name):
    ours, theirs = make(name, seed=4), make(name, seed=4)
    ours.async_reset(seed=4)
    assert len(ours.recv()) == 7
    theirs.reset(seed=4)
    actions = actions_of(ours, np.random.default_rng(0))
    ours.send(actions)
    received = ours.recv()
    for one, other in zip(received[:4], theirs.step(actions)[:4], strict=True):
        np.testing.assert_array_equal(one, other)


# ---- Actions ----------------------------------------------------------------------------------------


@every_env
def test_actions_of_any_integer_array_mean_the_same(name):
    forms = [
        lambda a: a,
        lambda a: a.astype(np.int64),
        lambda a: a.astype(np.uint8),
        lambda a: a.astype(np.int64)[::-1].copy()[::-1],
        lambda a: a.tolist(),
        lambda a: a.astype(">i4"),
        lambda a: a.astype(np.uint64),
    ]
    expected = None
    for form in forms:
        env = make(name, seed=1)
        env.step(form(actions_of(env, np.random.default_rng(5))))
        expected = env.actions.copy() if expected is None else expected
        np.testing.assert_array_equal(env.actions, expected)


@every_env
def test_actions_written_in_place_are_taken(name):
    ours, theirs = make(name, seed=1), make(name, seed=1)
    rng = np.random.default_rng(5)
    for _ in range(50):
        ours.actions[:] = actions_of(ours, rng)
        ours.step(ours.actions)
        theirs.step(ours.actions.copy())
        np.testing.assert_array_equal(ours.observations, theirs.observations)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_actions_may_lie_in_the_memory_of_the_buffer(dtype, shift):
    model = ocean.Squared(num_envs=8)
    memory = np.arange(18, dtype=np.int32)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, 8) | {"actions": memory[:8]}
    env = ocean.Squared(num_envs=8, buf=buf)
    env.reset()
    actions = memory[2 * shift :].view(dtype)[:8]
    expected = actions.tolist()
    env.step(actions)
    assert env.actions.tolist() == np.clip(expected, -(2**31), 2**31 - 1).tolist()


def test_numbers_beyond_int32_stay_invalid():
    """2**32 + 1 must not wrap around to the action 1."""
    env = make("squared", num_envs=4)
    env.step(np.array([2**32 + 1, -(2**32) + 1, 2**63 - 1, -(2**63)]))
    assert env.actions.tolist() == [2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
    env.step(np.array([2**63 + 1] * 4, np.uint64))
    assert env.actions.tolist() == [2**31 - 1] * 4


@every_env
def test_wrong_actions_raise_a_sentence_and_change_nothing(name):
    env = make(name, seed=1)
    good = actions_of(env, np.random.default_rng(0))
    before = env.observations.copy()
    dates = good.astype(np.int64).view("M8[s]")  # a type that the buffer protocol does not have
    for wrong in (
        good[:-1],
        np.zeros((*good.shape, 2), int),
        good.astype(complex),
        None,
        "up",
        b"12345678",
        [],
        0,
        [None] * 8,
        dates,
    ):
        with pytest.raises(pufferlib.APIUsageError, match=r"actions must be .* of shape"):
            env.step(wrong)
    for call in (env.step, env.send):
        with pytest.raises(
            pufferlib.APIUsageError, match=rf"\.{call.__name__}: .* a list of rows of one length, got \[\[0\], 1"
        ):
            call([[0], 1])
    np.testing.assert_array_equal(env.observations, before)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "squared",
            [0, 4, 9, -1],
            r"Squared.step: actions must be in the action space Discrete\(5\), got 9 in row 2",
        ),
        ("breakout", np.array([0, 1, 2, 3]), r"in the action space Discrete\(3\), got 3 in row 3; look at the policy"),
    ],
)
def test_actions_out_of_range_are_refused_where_that_is_asked_for(name, wrong, message):
    free, checked = (pufferlib.make(name, num_envs=4, seed=1, check_actions=check) for check in (False, True))
    for env in (free, checked):
        env.reset()
    np.testing.assert_array_equal(free.step([0, 1, 2, 0])[0], checked.step([0, 1, 2, 0])[0])
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.step(wrong)
    free.step(wrong)
    checked.actions[:] = wrong
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.step(checked.actions)
    with pytest.raises(pufferlib.APIUsageError, match=message):
        checked.send(wrong)


def test_floats_are_no_discrete_actions():
    with pytest.raises(pufferlib.APIUsageError, match="actions must be integers of shape \\(8,\\), got dtype float64"):
        make("squared").step(np.zeros(8))


@pytest.mark.parametrize("name", ["breakout", "pong"])
def test_a_box_takes_any_numbers(name):
    env = make(name, num_envs=4, continuous=True)
    assert env.single_action_space == gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    assert env.actions.dtype == np.float32
    for actions in (np.full((4, 1), 2.5), [[1], [0], [-1], [0]], np.full((4, 1), np.nan, np.float32)):
        env.step(actions)
        assert np.isfinite(env.observations).all()


# ---- Buffers and lifetimes --------------------------------------------------------------------------


@every_env
def test_buffers_are_adopted_without_a_copy(name):
    model = ocean.OceanEnv(name, num_envs=3)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, model.num_agents)
    buf["observations"].fill(1)
    env = ocean.OceanEnv(name, num_envs=3, buf=buf)
    observations, _ = env.reset()
    assert observations is buf["observations"]
    np.testing.assert_array_equal(observations, model.reset()[0])
    returned = env.step(actions_of(env, np.random.default_rng(0)))
    for array, key in zip(returned, ("observations", "rewards", "terminals", "truncations"), strict=False):
        assert array is buf[key]


@pytest.mark.parametrize("key", ["observations", "actions", "rewards", "terminals"])
@pytest.mark.parametrize("fault", ["strided", "read-only"])
def test_buffers_that_c_cannot_write_are_refused(key, fault):
    model = ocean.Squared(num_envs=3)
    buf = buffers.allocate(model.single_observation_space, model.single_action_space, 3)
    if fault == "strided":
        buf[key] = np.repeat(buf[key], 2, axis=0)[::2]
    else:
        buf[key].setflags(write=False)
    with pytest.raises(pufferlib.APIUsageError, match=f"{key} must be"):
        ocean.Squared(num_envs=3, buf=buf)


def test_arrays_outlive_the_env_and_the_env_keeps_its_arrays():
    env = make("squared")
    array = weakref.ref(env.rewards)
    env.rewards = None
    assert array() is not None
    observations = env.observations
    copy = observations.copy()
    env.close()
    del env
    np.testing.assert_array_equal(observations, copy)
    assert array() is None


@every_env
def test_calls_at_the_wrong_time_raise_a_sentence(name):
    env = ocean.OceanEnv(name)
    actions = env.actions
    for call in (lambda: env.step(actions), env.render):
        with pytest.raises(pufferlib.APIUsageError, match="no episode has begun; call reset first"):
            call()
    env.reset()
    env.step(actions)
    env.close()
    env.close()
    for call in (lambda: env.step(actions), env.render, env.reset):
        with pytest.raises(pufferlib.APIUsageError, match="the environment is closed; make a new one"):
            call()


def test_code_that_runs_while_actions_are_read_cannot_close_the_env():
    env = make("squared", num_envs=1)

    class Trap:
        def __array__(self, dtype=None, copy=None):
            for call in (env.close, env.reset, lambda: env.step([0])):
                with pytest.raises(pufferlib.APIUsageError, match="another thread is stepping this environment"):
                    call()
            return np.zeros(1, int)

    env.step(Trap())
    env.close()


def test_seeds_may_be_any_int():
    env = make("squared")
    seen = {
        env.reset(seed=seed)[0].tobytes() for seed in (0, 1, -1, 2**63, 2**64, 2**64 - 1, -(2**70) + 3, np.int64(5))
    }
    assert len(seen) == 8
    for wrong in ("a", 1.5, True):
        with pytest.raises(pufferlib.APIUsageError, match=r"Squared\.reset: seed must be an int, got"):
            env.reset(seed=wrong)


# ---- Pictures ---------------------------------------------------------------------------------------


@every_env
def test_pictures_show_the_game(name):
    env = make(name, num_envs=2, render_mode="rgb_array")
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert min(picture.shape[:2]) >= 64
    assert len(np.unique(picture.reshape(-1, 3)[::7], axis=0)) >= 3
    rng = np.random.default_rng(0)
    pictures = {env.step(actions_of(env, rng)) and env.render(1).tobytes() for _ in range(20)}
    assert len(pictures) > 1
    assert np.array_equal(env.render(1), env.render(1))
    assert env.metadata["render_fps"] >= 1


@every_env
def test_pictures_do_not_disturb_the_game(name):
    ours, theirs = make(name, seed=4), make(name, seed=4)
    assert outcomes(ours, 50, record=lambda _: ours.render(3)) == outcomes(theirs, 50)


@pytest.mark.parametrize("index", [-1, 8, 2**40])
def test_a_picture_of_no_game_is_refused(index):
    with pytest.raises(pufferlib.APIUsageError, match="env_index must be at least 0 and below 8"):
        make("squared").render(index)
