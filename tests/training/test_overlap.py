import copy
import threading
import time
import traceback

import pytest
import torch

import pufferlib
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.settings.config import load_config
from pufferlib.training import ppo
from pufferlib.training.build import build_vecenv
from pufferlib.training.partial_collectors import HalvesCollector
from pufferlib.training.ppo import recompute_estimates
from pufferlib.training.trainer import Trainer
from tests.envs import TargetEnv
from tests.tiers import once

SMALL = {
    "env.num_envs": 8,
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 1024,
    "train.horizon": 16,
    "train.minibatch_size": 64,
    "policy.hidden_size": 16,
    "train.overlap": "learning",
}


def make(folder, vecenv=None, policy=None, name="cartpole", callbacks=(), **settings):
    folder.mkdir(exist_ok=True)
    config = load_config(name, {**SMALL, **settings})
    return Trainer(config, folder, vecenv=vecenv, policy=policy, callbacks=callbacks)


def weights(policy):
    return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])


def log_probs(policy, rollout):
    with torch.no_grad():
        params, _ = policy(rollout.observations, rollout.initial_state, rollout.episode_starts)
        return policy.distribution.log_prob(params, rollout.actions)


@pytest.mark.parametrize("memory", ["none", "GRU"])
def test_rollout_is_one_update_behind_policy(memory, tmp_path):
    trainer = make(tmp_path, **{"policy.memory": memory})
    acted = copy.deepcopy(trainer.policy)
    for update in range(4):
        learned = copy.deepcopy(trainer.policy)
        trainer.step()
        assert torch.allclose(trainer.rollout.log_probs, log_probs(acted, trainer.rollout), atol=1e-5)
        assert update == 0 or not torch.allclose(
            trainer.rollout.log_probs, log_probs(learned, trainer.rollout), atol=1e-5
        )
        acted = learned
    trainer.close()


def test_overlap_is_deterministic_and_differs_from_no_overlap(tmp_path):
    runs = {}
    for folder, overlap in (("a", "learning"), ("b", "learning"), ("c", "none")):
        trainer = make(tmp_path / folder, **{"train.overlap": overlap})
        for _ in range(4):
            trainer.step()
        trainer.close()
        runs[folder] = weights(trainer.policy)
    assert torch.equal(runs["a"], runs["b"])
    assert not torch.equal(runs["a"], runs["c"])


CASES = {
    "C": ("cartpole", {}),
    "normalized": ("cartpole", {"train.normalize_observations": True, "train.normalize_rewards": True}),
    "a memory": ("memory", {"policy.memory": "LSTM"}),
    "new episodes": ("cartpole", {"train.exact_resume": True, "train.checkpoint_interval": 3}),
}


@pytest.mark.parametrize("case", once(CASES, ["normalized", "a memory", "new episodes"]))
def test_resumed_run_matches_uninterrupted_run(case, tmp_path):
    name, settings = CASES[case]
    whole = make(tmp_path / "whole", name=name, **settings)
    whole.train()
    half = make(tmp_path / "half", name=name, **settings)
    collect = half.collector.collect
    half.collector.collect = lambda: (time.sleep(0.02), collect())  # still running when the checkpoint is due
    for _ in range(3):
        half.step()
    half.save()
    expected = half.step()
    half.close()
    resumed = make(tmp_path / "resumed", name=name, **settings)
    resumed.restore(half.checkpoint_path)
    metrics = resumed.step()
    for key in expected:
        assert key.endswith("_s") or key == "sps" or metrics[key] == pytest.approx(expected[key], nan_ok=True), key
    resumed.train()
    assert torch.equal(weights(resumed.policy), weights(whole.policy))


class Failing(TargetEnv):
    """Environment that fails in step ``at`` and waits for ``go`` in step ``held``."""

    def __init__(self, at=None, held=None):
        super().__init__(8)
        self.at, self.held, self.steps, self.threads, self.go = at, held, 0, set(), threading.Event()
        self.waited_s = 0.0

    def step(self, actions):
        self.threads.add(threading.current_thread())
        self.steps += 1
        if self.steps == self.held:
            start = time.perf_counter()
            self.go.wait(10)
            self.waited_s = time.perf_counter() - start
        if self.steps == self.at:
            raise ValueError("the environment broke")
        return super().step(actions)


