"""autotune: every valid way is measured in turns, ranked, kept for the next time; nothing stays behind."""

import functools
import json
import multiprocessing
import stat
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import pufferlib
from pufferlib import vector
from pufferlib.autotune import measure
from pufferlib.autotune.measure import ROUNDS, Trial, run_trials
from pufferlib.autotune.search import candidates
from pufferlib.emulation import GymnasiumPufferEnv
from tests.processes import in_fresh_process

CARTPOLE = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
QUICK = {"batch_size": 2, "max_envs": 4, "time_per_test": 0.02}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pufferlib" / "autotune"


def played(creator, config):
    """Check that the configuration, as it was returned, makes environments that can be stepped."""
    envs = vector.make(creator, **config.kwargs)
    try:
        envs.async_reset()
        envs.recv()
        envs.send(envs.action_space.sample())
        return envs.recv()[0].shape[0]
    finally:
        envs.close()


def test_configurations_are_ranked_and_unpack_into_make():
    configs = vector.autotune(CARTPOLE, **QUICK)
    rates = [config.steps_per_second for config in configs]
    assert rates == sorted(rates, reverse=True)
    assert {config.kwargs["backend"] for config in configs} == {"Serial", "Multiprocessing"}
    for config in configs:
        assert config.steps_per_second > 0
        assert config.spread >= 0
        assert config.skipped == ""
        assert played(CARTPOLE, config) == QUICK["batch_size"]


