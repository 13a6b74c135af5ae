import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
import resource
import signal
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import cloudpickle
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from torch.nn.utils import parameters_to_vector

import pufferlib
from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import make_policy
from pufferlib.registry.outside import REGISTERED
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.runs.resume import settings_of
from pufferlib.runs.seeds import SeedGroup
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.training import build, ppo
from pufferlib.training.build import build_policy, build_vecenv, fit_to_agents, make_vecenv
from pufferlib.training.callbacks import Callback
from pufferlib.training.loggers import JsonlLogger
from pufferlib.training.trainer import Trainer
from pufferlib.wrappers import EpisodeStats
from tests.envs import FunctionEnv, IteratingEnv, ScriptedParallelEnv, TargetEnv, alive
from tests.loggers import ListLogger
from tests.tiers import once

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest and torch

SMALL = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 2048,
    "train.horizon": 16,
    "train.minibatch_size": 128,
    "train.update_epochs": 2,
    "train.optimizer": "adam",
    "train.learning_rate": 2e-3,
    "train.gamma": 0.98,
    "train.reward_scale": 0.3,
    "train.reward_clip": 0.0,
    "policy.hidden_size": 16,
}


@pytest.fixture
def make_trainer(target_env, tmp_path):
    def make(overrides=None, loggers=(), env=None, run_dir=tmp_path, **others):
        config = load_config("breakout", {**SMALL, **(overrides or {})})
        return Trainer(config, run_dir, loggers, vecenv=env or target_env(8), **others)

    return make


def weights(trainer):
    return torch.cat([parameter.detach().flatten() for parameter in trainer.policy.parameters()])


def test_train_logs_saves_and_closes(make_trainer, tmp_path):
    recorder = ListLogger()
    trainer = make_trainer(loggers=[recorder, JsonlLogger(tmp_path / "metrics.jsonl")])
    trainer.train()
    assert trainer.agent_steps == 2048
    assert trainer.updates == len(recorder) == 16
    assert trainer.checkpoint_path == tmp_path / "checkpoints" / "000016"
    assert trainer.vecenv.closed == recorder.closed == 1
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["agent_steps"] for line in lines] == list(range(128, 2049, 128))
    assert set(lines[-1]) == {
        *("update", "agent_steps", "total_agent_steps", "uptime_s", "sps", "learning_rate"),
        *("performance/collect_s", "performance/learn_s"),
        *("losses/policy", "losses/value", "losses/entropy", "losses/approx_kl", "losses/clip_fraction"),
        *("losses/explained_variance", "environment/score", "environment/episode_length"),
    }


def test_module_in_place_of_policy_raises(make_trainer):
    with pytest.raises(
        APIUsageError, match=r"Trainer: policy must be a pufferlib\.models\.Policy, got Linear\(.* derive"
    ):
        make_trainer(policy=torch.nn.Linear(2, 2))


def test_missing_run_dir_raises(make_trainer, tmp_path):
    config = load_config("squared")
    with pytest.raises(APIUsageError, match=r"run_dir must be a folder that exists, got .*absent; make it first"):
        Trainer(config, tmp_path / "absent")
    trainer = make_trainer(run_dir=str(tmp_path))
    with pytest.raises(APIUsageError, match=r"has no checkpoint yet; expected one in .*checkpoints"):
        trainer.checkpoint_path  # noqa: B018


def test_learning_rate_falls_to_zero(make_trainer):
    recorder = ListLogger()
    make_trainer({"train.learning_rate": 0.016}, [recorder]).train()
    assert [line["learning_rate"] for line in recorder] == pytest.approx([0.001 * left for left in range(16, 0, -1)])


@pytest.mark.parametrize("memory", once(["none", "LSTM", "GRU", "MinGRU"], ["none", "LSTM"]))
def test_same_seed_gives_same_weights(make_trainer, memory):
    runs = [make_trainer({"train.seed": seed, "policy.memory": memory}) for seed in (1, 1, 2)]
    for run in runs:
        for _ in range(4):
            run.step()
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert not torch.equal(weights(runs[0]), weights(runs[2]))


def test_resumed_run_matches_run_with_exact_resume(make_trainer, tmp_path):
    exact = {"train.exact_resume": True, "train.checkpoint_interval": 8}
    whole = make_trainer(exact)
    whole.train()
    (tmp_path / "half").mkdir()
    half = make_trainer(exact, run_dir=tmp_path / "half")
    for _ in range(8):
        half.step()
    half.save()
    half.close()
    resumed = make_trainer(exact)
    resumed.restore(half.checkpoint_path)
    assert (resumed.updates, resumed.agent_steps) == (8, 1024)
    resumed.train()
    assert resumed.agent_steps == whole.agent_steps
    assert torch.equal(weights(resumed), weights(whole))


