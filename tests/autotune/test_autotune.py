"""Tests of autotune: candidates, measurements, the ranking and the cache of results."""

import functools
import json
import math
import multiprocessing
import stat
from dataclasses import asdict
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

import pufferlib
from pufferlib import vector
from pufferlib.autotune import measure
from pufferlib.autotune.measure import ROUNDS, EnvProfile, Trial, run_trials
from pufferlib.autotune.search import TunedConfig, candidates
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import PufferError
from tests.envs import FunctionEnv
from tests.processes import in_fresh_process
from tests.tiers import once

CARTPOLE = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
QUICK = {"batch_size": 2, "max_envs": 4, "time_per_test": 0.02}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return the cache folder of autotune, which is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pufferlib" / "autotune"


@pytest.fixture
def serial_only(monkeypatch):
    """Measure a single configuration without workers, for tests of the cache alone."""
    monkeypatch.setattr(
        "pufferlib.autotune.search.candidates",
        lambda batch_size, *_: [{"backend": "Serial", "num_envs": batch_size}],
    )


def play(creator, config):
    """Make and step the environments of ``config``. Return the number of rows of a batch."""
    envs = vector.make(creator, **config.kwargs)
    try:
        envs.async_reset()
        envs.recv()
        envs.send(envs.action_space.sample())
        return envs.recv()[0].shape[0]
    finally:
        envs.close()


def test_configs_are_ranked_and_accepted_by_make():
    configs = vector.autotune(CARTPOLE, **QUICK)
    rates = [config.steps_per_second for config in configs]
    assert rates == sorted(rates, reverse=True)
    assert {config.kwargs["backend"] for config in configs} == {"Serial", "Multiprocessing"}
    for config in configs:
        assert config.steps_per_second > 0
        assert config.spread >= 0
        assert config.skipped == ""
        assert play(CARTPOLE, config) == QUICK["batch_size"]


CLOCK = SimpleNamespace(now=0.0)


def advance_clock(env):
    """Let a reset take 3 s and a step 1 s. Return an observation."""
    CLOCK.now += 1 if env.count else 3
    return np.zeros(5, np.float32)


def test_profile_env_measures_one_env(monkeypatch):
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: CLOCK.now))
    env_creator = functools.partial(FunctionEnv, Box(-1, 1, (5,)), length=2, observe=advance_clock)
    creator = functools.partial(GymnasiumPufferEnv, env_creator=env_creator)
    profile = measure.profile_env(functools.partial(vector.make, creator, backend="Serial"), 50)
    assert profile.steps_per_second == 1
    assert profile.variation == 0
    assert profile.reset_share == 0.6
    assert (profile.observation_bytes, profile.num_agents, profile.is_native) == (20, 1, False)


class Big(FunctionEnv):
    """Environment with one array of 20 MiB."""

    def __init__(self):
        super().__init__()
        self.memory = np.ones(20 << 20, np.uint8)


class BigInParts(FunctionEnv):
    """Environment with 20 MiB in small arrays. The allocator keeps their memory after they are freed."""

    def __init__(self):
        super().__init__()
        self.memory = [np.ones(64 << 10, np.uint8) for _ in range(320)]


def measured_bytes(environment, pieces=0):
    """Return the measured memory of the environment in bytes, after ``pieces`` arrays of 64 KiB were freed."""
    parts = [np.ones(64 << 10, np.uint8) for _ in range(pieces)]
    del parts[:-1]  # the last one keeps the allocator from returning the rest to the system
    creator = functools.partial(GymnasiumPufferEnv, env_creator=environment)
    return measure.profile_env(functools.partial(vector.make, creator, backend="Serial"), 0.01).ram_bytes


@pytest.mark.parametrize("environment", once([Big, BigInParts], [Big]))
def test_profile_env_measures_memory(environment):
    assert 15 << 20 <= in_fresh_process(measured_bytes, environment) <= 25 << 20


def test_profile_env_ignores_previously_freed_memory():
    assert 15 << 20 <= in_fresh_process(measured_bytes, BigInParts, 1600) <= 25 << 20


def test_native_env_is_tried_as_one_batch():
    creator = pufferlib.env_creator("squared")
    configs = vector.autotune(creator, **QUICK, env_kwargs={"num_envs": 3, "log_interval": 5})
    natives = [config.kwargs["env_kwargs"] for config in configs if config.kwargs["backend"] == "native"]
    assert {"num_envs": 6, "log_interval": 5} in natives
    assert configs[0].profile.is_native
    assert {play(creator, config) for config in configs} == {6}


