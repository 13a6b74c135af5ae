"""Promises of every C environment, whatever the game: a new one is tested by being there."""

import inspect
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.native.source_hash import source_hash
from pufferlib.ocean import _ocean
from pufferlib.ocean.types import env_types
from pufferlib.seeding import env_seed
from tests.ocean.games import actions_of, every_env, make, outcomes

RECORDED = Path(__file__).with_name("trajectories.json")

# The same whatever the seed: nothing in them is left to chance.
WITHOUT_CHANCE = {"multiagent", "password", "stochastic"}
# They show the same from the first step to the last.
CONSTANT = {"bandit", "multiagent", "stochastic"}


# ---- Names and classes ------------------------------------------------------------------------------


def test_what_a_c_file_of_one_s_own_needs_is_installed():
    from pufferlib.native.compiler import HEADERS
    from pufferlib.ocean import fuzz, template

    headers = (
        "puffer_env.h",
        "puffer_batch.h",
        "puffer_draw.h",
        "puffer_font.h",
        "puffer_numpy.h",
        "puffer_pixels.h",
        "puffer_shrink.h",
    )
    needed = [*(HEADERS / name for name in headers), fuzz.PROGRAM, *template.TEMPLATE.glob("*")]
    assert [path.name for path in needed if not path.is_file()] == []
    assert {path.name for path in template.TEMPLATE.iterdir()} == {"template.c", "train.toml"}


def test_the_tables_of_all_environments_together_take_less_than_a_megabyte():
    """Constants and zeroed memory of the library, by its ELF sections; nothing is allocated for tables."""
    file = Path(_ocean.__file__).read_bytes()
    start, size, count = (struct.unpack_from(kind, file, at)[0] for kind, at in (("Q", 0x28), ("H", 0x3A), ("H", 0x3C)))
    sections = [struct.unpack_from("<IIQQQQ", file, start + i * size) for i in range(count)]
    filled, zeroed, in_memory, code = 1, 8, 2, 4
    data = [s for s in sections if s[1] in (filled, zeroed) and s[2] & (in_memory | code) == in_memory]
    assert 2**16 < sum(bytes_ for *_, bytes_ in data) < 2**20


def test_the_compiled_code_is_that_of_the_sources_beside_it():
    assert _ocean.source_hash == source_hash(Path(ocean.__file__).parents[1])


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
    env, alone = make(name, num_envs=4, seed=5), make(name, num_envs=1)
    alone.reset(seed=env_seed(5, 3))  # game 0 has the seed itself
    rng = np.random.default_rng(0)
    first = 3 * len(alone.observations)
    for _ in range(300):
        np.testing.assert_array_equal(env.observations[first:], alone.observations)
        actions = actions_of(env, rng)
        env.step(actions)
        alone.step(actions[first:])


@every_env
def test_some_games_are_reset_and_the_others_go_on(name):
    env, untouched, fresh = make(name, num_envs=3, seed=5), make(name, num_envs=3, seed=5), make(name, num_envs=1)
    rng = np.random.default_rng(0)
    for _ in range(50):
        actions = actions_of(env, rng)
        env.step(actions)
        untouched.step(actions)
    agents = len(fresh.observations)
    mine = np.zeros(3 * agents, bool)
    mine[agents : 2 * agents] = True
    env.reset(seed=[8], env_ids=[1])
    fresh.reset(seed=8)
    for _ in range(50):
        for name_ in ("observations", "rewards", "terminals", "truncations", "masks"):
            np.testing.assert_array_equal(getattr(env, name_)[mine], getattr(fresh, name_), name_)
            np.testing.assert_array_equal(getattr(env, name_)[~mine], getattr(untouched, name_)[~mine], name_)
        actions = actions_of(env, rng)
        env.step(actions)
        untouched.step(actions)
        fresh.step(actions[mine])


def test_games_that_are_reset_keep_what_their_episodes_reported_and_must_be_there():
    env = ocean.OceanEnv("bandit", num_envs=2, log_interval=4, autoreset="disabled")
    with pytest.raises(pufferlib.APIUsageError, match=r"Bandit\.reset: no episode has begun; call reset first"):
        env.reset(env_ids=[0])
    env.reset()
    with pytest.raises(pufferlib.APIUsageError, match="env_ids must name environments 0 to 1, each once, got"):
        env.reset(env_ids=[2])
    reported = []
    for _ in range(4):
        reported += env.step([0, 0])[4]
        env.reset(env_ids=env.terminals | env.truncations)
    assert [info["n"] for info in reported] == [8]


@every_env
def test_recorded_trajectory(name):
    """The rules have not changed by accident: 8 games of 500 random steps give the recorded bytes."""
    recorded = json.loads(RECORDED.read_text())
    digest = outcomes(make(name, seed=1234), 500, seed=1)
    assert name in recorded, f"no recording of {name}; add its hash {digest} to {RECORDED.name}"
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


def test_pending_infos_reports_before_log_interval_and_only_once():
    env = make("squared", num_envs=16, log_interval=10**6, size=3)
    reported = []
    outcomes(env, 100, record=reported.extend)
    assert reported == []
    (info,) = env.pending_infos()
    assert info["n"] > 16
    assert env.pending_infos() == []


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
