import json

import pytest
import torch

from pufferlib.train.config import load_config
from pufferlib.train.loggers import JsonlLogger
from pufferlib.train.trainer import Trainer

SMALL = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 2048,
    "train.horizon": 16,
    "train.minibatch_size": 128,
    "train.update_epochs": 2,
    "policy.hidden_size": 16,
}


class Recorder:
    def __init__(self):
        self.lines = []
        self.closed = 0

    def log(self, metrics):
        self.lines.append(metrics)

    def close(self):
        self.closed += 1


@pytest.fixture
def make_trainer(target_env, tmp_path):
    def make(overrides=None, loggers=(), env=None, run_dir=tmp_path):
        config = load_config("breakout", {**SMALL, **(overrides or {})})
        return Trainer(config, run_dir, loggers, vecenv=env or target_env(8))

    return make


def weights(trainer):
    return torch.cat([parameter.detach().flatten() for parameter in trainer.policy.parameters()])


def test_trains_to_the_end_logs_saves_and_closes(make_trainer, tmp_path):
    recorder = Recorder()
    trainer = make_trainer(loggers=[recorder, JsonlLogger(tmp_path / "metrics.jsonl")])
    trainer.train()
    assert trainer.agent_steps == 2048
    assert trainer.updates == len(recorder.lines) == 16
    assert trainer.checkpoint_path.is_file()
    assert trainer.vecenv.closed == recorder.closed == 1
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["agent_steps"] for line in lines] == list(range(128, 2049, 128))
    assert set(lines[-1]) == {
        *("update", "agent_steps", "total_agent_steps", "uptime_s", "sps", "learning_rate"),
        *("performance/collect_s", "performance/learn_s"),
        *("losses/policy", "losses/value", "losses/entropy", "losses/approx_kl", "losses/clip_fraction"),
        *("losses/explained_variance", "environment/score", "environment/episode_length"),
    }


def test_the_learning_rate_falls_to_zero(make_trainer):
    recorder = Recorder()
    make_trainer({"train.learning_rate": 0.016}, [recorder]).train()
    assert [line["learning_rate"] for line in recorder.lines] == pytest.approx(
        [0.001 * left for left in range(16, 0, -1)]
    )


@pytest.mark.parametrize("recurrent", [False, True])
def test_the_same_seed_gives_the_same_bytes(make_trainer, recurrent):
    runs = [make_trainer({"train.seed": seed, "policy.recurrent": recurrent}) for seed in (1, 1, 2)]
    for run in runs:
        run.train()
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert not torch.equal(weights(runs[0]), weights(runs[2]))