@pytest.mark.parametrize("cpus", [1, 2, 3, 6, 64])
@pytest.mark.parametrize(("batch_size", "max_envs"), [(1, 1), (1, 8), (2, 3), (12, 40), (7, 194), (128, 256)])
def test_candidates_are_valid_and_unique(batch_size, max_envs, cpus):
    plans = candidates(batch_size, max_envs, cpus, games=2, has_threads=True)
    assert all(plan not in plans[:index] for index, plan in enumerate(plans))
    assert {"backend": "Serial", "num_envs": batch_size} in plans
    assert {"backend": "native", "num_envs": 1, "env_kwargs": {"num_envs": 2 * batch_size}} in plans
    for plan in plans:
        if plan["backend"] == "Multiprocessing":
            num_envs, workers = plan["num_envs"], plan["num_workers"]
            assert num_envs <= max_envs
            assert workers <= cpus
            assert num_envs % workers == 0
            assert plan["batch_size"] == batch_size
            assert batch_size % (num_envs // workers) == 0
            assert not plan["zero_copy"] or num_envs % batch_size == 0


def test_candidates_include_all_multiprocessing_layouts():
    plans = [plan for plan in candidates(4, 16, 4) if plan["backend"] == "Multiprocessing"]
    ways = {(plan["num_envs"], plan["num_workers"], plan["zero_copy"]) for plan in plans}
    assert {(4, 4, True), (4, 2, True), (4, 1, True)} <= ways  # all workers in one batch
    assert {(8, 4, True), (16, 4, True)} <= ways  # blocks of two workers, and of one
    assert {(8, 4, False), (16, 4, False)} <= ways  # the first to finish


def test_candidates_of_native_env_include_threads():
    plans = [plan["env_kwargs"] for plan in candidates(4, 16, 16, 1, True) if plan["backend"] == "native"]
    assert [plan.get("num_threads", 1) for plan in plans] == [4, 2, 1]


class FakeVec:
    """Vector environment that records the order of steps. Only "a" and "b" may be open at the same time."""

    open_now = 0
    order: list[str] = []  # noqa: RUF012

    def __init__(self, name):
        FakeVec.open_now += 1
        assert FakeVec.open_now < 2 or name in "ab"
        self.name = name
        self.num_agents = self.agents_per_batch = 1
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.emulated, self.action_mask = False, None

    def async_reset(self):
        pass

    def recv(self):
        return (None,)

    def send(self, actions):
        if FakeVec.order[-1:] != [self.name]:
            FakeVec.order.append(self.name)

    def close(self):
        FakeVec.open_now -= 1


def test_trials_alternate_within_memory_limit():
    trials = [
        Trial(functools.partial(FakeVec, name), num_envs) for name, num_envs in zip("abcd", (1, 1, 2, 3), strict=True)
    ]
    shares = []
    run_trials(trials, 0.001, 0.0, env_bytes=10, max_bytes=25, progress=lambda share, text: shares.append(share))
    assert "".join(FakeVec.order) == "ab" * ROUNDS + "c"
    assert FakeVec.open_now == 0
    assert [len(trial.rates) for trial in trials] == [ROUNDS, ROUNDS, ROUNDS, 0]
    assert "max_env_ram_gb" in trials[3].skipped
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1


def test_results_are_cached_until_refresh(cache, serial_only):
    calls = []
    tune = functools.partial(vector.autotune, CARTPOLE, **QUICK, progress=lambda *call: calls.append(call))
    first = tune()
    assert calls[0] == (0.0, "one environment alone")
    calls.clear()
    assert tune() == first
    assert not calls
    (file,) = cache.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    tune(refresh=True)
    assert calls


def test_cache_key_includes_arguments(cache, serial_only):
    creator = pufferlib.env_creator("squared")
    for kwargs in ({}, {"num_envs": 2}):
        vector.autotune(creator, **QUICK, env_kwargs=kwargs)
    vector.autotune(creator, **{**QUICK, "max_envs": 3})
    assert len(list(cache.iterdir())) == 3


def test_damaged_cache_file_is_replaced(cache, serial_only):
    first = vector.autotune(CARTPOLE, **QUICK)
    (file,) = cache.iterdir()
    for content in ("", "[]", "{}", "\0", '{"key": 1, "configs": [{}]}'):
        file.write_text(content)
        assert vector.tuned(CARTPOLE) is None
    assert len(vector.autotune(CARTPOLE, **QUICK)) == len(first)
    assert json.loads(file.read_text())["configs"]


def test_cached_result_of_another_version_is_replaced(cache, serial_only):
    vector.autotune(CARTPOLE, **QUICK)
    (file,) = cache.iterdir()
    content = json.loads(file.read_text())
    content["configs"][0]["unknown_key"] = 1
    file.write_text(json.dumps(content))
    vector.autotune(CARTPOLE, **QUICK)
    assert "unknown_key" not in file.read_text()


def test_lambda_creator_is_not_cached(cache, serial_only):
    vector.autotune(lambda buf: CARTPOLE(buf=buf), **QUICK)
    assert not cache.exists()


def test_unwritable_cache_folder_is_ignored(tmp_path, monkeypatch, serial_only):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert vector.autotune(CARTPOLE, **QUICK)


class NoWorkerEnv(FunctionEnv):
    """Environment that cannot be reset in a worker process."""

    def reset(self, *, seed=None, options=None):
        if multiprocessing.parent_process():
            raise RuntimeError("not in a worker")
        return super().reset(seed=seed)


def make_no_worker_env(buf=None):
    return GymnasiumPufferEnv(NoWorkerEnv(), buf=buf)


def test_failing_config_is_skipped_with_reason():
    configs = vector.autotune(make_no_worker_env, **QUICK)
    assert configs[0].kwargs["backend"] == "Serial"
    assert not configs[0].skipped
    for config in configs[1:]:
        assert config.steps_per_second == 0
        assert "not in a worker" in config.skipped


class LimitedEnv(FunctionEnv):
    """Environment of which only two may exist in a process, as with a license."""

    alive = 0

    def __init__(self):
        if LimitedEnv.alive == 2:
            raise RuntimeError("all licenses are taken")
        super().__init__()
        LimitedEnv.alive += 1

    def close(self):
        LimitedEnv.alive -= 1


def make_limited_env(buf=None):
    return GymnasiumPufferEnv(LimitedEnv(), buf=buf)


def test_exception_in_every_config_raises():
    with pytest.raises(PufferError, match=r"at most 8 environments; the first: RuntimeError: all licenses"):
        vector.autotune(make_limited_env, **{**QUICK, "batch_size": 8, "max_envs": 8})
    LimitedEnv.alive = 0


@pytest.mark.parametrize("text", once(["round 1", "round 3"], ["round 3"]))
def test_ctrl_c_stops_all_workers(text, cache):
    def interrupt(share, what):
        if what.startswith(text) and multiprocessing.active_children():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vector.autotune(CARTPOLE, **QUICK, progress=interrupt)
    assert not multiprocessing.active_children()
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"batch_size": None}, "batch_size must be an int, got None"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": 5}, "max_envs must be at least 5, got 4"),
        ({"max_env_ram_gb": math.nan}, "max_batch_vram_gb above 0, in GiB, got nan and 0.05; math.inf is no limit"),
        ({"time_per_test": 0}, "got 0.0 and 0;"),
        ({"model_forward_s": -1}, "got -1 and 0.02;"),
        ({"max_batch_vram_gb": 1e-9}, "got 2.98e-08 GiB with batch_size=2; raise the limit"),
        ({"max_batch_vram_gb": 16 / 2**30}, "try batch_size=1, or raise the limit"),
        ({"env_creator": [CARTPOLE]}, "env_creator must be one class or function"),
    ],
)
def test_invalid_argument_raises(arguments, sentence):
    with pytest.raises(pufferlib.APIUsageError, match=r"^vector\.autotune: ") as caught:
        vector.autotune(**{"env_creator": CARTPOLE, **QUICK, **arguments})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ({("Multiprocessing", 32): 1000, ("Serial", 4): 750, ("Multiprocessing", 8): 900}, ("Serial", 4)),
        ({("Multiprocessing", 32): 1000, ("Serial", 4): 650, ("Multiprocessing", 8): 900}, ("Multiprocessing", 8)),
        ({("Multiprocessing", 32): 1000, ("Serial", 4): 650}, ("Multiprocessing", 32)),
        ({("Multiprocessing", 32): 1000, ("native", 1): 750, ("Serial", 4): 900}, ("native", 1)),
    ],
)
def test_tuned_for_training_has_fewest_environments_of_fast_configurations(monkeypatch, speeds, expected):
    profile = EnvProfile(1000, 0, 0, 1, 1, 1, False)
    rows = [
        TunedConfig({"backend": backend, "num_envs": num_envs}, speed, 0, "", profile)
        for (backend, num_envs), speed in sorted(speeds.items(), key=lambda row: -row[1])
    ]
    skipped = TunedConfig({"backend": "Serial", "num_envs": 1}, 0, 0, "no memory", profile)
    monkeypatch.setattr("pufferlib.autotune.search.newest_rows", lambda *_: [asdict(row) for row in [*rows, skipped]])
    best = vector.tuned(CARTPOLE, for_training=True)
    assert (best.kwargs["backend"], best.kwargs["num_envs"]) == expected
    assert vector.tuned(CARTPOLE) == rows[0]


def test_tuned_returns_latest_result(cache, serial_only):
    assert vector.tuned(CARTPOLE) is None
    vector.autotune(CARTPOLE, **QUICK)
    last = vector.autotune(CARTPOLE, **{**QUICK, "batch_size": 4})
    assert vector.tuned(CARTPOLE).kwargs == last[0].kwargs
    assert vector.tuned(CARTPOLE, env_kwargs={"num_envs": 7}).kwargs == last[0].kwargs, (
        "sizes are part of the result, not of the key"
    )
    assert vector.tuned(CARTPOLE, env_kwargs={"max_length": 7}) is None
