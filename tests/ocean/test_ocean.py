"""Tests of all C environments, including new ones without further code."""

import inspect
import json
import pickle
import struct
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.native.source_hash import source_hash
from pufferlib.ocean import _ocean
from pufferlib.ocean.types import env_types
from pufferlib.seeding import env_seed
from tests.ocean.helpers import actions_of, every_env, make, outcomes, some_envs
from tests.tiers import once

RECORDED = Path(__file__).with_name("trajectories.json")

# Environments on which the seed has no effect.
DETERMINISTIC = {"cliff_walking", "minigrid", "multiagent", "password", "stochastic"}
# Environments whose observations never change.
CONSTANT = {"bandit", "multiagent", "stochastic"}


# ---- Names and classes ------------------------------------------------------------------------------


def test_headers_and_templates_are_installed():
    from pufferlib.native.compiler import HEADERS
    from pufferlib.ocean import files, fuzz

    headers = (
        "puffer_env.h",
        "puffer_batch.h",
        "puffer_draw.h",
        "puffer_font.h",
        "puffer_numpy.h",
        "puffer_pixels.h",
        "puffer_shrink.h",
    )
    templates = [folder / name for folder in files.TEMPLATES.values() for name in ("template.c", "train.toml")]
    needed = [*(HEADERS / name for name in headers), fuzz.PROGRAM, HEADERS / "puffer_page.c", *templates]
    assert [path.name for path in needed if not path.is_file()] == []


def test_library_has_less_than_a_megabyte_of_data():
    """The size is read from the ELF sections of constants and of zeroed memory."""
    file = Path(_ocean.__file__).read_bytes()
    start, size, count = (struct.unpack_from(kind, file, at)[0] for kind, at in (("Q", 0x28), ("H", 0x3A), ("H", 0x3C)))
    sections = [struct.unpack_from("<IIQQQQ", file, start + i * size) for i in range(count)]
    filled, zeroed, in_memory, code = 1, 8, 2, 4
    data = [s for s in sections if s[1] in (filled, zeroed) and s[2] & (in_memory | code) == in_memory]
    assert 2**16 < sum(bytes_ for *_, bytes_ in data) < 2**20


def test_compiled_code_matches_the_sources():
    assert _ocean.source_hash == source_hash(Path(ocean.__file__).parents[1])


def test_source_hash_depends_on_names_and_contents(tmp_path):
    header = tmp_path / "a.h"
    hashes = {source_hash(tmp_path)}
    for text in ("int a;", "int b;"):
        header.write_text(text)
        hashes.add(source_hash(tmp_path))
    hashes.add(source_hash(header.rename(tmp_path / "b.h").parent))
    (tmp_path / "a.py").write_text("only Python")
    hashes.add(source_hash(tmp_path))
    assert len(hashes) == 4


def test_names_are_sorted():
    assert {"breakout", "pong", "squared"} <= set(ocean.names())
    assert list(ocean.names()) == sorted(ocean.names())
    assert get_args(ocean.OceanName) == ocean.names(), "add the name to OceanName"


@every_env
def test_classes_and_creators_make_the_environment(name):
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
def test_class_documents_its_parameters(name):
    env_class = getattr(ocean, env_types()[name].class_name)
    assert env_class is getattr(ocean, env_class.__name__)
    assert env_class.__name__ in dir(ocean)
    taken = inspect.signature(env_class).parameters
    for parameter in env_types()[name].parameters:
        assert f"{parameter.name}: {parameter.about}" in env_class.__doc__
        assert taken[parameter.name].default == parameter.default
        assert parameter.kind is str or parameter.low <= parameter.default <= parameter.high


@every_env
def test_metrics_include_score_and_perf(name):
    assert {"score", "perf"} <= set(env_types()[name].metrics)


def test_unknown_name_suggests_another():
    for call in (ocean.OceanEnv, ocean.env_creator):
        with pytest.raises(pufferlib.UnknownNameError, match="unknown environment 'braekout'; did you mean 'breakout'"):
            call("braekout")
    with pytest.raises(AttributeError, match="no attribute 'Braekout'"):
        _ = ocean.Braekout


# ---- The contract -----------------------------------------------------------------------------------


@every_env
def test_returned_values_fit_the_spaces(name):
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
def test_seed_reproduces_the_trajectory(name):
    first, second, other = make(name, seed=7), make(name), make(name, seed=8)
    second.reset(seed=7)
    expected = outcomes(first, 200)
    assert outcomes(second, 200) == expected
    assert (outcomes(other, 200) == expected) == (name in DETERMINISTIC)
    second.reset(seed=7)
    assert outcomes(second, 200) == expected, "a reset with a seed must not depend on earlier steps"