RESUMED = {
    "native": ("breakout", {"env.num_envs": 8}),
    "with a memory and threads": ("memory", {"env.num_envs": 8, "env.num_threads": 2, "policy.memory": "LSTM"}),
    "serial": ("pong", {"env.num_envs": 4, "vec.backend": "Serial", "vec.num_envs": 2, "env.autoreset": "next_step"}),
    "agents that end": (
        "snake",
        {"env.num_envs": 1, "env.num_snakes": 8, "env.width": 12, "env.height": 12, "env.num_food": 9},
    ),
    "restarted from states": ("breakout", {"env.num_envs": 8, "train.restart_share": 0.7, "train.restart_states": 9}),
    "bonus for new observations": ("squared", {"env.num_envs": 8, "train.novelty_coef": 0.1}),
    "of Gymnasium": ("CartPole-v1", {"vec.backend": "Serial", "vec.num_envs": 4}),
    "of Gymnasium, restarted from states": (
        "CartPole-v1",
        {"vec.backend": "Serial", "vec.num_envs": 4, "train.restart_share": 0.5, "train.restart_states": 9},
    ),
    "workers": (
        "squared",
        {
            "env.num_envs": 4,
            "vec.backend": "Multiprocessing",
            "vec.num_envs": 2,
            "vec.num_workers": 2,
            "vec.overwork": True,
        },
    ),
}

PLAIN = {"native", "of Gymnasium"}  # other cases have more to restore from the same kind of environment
ATARI = {
    "vec.backend": "Multiprocessing",
    "vec.num_envs": 2,
    "vec.num_workers": 2,
    "vec.overwork": True,
    "train.total_timesteps": 320,
    "train.minibatch_size": 32,
    "train.update_epochs": 1,
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(
            pytest.param(*case, id=name, marks=[pytest.mark.all] if name in PLAIN else [])
            for name, case in RESUMED.items()
        ),
        pytest.param(
            "atari/breakout",
            ATARI,
            marks=[
                pytest.mark.all,
                pytest.mark.skipif(find_spec("ale_py") is None, reason="ale_py is not installed; puffer install atari"),
            ],
            id="emulators in workers",
        ),
    ],
)
def test_resumed_run_matches_uninterrupted_run(name, settings, tmp_path):
    def make(folder):
        (tmp_path / folder).mkdir()
        recorder = ListLogger()
        return Trainer(load_config(name, {**SMALL, **settings}), tmp_path / folder, [recorder]), recorder

    whole, lines = make("whole")
    whole.train()
    half, first = make("half")
    for _ in range(7):
        half.step()
    half.save()
    half.close()
    resumed, rest = make("resumed")
    resumed.restore(half.checkpoint_path)
    resumed.train()
    assert torch.equal(weights(resumed), weights(whole))
    times = {"uptime_s", "sps", "performance/collect_s", "performance/learn_s"}
    expected, got = (
        [{key: line[key] for key in line if key not in times} for line in each] for each in (lines, first + rest)
    )
    assert got == expected


def iterating_trainer(tmp_path, **settings):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=lambda: EpisodeStats(IteratingEnv()))
    vecenv = vector.make(creator, num_envs=4, backend="Serial", autoreset="same_step")
    return Trainer(load_config("breakout", {**SMALL, **settings}), tmp_path, vecenv=vecenv)


def test_pickled_games_are_restored_only_with_allow_pickle(tmp_path):
    asked = {"train.save_games": "pickle"}
    trainer = iterating_trainer(tmp_path, **asked)
    for _ in range(5):
        trainer.step()
    trainer.save()
    path = trainer.checkpoint_path
    for _ in range(3):
        trainer.step()
    resumed = iterating_trainer(tmp_path, **asked)
    with pytest.warns(UserWarning, match=r"new episodes start, .*: they are pickles, which can execute any code"):
        assert not resumed.restore(path)
    resumed = iterating_trainer(tmp_path)
    assert resumed.restore(path, allow_pickle=True)
    for _ in range(3):
        resumed.step()
    assert torch.equal(weights(resumed), weights(trainer))


def test_games_that_need_pickle_are_not_saved_by_default(tmp_path):
    trainer = iterating_trainer(tmp_path)
    trainer.save()
    assert "games" not in checkpoint.read_state(trainer.checkpoint_path)
    assert not trainer.restore(trainer.checkpoint_path)
    trainer = Trainer(load_config("breakout", {**SMALL, "env.num_envs": 8, "train.save_games": "none"}), tmp_path)
    trainer.save()
    assert "games" not in checkpoint.read_state(trainer.checkpoint_path)


def test_resumed_run_does_not_trust_pickles_of_its_folder(tmp_path):
    run = Run.at(tmp_path)
    load_config("breakout", {"train.save_games": "pickle"}).save(run.config)
    assert settings_of(run).train.save_games == "safe"
    assert settings_of(run, {"train.save_games": "pickle"}).train.save_games == "pickle"
    group = SeedGroup(tmp_path, (1, 2))
    assert settings_of(group).train.save_games == "safe"
    assert settings_of(group, {"train.save_games": "pickle"}).train.save_games == "pickle"


def test_games_of_other_version_start_new_episodes_with_warning(tmp_path, monkeypatch):
    config = load_config("breakout", {**SMALL, "env.num_envs": 8})
    trainer = Trainer(config, tmp_path)
    trainer.step()
    trainer.save()
    monkeypatch.setattr("pufferlib.ocean.state.source_hash", "another")
    with pytest.warns(
        UserWarning,
        match=r"checkpoints/000001: new episodes start, because the saved ones cannot be continued: .* code must be",
    ):
        trainer.restore(trainer.checkpoint_path)
    trainer.step()
    trainer.close()