def test_error_in_collector_thread_is_raised_by_step(tmp_path):
    env = Failing(at=20)  # fails in the second rollout
    trainer = make(tmp_path, env)
    trainer.step()
    with pytest.raises(ValueError, match="the environment broke") as raised:
        trainer.step()
    assert any(frame.name == "step" and "test_overlap" in frame.filename for frame in traceback.extract_tb(raised.tb))
    trainer.close()


def test_callbacks_run_while_no_env_steps(tmp_path):
    env = Failing(held=20)  # in the second rollout, which is collected during the first update
    seen = []
    trainer = make(tmp_path, env, callbacks=[lambda trainer, metrics: seen.append(env.steps)])
    threading.Timer(0.3, env.go.set).start()
    trainer.step()
    assert seen == [32]
    assert trainer.uptime_s >= env.waited_s > 0, "the update includes the rollout that callbacks wait for"
    trainer.close()


def test_close_stops_collector_thread(tmp_path):
    env = Failing(held=20)
    trainer = make(tmp_path, env)
    trainer.step()
    threading.Timer(0.1, env.go.set).start()
    trainer.close()
    assert env.steps <= 20
    assert env.closed == 1
    assert threading.main_thread() not in env.threads
    assert not any(thread.is_alive() for thread in env.threads)


def test_no_extra_rollout_is_collected(tmp_path):
    env = Failing()
    trainer = make(tmp_path, env)
    trainer.train()
    assert env.steps == 1024 // 8


def test_nan_in_overlapped_rollout_is_explained(tmp_path):
    class Broken(Failing):
        def draw(self):
            super().draw()
            if self.steps == 21:
                self.observations[3] = float("nan")

    trainer = make(tmp_path, Broken())
    trainer.step()
    with pytest.raises(PufferError, match=r"In update 2 the first was observation\[0\] = nan of agent 3, in step 5"):
        trainer.step()
    trainer.close()


HALVES = {
    "train.overlap": "envs",
    "env.num_envs": 4,
    "vec.backend": "Multiprocessing",
    "vec.num_envs": 2,
    "vec.num_workers": 2,
    "vec.overwork": True,
}


def test_overlapped_halves_are_deterministic(tmp_path):
    runs = [make(tmp_path / folder, **HALVES, **{"train.total_timesteps": 512}) for folder in "ab"]
    for run in runs:
        assert type(run.collector) is HalvesCollector
        run.train()
    assert torch.equal(*(weights(run.policy) for run in runs))


def test_agent_of_overlapped_halves_is_loaded(tmp_path):
    settings = {key: value for key, value in {**SMALL, **HALVES}.items() if key != "env.num_envs"}
    short = {"train.total_timesteps": 32, "train.minibatch_size": 32, "eval.episodes": 1, "eval.video_seconds": 1}
    done = pufferlib.train("CartPole-v1", {**settings, **short}, runs=tmp_path)
    agent = pufferlib.load(done.run.folder)
    assert torch.equal(weights(agent.policy), weights(done.policy))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"vec.backend": "Serial"}, "vec.backend must be Multiprocessing or Ray, got Serial"),
        ({"vec.num_envs": 3}, "vec.num_envs must be an even number, got 3"),
        ({"vec.batch_size": 2}, "vec.batch_size must be unset or 1, got 2"),
        ({"vec.zero_copy": False}, "vec.zero_copy must be True, got False"),
    ],
)
def test_layouts_without_halves_raise(settings, text):
    with pytest.raises(APIUsageError, match=text):
        build_vecenv(load_config("cartpole", {**SMALL, **HALVES, **settings}))


@pytest.mark.parametrize(("overlap", "passes"), [("none", 1), ("learning", 2)])
def test_vtrace_corrects_stale_rollout_in_first_pass(overlap, passes, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(ppo, "recompute_estimates", lambda *args: calls.append(args) or recompute_estimates(*args))
    clips = {"train.vtrace_rho_clip": 1.0, "train.vtrace_c_clip": 1.0, "train.update_epochs": 2}
    trainer = make(tmp_path, **{**clips, "train.overlap": overlap})
    trainer.step()
    trainer.close()
    assert len(calls) == passes