@every_env
def test_reset_without_seed_continues_the_generator(name):
    first, second = make(name, seed=3), make(name, seed=3)
    assert outcomes(first, 200) == outcomes(second, 200)
    first.reset()
    second.reset()
    assert outcomes(first, 200) == outcomes(second, 200)


@every_env
def test_environments_of_a_batch_are_independent(name):
    many, few = make(name, num_envs=5, seed=11), make(name, num_envs=2, seed=11)
    rng = np.random.default_rng(0)
    for _ in range(300):
        actions = actions_of(many, rng)
        rows = len(few.observations)
        for ours, theirs in zip(many.step(actions)[:4], few.step(actions[:rows])[:4], strict=True):
            np.testing.assert_array_equal(ours[:rows], theirs)


@every_env
def test_environments_are_seeded_with_env_seed(name):
    env, alone = make(name, num_envs=4, seed=5), make(name, num_envs=1)
    alone.reset(seed=env_seed(5, 3))  # environment 0 has the seed itself
    rng = np.random.default_rng(0)
    first = 3 * len(alone.observations)
    for _ in range(300):
        np.testing.assert_array_equal(env.observations[first:], alone.observations)
        actions = actions_of(env, rng)
        env.step(actions)
        alone.step(actions[first:])


@every_env
def test_partial_reset_leaves_other_environments_unchanged(name):
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


def test_partial_reset_keeps_statistics_and_checks_env_ids():
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
def test_trajectory_equals_the_recorded_one(name):
    """8 environments with 500 random steps give the recorded bytes, so that rules do not change by accident."""
    recorded = json.loads(RECORDED.read_text())
    digest = outcomes(make(name, seed=1234), 500, seed=1)
    assert name in recorded, f"no recording of {name}; add its hash {digest} to {RECORDED.name}"
    assert digest == recorded[name], f"the rules of {name} have changed; if they should, record {digest}"


@pytest.mark.parametrize("name", once(ocean.names(), {*ocean.names()} - {"nmmo3", "moba"}))
def test_every_finished_episode_is_reported_once(name):
    env = make(name, num_envs=16, log_interval=10)
    players = env.num_agents if env.agents_end else 16  # rows with their own episodes: agents or environments
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

    steps = 0
    while steps < 5000 and (steps < 1000 or ended < 30):
        outcomes(env, 500, seed=steps, record=watch)
        steps += 500
    counts = np.array([info["n"] for info in reported])
    assert ended > 0, "5000 random steps finish no episode"
    assert counts.sum() == ended
    assert len(reported) <= steps // 10
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
def test_same_step_autoreset_keeps_final_observations(name):
    """At the end of an episode, ``observations`` has the first one of the next episode."""
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
            if differ or ends == 20:
                break
    assert ends, "20 000 random steps finish no episode"
    assert differ == (name not in CONSTANT)


@every_env
def test_async_calls_give_the_same_results(name):
    ours, theirs = make(name, seed=4), make(name, seed=4)
    ours.async_reset(seed=4)
    assert len(ours.recv()) == 7
    theirs.reset(seed=4)
    actions = actions_of(ours, np.random.default_rng(0))
    ours.send(actions)
    received = ours.recv()
    for one, other in zip(received[:4], theirs.step(actions)[:4], strict=True):
        np.testing.assert_array_equal(one, other)


# ---- Images -----------------------------------------------------------------------------------------


@every_env
def test_render_returns_images_that_change(name):
    env = make(name, num_envs=2, render_mode="rgb_array")
    image = env.render()
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert min(image.shape[:2]) >= 64
    assert len(np.unique(image.reshape(-1, 3)[::7], axis=0)) >= 3
    rng = np.random.default_rng(0)
    images = {env.step(actions_of(env, rng)) and env.render(1).tobytes() for _ in range(20)}
    assert len(images) > 1
    assert np.array_equal(env.render(1), env.render(1))
    assert env.metadata["render_fps"] >= 1


@some_envs
def test_render_does_not_change_the_trajectory(name):
    ours, theirs = make(name, seed=4), make(name, seed=4)
    assert outcomes(ours, 50, record=lambda _: ours.render(3)) == outcomes(theirs, 50)


@pytest.mark.parametrize("index", [-1, 8, 2**40])
def test_render_refuses_wrong_env_index(index):
    with pytest.raises(pufferlib.APIUsageError, match="env_index must be at least 0 and below 8"):
        make("squared").render(index)