class TestAutomaticRewardScale:
    """Tests of the automatic reward scale, which is fitted to the first episodes."""

    AUTOMATIC = {"train.reward_scale": 0.0}  # noqa: RUF012

    @pytest.fixture
    def paid(self, target_env):
        class Paid(target_env):
            def step(self, actions):
                outcome = super().step(actions)
                self.rewards *= self.factor
                return outcome

        def make(factor):
            env = Paid(8)
            env.factor = factor
            return env

        return make

    def test_size_of_rewards_does_not_change_weights(self, make_trainer, paid):
        runs = [make_trainer(self.AUTOMATIC, env=paid(factor)) for factor in (1024, 4096)]
        for run in runs:
            run.train()
        assert runs[0].collector.reward_scale == 4 * runs[1].collector.reward_scale < 1
        assert torch.equal(weights(runs[0]), weights(runs[1]))

    def test_resumed_run_keeps_reward_scale(self, make_trainer, paid):
        whole = make_trainer(self.AUTOMATIC, env=paid(1024))
        whole.train()
        resumed = make_trainer({**self.AUTOMATIC, "train.total_timesteps": 4096}, env=paid(1))
        resumed.restore(whole.checkpoint_path)
        resumed.step()
        assert resumed.collector.reward_scale == whole.collector.reward_scale

    @pytest.mark.filterwarnings("ignore:.*EpisodeStats")
    @pytest.mark.parametrize("truncates", [False, True])
    @pytest.mark.parametrize("penalty", [0.0, -0.01])
    def test_reward_scale_is_fitted_until_rewarded_episode_ends(self, make_trainer, penalty, truncates):
        def reward(env):
            return (-1) ** env.made * 1000.0 if env.count == 150 else penalty

        made = itertools.count()

        def creator(buf=None, seed=0):
            env = FunctionEnv(length=150, truncates=truncates, reward=reward)
            env.made = next(made)
            return GymnasiumPufferEnv(env, buf=buf, seed=seed)

        trainer = make_trainer(
            {**self.AUTOMATIC, "train.normalize_rewards": False, "train.horizon": 64, "train.gamma": 1.0},
            env=vector.make(creator, num_envs=4, backend="Serial", autoreset="same_step"),
        )
        found = []
        for _ in range(6):
            trainer.step()
            found.append((trainer.collector.reward_scale, trainer.state.fits_reward_scale))
        assert found[:2] == [(1.0, True)] * 2
        assert found[2] == (pytest.approx(1 / math.sqrt(22 / 64 * 1e6), rel=0.1), False)
        assert found[2:] == [found[2]] * 4

    @pytest.mark.parametrize("given", [{"train.reward_scale": 1.0}, {**AUTOMATIC, "train.reward_clip": 1.0}])
    def test_given_reward_scale_is_kept(self, make_trainer, paid, given):
        trainer = make_trainer(given, env=paid(1024))
        trainer.step()
        assert trainer.collector.reward_scale == 1
        trainer.close()


def test_run_is_resumed_on_other_kind_of_device(make_trainer):
    trainer = make_trainer({"train.total_timesteps": 1024})
    trainer.train()
    path = trainer.checkpoint_path
    state = {
        **checkpoint.read_state(path),
        "generator": torch.zeros(16, dtype=torch.uint8),
    }  # state of a CUDA generator
    checkpoint.save(path.parent, checkpoint.read_policy(path), state, checkpoint.read_about(path))
    assert trainer.checkpoint_path != path
    again = [make_trainer() for _ in range(2)]
    for other in again:
        other.restore(trainer.checkpoint_path)
        other.step()
    assert torch.equal(weights(again[0]), weights(again[1]))


def test_resumed_runs_are_deterministic(make_trainer):
    make_trainer({"train.total_timesteps": 1024}).train()
    again = [make_trainer() for _ in range(2)]
    for trainer in again:
        trainer.restore(trainer.checkpoint_path)
        trainer.step()
    assert torch.equal(weights(again[0]), weights(again[1]))


def test_saving_does_not_change_training(make_trainer):
    often, never = make_trainer({"train.checkpoint_interval": 1}), make_trainer({"train.checkpoint_interval": 0})
    often.train()
    never.train()
    assert torch.equal(weights(often), weights(never))