class Still(gymnasium.Env):
    """Shows zeros."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, {}


class InNoWorker(Still):
    """Refuses to live in a worker."""

    def reset(self, *, seed=None, options=None):
        if multiprocessing.parent_process():
            raise RuntimeError("I stay at home")
        return super().reset()


class Clocked(gymnasium.Env):
    """Makes a clock go on by 1 s in a step and by 3 s in a reset; every other step ends an episode."""

    observation_space = gymnasium.spaces.Box(-1, 1, (5,))
    action_space = gymnasium.spaces.Discrete(2)
    clock = 0.0

    def reset(self, *, seed=None, options=None):
        Clocked.clock += 3
        self.age = 0
        return np.zeros(5, np.float32), {}

    def step(self, action):
        Clocked.clock += 1
        self.age += 1
        return np.zeros(5, np.float32), 0.0, self.age == 2, False, {}


def test_the_environment_alone_is_described(monkeypatch):
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: Clocked.clock))
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Clocked)
    profile = measure.profile_env(functools.partial(vector.make, creator, backend="Serial"), 50)
    assert profile.steps_per_second == 1
    assert profile.variation == 0
    assert profile.reset_share == 0.6
    assert (profile.observation_bytes, profile.num_agents, profile.is_native) == (20, 1, False)


class Big(Still):
    """Takes 20 MiB."""

    def __init__(self):
        self.memory = np.ones(20 << 20, np.uint8)


class BigInParts(Still):
    """Takes 20 MiB, in parts that the allocator keeps when they are free."""

    def __init__(self):
        self.memory = [np.ones(64 << 10, np.uint8) for _ in range(320)]


def bytes_of(environment, pieces=0):
    """Bytes of the environment, beside ``pieces`` of memory that were freed before."""
    parts = [np.ones(64 << 10, np.uint8) for _ in range(pieces)]
    del parts[:-1]  # the last one keeps the allocator from giving the rest back by itself
    creator = functools.partial(GymnasiumPufferEnv, env_creator=environment)
    return measure.profile_env(functools.partial(vector.make, creator, backend="Serial"), 0.01).ram_bytes


@pytest.mark.parametrize("environment", [Big, BigInParts])
def test_the_memory_of_an_environment_is_measured(environment):
    assert 15 << 20 <= in_fresh_process(bytes_of, environment) <= 25 << 20


def test_memory_that_was_freed_before_is_not_taken_off_it():
    assert 15 << 20 <= in_fresh_process(bytes_of, BigInParts, 1600) <= 25 << 20


def test_a_native_environment_is_tried_as_one_batch():
    creator = pufferlib.env_creator("squared")
    configs = vector.autotune(creator, **QUICK, env_kwargs={"num_envs": 3, "log_interval": 5})
    natives = [config.kwargs["env_kwargs"] for config in configs if config.kwargs["backend"] == "native"]
    assert {"num_envs": 6, "log_interval": 5} in natives
    assert configs[0].profile.is_native
    assert {played(creator, config) for config in configs} == {6}


@pytest.mark.parametrize("cpus", [1, 2, 3, 6, 64])
@pytest.mark.parametrize(("batch_size", "max_envs"), [(1, 1), (1, 8), (2, 3), (12, 40), (7, 194), (128, 256)])
def test_every_candidate_is_valid_and_none_comes_twice(batch_size, max_envs, cpus):
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


def test_all_ways_of_several_processes_are_candidates():
    plans = [plan for plan in candidates(4, 16, 4) if plan["backend"] == "Multiprocessing"]
    ways = {(plan["num_envs"], plan["num_workers"], plan["zero_copy"]) for plan in plans}
    assert {(4, 4, True), (4, 2, True), (4, 1, True)} <= ways  # all workers in one batch
    assert {(8, 4, True), (16, 4, True)} <= ways  # blocks of two workers, and of one
    assert {(8, 4, False), (16, 4, False)} <= ways  # the first to finish


def test_a_native_environment_is_tried_with_several_threads():
    plans = [plan["env_kwargs"] for plan in candidates(4, 16, 16, 1, True) if plan["backend"] == "native"]
    assert [plan.get("num_threads", 1) for plan in plans] == [4, 2, 1]


class FakeVec:
    """A vector environment that notes when it is stepped; fewer than two may be open at a time."""

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


def test_trials_take_turns_within_the_memory_that_is_allowed():
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


def test_results_are_kept_until_they_are_to_be_refreshed(cache):
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


def test_other_arguments_are_measured_for_themselves(cache):
    creator = pufferlib.env_creator("squared")
    for kwargs in ({}, {"num_envs": 2}, {"num_envs": 2, "log_interval": 7}):
        vector.autotune(creator, **QUICK, env_kwargs=kwargs)
    vector.autotune(creator, **{**QUICK, "max_envs": 3})
    assert len(list(cache.iterdir())) == 4


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"key": 1, "configs": [{}]}', "\0"])
def test_a_damaged_file_is_measured_again(cache, content):
    first = vector.autotune(CARTPOLE, **QUICK)
    (file,) = cache.iterdir()
    file.write_text(content)
    assert len(vector.autotune(CARTPOLE, **QUICK)) == len(first)
    assert json.loads(file.read_text())["configs"]


def test_a_result_of_another_version_is_measured_again(cache):
    vector.autotune(CARTPOLE, **QUICK)
    (file,) = cache.iterdir()
    content = json.loads(file.read_text())
    content["configs"][0]["unheard_of"] = 1
    file.write_text(json.dumps(content))
    vector.autotune(CARTPOLE, **QUICK)
    assert "unheard_of" not in file.read_text()


def test_what_has_no_name_is_not_kept(cache):
    vector.autotune(lambda buf: CARTPOLE(buf=buf), **QUICK)
    assert not cache.exists()


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert vector.autotune(CARTPOLE, **QUICK)


def homebody(buf=None):
    return GymnasiumPufferEnv(InNoWorker(), buf=buf)


def test_a_configuration_that_fails_is_skipped_with_the_reason():
    configs = vector.autotune(homebody, **QUICK)
    assert configs[0].kwargs["backend"] == "Serial"
    assert not configs[0].skipped
    for config in configs[1:]:
        assert config.steps_per_second == 0
        assert "I stay at home" in config.skipped


@pytest.mark.parametrize("text", ["round 1", "round 3"])
def test_ctrl_c_leaves_no_worker_behind(text, cache):
    def press(share, what):
        if what.startswith(text) and multiprocessing.active_children():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vector.autotune(CARTPOLE, **QUICK, progress=press)
    assert not multiprocessing.active_children()
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"batch_size": None}, "batch_size must be an int, got None"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": 5}, "max_envs must be at least 5, got 4"),
        ({"time_per_test": 0}, "got 0.0 and 0;"),
        ({"model_forward_s": -1}, "got -1 and 0.02;"),
        ({"max_batch_vram_gb": 1e-9}, "got 2.98e-08 GiB with batch_size=2; raise the limit"),
        ({"max_batch_vram_gb": 16 / 2**30}, "try batch_size=1, or raise the limit"),
        ({"env_creator": [CARTPOLE]}, "env_creator must be one class or function"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(pufferlib.APIUsageError, match=r"^vector\.autotune: ") as caught:
        vector.autotune(**{"env_creator": CARTPOLE, **QUICK, **arguments})
    assert sentence in str(caught.value)


def test_the_last_answer_is_known_whatever_was_asked(cache):
    assert vector.tuned(CARTPOLE) is None
    vector.autotune(CARTPOLE, **QUICK)
    last = vector.autotune(CARTPOLE, **{**QUICK, "batch_size": 4})
    assert vector.tuned(CARTPOLE).kwargs == last[0].kwargs
    assert vector.tuned(CARTPOLE, env_kwargs={"num_envs": 7}).kwargs == last[0].kwargs, "sizes are what it answers"
    assert vector.tuned(CARTPOLE, env_kwargs={"max_length": 7}) is None