class SmallDisk(ListLogger):
    """Logger that limits files to 100 bytes from update ``first`` to update ``last``."""

    def __init__(self, first, last):
        super().__init__()
        self.first, self.last, self.before = first, last, resource.getrlimit(resource.RLIMIT_FSIZE)

    def log(self, metrics):
        if metrics["update"] == self.first:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, self.before[1]))
        if metrics["update"] == self.last:
            self.close()

    def close(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


def test_temporarily_full_disk_loses_no_metrics_or_checkpoint(make_trainer, tmp_path):
    loggers = [JsonlLogger(tmp_path / "metrics.jsonl"), SmallDisk(first=3, last=9)]
    trainer = make_trainer({"train.checkpoint_interval": 2, "train.keep_checkpoints": 0}, loggers)
    with pytest.warns(UserWarning, match="File too large") as warned:
        trainer.train()
    assert [str(warning.message).partition(": ")[2].partition(";")[0] for warning in warned] == [
        "metrics could not be written (File too large)",
        "a checkpoint could not be written (File too large)",
    ]
    saved = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert saved == [f"{updates:06}" for updates in (2, 9, 10, 12, 14, 16)]
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 16


def test_failed_last_checkpoint_raises_and_keeps_previous(make_trainer):
    trainer = make_trainer({"train.checkpoint_interval": 4}, [SmallDisk(first=5, last=99)])
    with (
        pytest.warns(UserWarning, match="a checkpoint could not be written"),
        pytest.raises(OSError, match="too large"),
    ):
        trainer.train()
    assert trainer.checkpoint_path.name == "000004"


def test_full_disk_raises_before_training(make_trainer, target_env):
    disk, env = SmallDisk(first=0, last=99), target_env(8)
    disk.log({"update": 0})
    try:
        with pytest.raises(OSError, match="File too large"):
            make_trainer(env=env)
    finally:
        disk.close()
    assert env.closed == 1


def test_latest_and_best_checkpoints_are_kept(make_trainer, tmp_path):
    recorder = ListLogger()
    trainer = make_trainer({"train.checkpoint_interval": 2, "train.keep_checkpoints": 2}, [recorder])
    trainer.train()
    scores = [line["environment/score"] for line in recorder]  # each update has the same number of episodes
    means = {updates: sum(scores[updates - 2 : updates]) / 2 for updates in range(2, 17, 2)}
    best = max(means, key=lambda updates: (means[updates], updates))
    kept = {int(path.name): checkpoint.read_about(path) for path in (tmp_path / "checkpoints").iterdir()}
    assert kept.keys() == {14, 16, best}
    assert [about.score for about in kept.values()] == pytest.approx([means[updates] for updates in kept])


def test_checkpoint_of_other_env_raises(make_trainer, tmp_path):
    make_trainer().save()
    other = Trainer(load_config("squared", {**SMALL, "env.num_envs": 8}), tmp_path)
    with pytest.raises(
        APIUsageError, match=r"000000: belongs to a run of breakout, got squared; start a new run of squared"
    ):
        other.restore(tmp_path / "checkpoints" / "000000")
    other.close()


def test_restore_warns_about_other_versions(make_trainer, monkeypatch):
    make_trainer().train()
    trainer = make_trainer()
    monkeypatch.setitem(trainer.versions, "torch", "99")
    with pytest.warns(UserWarning, match=r"000016: versions have changed since it was saved: torch 99 \(was "):
        trainer.restore(trainer.checkpoint_path)
    trainer.close()


def test_ctrl_c_finishes_the_update_saves_and_closes(make_trainer):
    class Interrupting(ListLogger):
        def log(self, metrics):
            super().log(metrics)
            if metrics["update"] == 3:
                os.kill(os.getpid(), signal.SIGINT)

    recorder = Interrupting()
    trainer = make_trainer(loggers=[recorder])
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert signal.getsignal(signal.SIGINT) is before
    assert len(recorder) == 3
    assert trainer.vecenv.closed == recorder.closed == 1
    resumed = make_trainer()
    resumed.restore(trainer.checkpoint_path)
    assert resumed.updates == 3


def test_second_ctrl_c_stops_at_once(make_trainer, target_env):
    env = target_env(8)
    step = env.step

    def interrupting(actions):
        os.kill(os.getpid(), signal.SIGINT)
        return step(actions)

    env.step = interrupting
    trainer = make_trainer(env=env)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert trainer.updates == 0
    assert env.closed == 1


def test_second_ctrl_c_while_collecting_keeps_latest_update(make_trainer, target_env):
    env = target_env(8)
    step = env.step

    def interrupting(actions):
        if trainer.updates == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(actions)

    env.step = interrupting
    trainer = make_trainer(env=env)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    resumed = make_trainer()
    resumed.restore(trainer.checkpoint_path)
    assert resumed.updates == trainer.updates == 2


def test_error_closes_envs_and_loggers(make_trainer, target_env):
    recorder, env = ListLogger(), target_env(8)

    def failing(actions):
        raise ZeroDivisionError

    trainer = make_trainer(loggers=[recorder], env=env)
    env.step = failing
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert env.closed == recorder.closed == 1
    env = target_env(8)
    with pytest.raises(APIUsageError, match="minibatch_size must divide"):
        make_trainer({"train.minibatch_size": 100}, env=env)
    assert env.closed == 1


def test_masks_that_are_never_true_raise(make_trainer, target_env):
    env = target_env(8)
    env.masks[:] = False
    trainer = make_trainer(env=env)
    with pytest.raises(PufferError, match="masks must be True where an agent is there, got False for all 8 agents"):
        trainer.train()
    assert env.closed == 1


@pytest.mark.parametrize("name", ["gpu", "mps", "meta"])
def test_invalid_device_raises(make_trainer, name):
    with pytest.raises(APIUsageError, match=rf"train\.device must be auto, cpu, cuda or cuda:<n>, got '{name}'"):
        make_trainer({"train.device": name})


@pytest.mark.parametrize(
    ("count", "name", "seen"), [(0, "cuda", "no GPU"), (1, "cuda:1", "1 GPU"), (2, "cuda:2", "2 GPUs")]
)
def test_missing_gpu_raises(make_trainer, monkeypatch, count, name, seen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(APIUsageError, match=f"sees {seen}, got '{name}'; use (cuda:0, )?auto or cpu, or run"):
        make_trainer({"train.device": name})


BACKENDS = {
    "native": {},
    "Serial": {"vec.backend": "Serial", "vec.num_envs": 2},
    "Multiprocessing": {"vec.backend": "Multiprocessing", "vec.num_envs": 2, "vec.num_workers": 1},
    "pool": {
        "vec.backend": "Multiprocessing",
        "vec.num_envs": 4,
        "vec.num_workers": 2,
        "vec.overwork": True,
        "vec.batch_size": 2,
        "vec.zero_copy": False,
        "policy.memory": "LSTM",
    },
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_trains_env_of_settings_with_every_backend(tmp_path, backend):
    config = load_config("squared", {**SMALL, "env.num_envs": 4, **BACKENDS[backend], "train.total_timesteps": 256})
    trainer = Trainer(config, tmp_path)
    trainer.train()
    assert trainer.agent_steps >= 256


def test_serial_and_multiprocessing_train_same_weights(tmp_path):
    trained = []
    for backend in ("Serial", "Multiprocessing"):
        config = load_config("squared", {**SMALL, "env.num_envs": 4, **BACKENDS[backend], "train.total_timesteps": 256})
        trained.append(Trainer(config, tmp_path))
        trained[-1].train()
    assert torch.equal(weights(trained[0]), weights(trained[1]))


@pytest.mark.parametrize(("stats", "warned"), [(False, True), (True, False)])
def test_missing_score_of_emulated_env_warns_once(stats, warned, tmp_path):
    def make(buf=None, seed=0):
        env = gymnasium.make("CartPole-v1")
        return GymnasiumPufferEnv(EpisodeStats(env) if stats else env, buf=buf, seed=seed)

    envs = vector.make(make, num_envs=4, backend="Serial", autoreset="same_step")
    config = load_config("mine", {**SMALL, "train.horizon": 32, "train.total_timesteps": 512})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(config, tmp_path, vecenv=envs)
        trainer.train()
    assert trainer.rollout.episode_ends.any()
    found = [
        warning for warning in caught if "wrap the environment with pufferlib.EpisodeStats" in str(warning.message)
    ]
    assert len(found) == warned


def test_absent_agents_are_masked(tmp_path):
    # agent a ends after a + 1 steps
    script = [alive(0, 1, 2, 3), *({left: "dead", **alive(*range(left + 1, 4))} for left in range(4))]
    dwindling = functools.partial(
        ScriptedParallelEnv, *script, names=range(4), action_space=Discrete(2), info=lambda *_, fate: {"score": 1.0}
    )
    creator = functools.partial(PettingZooPufferEnv, env_creator=dwindling)
    vecenv = vector.make(creator, backend="Serial", num_envs=2, autoreset="same_step")
    trainer = Trainer(load_config("dwindling", SMALL), tmp_path, vecenv=vecenv)
    trainer.step()
    # agent a is present in a + 1 of every 4 steps
    assert trainer.rollout.masks.sum(0).tolist() == [4, 8, 12, 16] * 2
    assert trainer.agent_steps == 80
    trainer.close()


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("hide", [False, True], ids=["reaction", "memory"])
def test_trainer_learns_rewarded_actions(make_trainer, target_env, hide):
    recorder = ListLogger()
    overrides = {
        "train.total_timesteps": 20_480,
        "train.minibatch_size": 256,
        "train.learning_rate": 0.01,
        "train.gamma": 0.9,
        "policy.memory": "LSTM" if hide else "none",
        "policy.num_layers": 1,
    }
    make_trainer(overrides, [recorder], target_env(32, hide=hide)).train()
    assert recorder[0]["environment/score"] < 1.7  # of 4, 4/3 by chance
    assert recorder[-1]["environment/score"] > 3.9


def test_num_threads_depends_on_network_size(make_trainer, monkeypatch):
    monkeypatch.setattr("pufferlib.training.build.usable_cpus", lambda: 7)
    unset = {"train.num_threads": None}
    assert make_trainer(unset).num_threads == 1
    assert make_trainer({**unset, "policy.hidden_size": 1024}).num_threads == 7
    assert make_trainer({"train.num_threads": 3, "policy.hidden_size": 1024}).num_threads == 3


@pytest.mark.parametrize("backend", ["native", "Serial", "Multiprocessing", "Ray"])
def test_make_vecenv_passes_all_settings(monkeypatch, backend):
    asked = []
    monkeypatch.setattr("pufferlib.vector.make", lambda *_, **options: asked.append(options))
    make_vecenv(load_config("squared", {"vec.backend": backend}))
    chosen = {"num_workers": 2, "batch_size": 4, "zero_copy": False, "overwork": True, "on_crash": "restart"}
    settings = {"vec.backend": backend, "vec.timeout_s": 0, **{f"vec.{name}": value for name, value in chosen.items()}}
    make_vecenv(load_config("squared", settings))
    assert (asked[0]["timeout_s"], asked[0]["on_crash"]) == (120.0, "raise")
    assert chosen.items() | {("timeout_s", None)} <= asked[1].items()


def test_acting_uses_one_thread_and_learning_num_threads(make_trainer, target_env):
    env = target_env(8)
    step, seen = env.step, set()

    def counting(actions):
        seen.add(torch.get_num_threads())
        return step(actions)

    env.step = counting
    trainer = make_trainer({"train.num_threads": 2}, env=env)
    trainer.step()
    assert seen == {1}
    assert torch.get_num_threads() == 2


def test_close_restores_the_number_of_threads(make_trainer):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        trainer = make_trainer({"train.num_threads": 2})
        trainer.step()
        assert torch.get_num_threads() == 2
        trainer.close()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_initial_weights_do_not_depend_on_number_of_threads():
    config = load_config("breakout")
    vecenv = build_vecenv(config)
    before, weights = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            weights.append(parameters_to_vector(build_policy(config, vecenv).parameters()))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
        vecenv.close()
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("recurrent", [False, True])
def test_fit_to_agents_works_for_any_number_of_agents(recurrent):
    for agents in (*range(1, 130), 1000, 1009, 4096):
        settings = fit_to_agents(TrainConfig(), agents, recurrent)
        batch_size = settings.horizon * agents
        assert batch_size >= 1024
        assert batch_size % settings.minibatch_size == 0
        assert settings.minibatch_size <= 8192 or (
            recurrent and agents == 1009
        )  # a prime, so the minibatch has all segments
        assert settings.minibatch_size % settings.horizon == 0 or not recurrent
        assert 1 <= settings.update_epochs <= 10


@pytest.mark.parametrize(("agents", "expected"), [(1, (1024, 64, 10)), (8, (128, 64, 10)), (1024, (64, 4096, 1))])
def test_fit_to_agents_uses_more_epochs_for_fewer_agents(agents, expected):
    settings = fit_to_agents(TrainConfig(), agents, recurrent=False)
    assert (settings.horizon, settings.minibatch_size, settings.update_epochs) == expected


@pytest.mark.parametrize(
    ("horizon", "agents", "recurrent", "size"), [(8, 1, False, 8), (127, 1, False, 127), (64, 101, True, 6464)]
)
def test_fit_to_agents_uses_whole_batch_without_divisor(horizon, agents, recurrent, size):
    assert fit_to_agents(TrainConfig(horizon=horizon), agents, recurrent).minibatch_size == size


@pytest.mark.parametrize(("wanted", "hint"), [(3, "2 or 4"), (5, "4 or 8"), (9, "8")])
def test_accumulate_minibatches_that_does_not_divide_raises(wanted, hint):
    given = TrainConfig(horizon=16, minibatch_size=16, accumulate_minibatches=wanted)
    message = rf"horizon \* agents / train\.minibatch_size = 128 / 16 = 8, got {wanted}; try {hint}$"
    with pytest.raises(APIUsageError, match=message):
        fit_to_agents(given, 8, recurrent=False)


@pytest.mark.parametrize(("agents", "horizon", "size"), [(8, 4, 1), (1, 1, 0)])
def test_minibatch_of_one_step_with_normalized_advantages_raises(agents, horizon, size):
    given = TrainConfig(horizon=horizon, minibatch_size=size)
    with pytest.raises(APIUsageError, match=r"minibatch of one step; got train\.minibatch_size 1"):
        fit_to_agents(given, agents, recurrent=False)
    for fine in ({"norm_adv": False}, {"accumulate_minibatches": 2} if agents > 1 else {"horizon": 2}):
        fit_to_agents(dataclasses.replace(given, **fine), agents, recurrent=False)


def test_fit_to_agents_keeps_given_settings():
    given = TrainConfig(horizon=10, minibatch_size=20)
    assert fit_to_agents(given, 8, recurrent=False) == dataclasses.replace(given, update_epochs=1)


def test_trainer_config_has_chosen_settings(tmp_path, target_env):
    trainer = Trainer(load_config("mine", {"train.device": "cpu"}), tmp_path, vecenv=vector.make(target_env))
    assert (trainer.config.train.horizon, trainer.rollout.horizon) == (128, 128)
    trainer.close()


@pytest.mark.parametrize("normalize", [False, True])
def test_init_starts_from_weights_of_other_run(normalize, tmp_path):
    settings = {"env.num_envs": 8, "train.total_timesteps": 512, "train.minibatch_size": 256, "train.device": "cpu"}
    settings["train.normalize_observations"] = normalize
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    before = Trainer(load_config("cartpole", settings), first)
    before.train()

    still = {"train.init": str(first), "train.learning_rate": 0.0, "train.seed": 7}
    after = Trainer(load_config("cartpole", {**settings, **still}), second)
    after.step()
    assert np.array_equal(weights(after), weights(before))
    if normalize:  # moments continue from the other run
        count = "observation_moments.count"
        assert after.policy.state_dict()[count] > before.policy.state_dict()[count] > 100
    after.close()


def test_init_with_missing_or_other_weights_raises(make_trainer, tmp_path):
    with pytest.raises(PufferError, match=r"train.init: '.*nowhere' is not a run, a checkpoint"):
        make_trainer({"train.init": str(tmp_path / "nowhere")}).step()
    make_trainer().train()
    other = load_config("cartpole", {"train.init": str(tmp_path), "env.num_envs": 8, "train.device": "cpu"})
    trainer = Trainer(other, tmp_path)
    with pytest.raises(APIUsageError, match=r"other observations of breakout: floats \(3,\), got floats \(4,\)"):
        trainer.step()
    trainer.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy.hidden_size": 32}, r"does not fit this policy: .*: --policy\.hidden-size 16$"),
        ({"policy.activation": "tanh"}, r"policy\.activation relu, got tanh, .*; add --policy\.activation relu$"),
        ({"train.normalize_observations": True}, r"observation_moments.*: --train\.normalize-observations False$"),
        ({"policy.orthogonal_init": False}, ""),
    ],
)
def test_init_with_other_settings_of_network_names_their_flags(make_trainer, tmp_path, settings, message):
    make_trainer().train()
    error = pytest.raises(APIUsageError, match=message) if message else contextlib.nullcontext()
    with contextlib.closing(make_trainer({"train.init": str(tmp_path), **settings})) as trainer, error:
        trainer.step()


def test_init_of_given_policy_ignores_settings_of_network(make_trainer, target_env, tmp_path):
    first = make_trainer({"policy.activation": "tanh"})
    first.train()
    env = target_env(8)
    policy = make_policy(env, hidden_size=16, activation="tanh")
    settings = {"train.init": str(tmp_path), "train.learning_rate": 1e-9}
    with contextlib.closing(make_trainer(settings, env=env, policy=policy)) as trainer:
        trainer.step()
        assert torch.allclose(policy.decoder.weight, first.policy.decoder.weight, atol=1e-6)


def test_missing_score_of_native_env_warns(tmp_path, monkeypatch):
    class Silent(TargetEnv):
        def step(self, actions):
            return *super().step(actions)[:4], []

    monkeypatch.setitem(REGISTERED, "silent", None)  # monkeypatch removes the name after the test
    pufferlib.register("silent", Silent)
    with pytest.warns(UserWarning, match=r"let its step return the info \{'score': ...\} of each episode that ends"):
        Trainer(load_config("silent", SMALL), tmp_path).train()


@pytest.mark.parametrize(
    ("low", "high", "warned"),
    [
        (-1, 1, ""),
        (0, 1, ""),
        (-2, 2, ""),
        (-np.inf, np.inf, ""),
        (0, np.inf, ""),
        (0, 1000, "0 and 1000 for action 0"),
        (-0.01, 0.01, "-0.01 and 0.01 for action 0"),
        (9, 10, "9 and 10 for action 0"),
        (np.array([-1, -50]), np.array([1, 50]), "-50 and 50 for action 1"),
    ],
)
def test_action_bounds_far_from_1_warn(make_trainer, low, high, warned):
    space = Box(low, high, (2,), np.float32) if np.ndim(low) == 0 else Box(low.astype("f4"), high.astype("f4"))
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FunctionEnv, env_kwargs={"action_space": space})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_trainer(env=vector.make(creator, num_envs=8, backend="Serial", autoreset="same_step")).close()
    found = [str(warning.message) for warning in caught if "bounds of actions" in str(warning.message)]
    assert len(found) == bool(warned)
    assert RuntimeWarning not in [warning.category for warning in caught]
    assert all(f"near -1 and 1, got {warned}: a policy" in message for message in found)


class MaskReadingPolicy(build.Policy):
    def action_mask(self, observations):
        return None


MASK_SPACE = Dict(action_mask=Box(0, 1, (2,), np.int8), observation=Box(-1, 1, (2,), np.float32))


class MaskedEnv(FunctionEnv):
    def action_masks(self):
        return np.ones(2, bool)


@pytest.mark.parametrize(
    ("kind", "space", "policy", "warns"),
    [
        (MaskedEnv, None, build.Policy, True),
        (FunctionEnv, None, build.Policy, False),
        (MaskedEnv, MASK_SPACE, build.Policy, False),
        (MaskedEnv, None, MaskReadingPolicy, False),
    ],
    ids=["unread", "no masks", "in the observation", "policy"],
)
@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_action_masks_method_that_is_not_read_warns(backend, kind, space, policy, warns):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=kind, env_kwargs={"observation_space": space})
    with (
        contextlib.closing(vector.make(creator, num_envs=1, backend=backend)) as vecenv,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        build.warn_of_unread_masks(vecenv, object.__new__(policy))
    assert ["the method action_masks of the environment is not used" in str(each.message) for each in caught] == (
        [True] if warns else []
    )


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (Dict(action_mask=Box(0, 1, (3,), np.int8)), "must have 2 elements, one for each value .*, got 3, so"),
        (Dict(a=MASK_SPACE), r"observation\['a'\]\['action_mask'\] must be at the top of the observation, as"),
        (Dict(a=Dict(b=Box(0, 1, (2,)))), None),
        (MASK_SPACE, None),
    ],
    ids=["size", "nested", "no mask", "read"],
)
def test_action_mask_field_that_is_not_read_warns(space, reason):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FunctionEnv, env_kwargs={"observation_space": space})
    expected = pytest.warns(UserWarning, match=reason) if reason else contextlib.nullcontext()
    with contextlib.closing(vector.make(creator, num_envs=1, backend="Serial")) as vecenv, expected:
        build.warn_of_unread_masks(vecenv, object.__new__(build.Policy))


def test_missing_action_masks_of_pettingzoo_env_do_not_warn():
    with contextlib.closing(
        vector.make(PettingZooPufferEnv, env_kwargs={"env_creator": ScriptedParallelEnv}, num_envs=1, backend="Serial")
    ) as vecenv:
        build.warn_of_unread_masks(vecenv, object.__new__(build.Policy))


def test_initial_weights_are_deterministic_in_threads(monkeypatch):
    make_policy = build.make_policy

    def slow(*args, **kwargs):
        time.sleep(0.05)  # lets the other thread seed torch's generator
        return make_policy(*args, **kwargs)

    monkeypatch.setattr(build, "make_policy", slow)
    config = load_config("squared", {"train.device": "cpu"})

    def first_weights(_):
        with contextlib.closing(build_vecenv(config)) as vecenv:
            return parameters_to_vector(build_policy(config, vecenv).parameters())

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(first_weights, range(2))
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda losses: losses.total, "must return pufferlib.training.Losses, got Tensor"),
        (lambda losses: None, "must return pufferlib.training.Losses, got NoneType"),
        (lambda losses: losses._replace(total=losses.total.detach()), "total of the loss must have gradients"),
        (lambda losses: losses._replace(total=losses.total.expand(4)), r"total .* scalar tensor, got shape \(4,\)"),
        (lambda losses: losses._replace(policy=0.5), "policy of the loss must be a scalar tensor, got float"),
    ],
)
def test_loss_with_invalid_result_raises(make_trainer, change, sentence):
    trainer = make_trainer(loss=lambda *args: change(ppo.ppo_loss(*args)))
    with pytest.raises(APIUsageError, match=sentence):
        trainer.step()


def test_loss_of_another_network_raises(make_trainer):
    other = torch.ones((), requires_grad=True)
    trainer = make_trainer(loss=lambda *args: ppo.ppo_loss(*args)._replace(total=other.square()))
    with pytest.raises(APIUsageError, match="must depend on the policy, got no gradient of any parameter"):
        trainer.step()


def test_loss_composed_of_parts_equals_ppo_loss(make_trainer):
    def composed(policy, batch, config):
        losses = ppo.ppo_loss(policy, batch, config)
        parts = losses.policy + config.vf_coef * losses.value - config.ent_coef * losses.entropy
        return losses._replace(total=parts)

    trained = []
    for loss in (lambda *args: ppo.ppo_loss(*args), composed):
        trainer = make_trainer(loss=loss)
        trainer.step()
        trained.append(parameters_to_vector(trainer.policy.parameters()))
    assert torch.equal(*trained)


class NamedCallback(Callback):
    """Callback without a state."""


@pytest.mark.parametrize(
    ("again", "missing"),
    [
        ({}, "the loss .*first_loss and the callback NamedCallback"),
        ({"loss": "second", "callbacks": [NamedCallback()]}, "the loss .*first_loss"),
        ({"loss": "first"}, "the callback NamedCallback"),
        ({"loss": "first", "callbacks": [NamedCallback(), NamedCallback()]}, None),
    ],
)
def test_resume_without_the_loss_and_callbacks_warns(make_trainer, again, missing):
    def first_loss(*args):
        return ppo.ppo_loss(*args)

    def second_loss(*args):
        return ppo.ppo_loss(*args)

    trainer = make_trainer(loss=first_loss, callbacks=[NamedCallback()])
    trainer.step()
    trainer.save()
    losses = {"first": functools.partial(first_loss), "second": second_loss}
    given = {**again, "loss": losses[again["loss"]]} if "loss" in again else again
    resumed = make_trainer(**given)
    expected = pytest.warns(UserWarning, match=f"{missing}, which") if missing else contextlib.nullcontext()
    with expected:
        resumed.restore(trainer.checkpoint_path)


def test_loss_that_is_not_callable_raises(make_trainer):
    with pytest.raises(APIUsageError, match=r"loss must be a function .*, got 'ppo'"):
        make_trainer(loss="ppo")


def test_custom_loss_is_called_for_every_minibatch(make_trainer):
    seen = []

    def loss(policy, batch, config):
        losses = ppo.ppo_loss(policy, batch, config)
        seen.append(batch.actions.numel())
        return losses._replace(total=losses.total + 1000)

    trainer = make_trainer(loss=loss)
    trainer.step()
    assert sum(seen) == trainer.config.train.horizon * trainer.vecenv.num_agents * trainer.config.train.update_epochs
