"""Tests of periodic evaluation during training."""

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from pufferlib.runs import checkpoint
from pufferlib.settings.config import load_config
from pufferlib.training.evaluation import EvalResult, Evaluator, evaluate
from pufferlib.training.standard_callbacks import PeriodicEvaluation
from pufferlib.training.trainer import Trainer
from tests.loggers import ListLogger

QUICK = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 4096,
    "train.horizon": 8,
    "train.minibatch_size": 256,
    "train.checkpoint_interval": 3,
    "env.num_envs": 64,
    "policy.hidden_size": 16,
    "eval.interval_episodes": 8,
}


def train(name, folder, **settings):
    metrics = ListLogger()
    trainer = Trainer(load_config(name, QUICK | settings), folder, [metrics])
    trainer.train()
    return trainer, metrics


@pytest.mark.parametrize(
    ("name", "settings"), [("squared", {"env.size": 3}), ("spaces", {}), ("memory", {"eval.greedy": True})]
)
def test_evaluator_repeats_result_of_evaluate(name, settings, tmp_path):
    config = load_config(name, settings)
    trainer = Trainer(config, tmp_path)
    evaluator = Evaluator(config, episodes=40)
    once = evaluate(config, trainer.policy, 40)
    assert [evaluator.evaluate(trainer.policy) for _ in range(2)] == [once, once]
    evaluator.close()
    trainer.close()


@pytest.mark.parametrize(
    "settings", [{}, {"train.overlap": "learning"}, {"train.exact_resume": True}], ids=["plain", "overlap", "exact"]
)
def test_evaluations_do_not_change_training(settings, tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    evaluated, metrics = train("squared", tmp_path / "with", **settings, **{"eval.interval": 1000})
    plain, others = train("squared", tmp_path / "without", **settings)
    assert torch.equal(*(parameters_to_vector(trainer.policy.parameters()) for trainer in (evaluated, plain)))
    assert [row["losses/value"] for row in metrics] == [row["losses/value"] for row in others]


def test_evaluation_metrics_come_at_intervals_and_at_the_end(tmp_path):
    trainer, metrics = train("squared", tmp_path, **{"eval.interval": 1500})
    rows = [row for row in metrics if "evaluation/score" in row]
    assert [row["agent_steps"] for row in rows] == [1536, 3072, 4096]
    assert all(0 <= row["evaluation/perf"] <= 1 <= row["evaluation/episode_length"] for row in rows)
    assert all(row["evaluation/score_std"] >= 0 for row in rows)
    assert rows[-1]["evaluation/score"] == evaluate(trainer.config, trainer.policy, 8).score_mean
    assert rows[0]["performance/evaluate_s"] > 0
    parts = ("performance/collect_s", "performance/learn_s", "performance/evaluate_s")
    assert trainer.uptime_s == pytest.approx(sum(row.get(part, 0) for row in metrics for part in parts))
    assert metrics[-1]["uptime_s"] == trainer.uptime_s


class ScriptedEvaluator:
    """Evaluator that returns the given scores in turn. None stands for an evaluation without a finished episode."""

    def __init__(self, scores):
        self.scores = iter(scores)

    def __call__(self, *args):
        return self

    def evaluate(self, policy):
        score = next(self.scores)
        if score is None:
            return evaluate(load_config("breakout", {"eval.max_steps": 1}), policy, 2)
        return EvalResult(score, 0.0, 1.0, 1, 0, (score,), ({"score": score},))

    def close(self): ...


def test_best_evaluation_checkpoint_is_kept_after_resume(tmp_path, monkeypatch):
    settings = {"eval.interval": 512, "train.keep_checkpoints": 1, "train.total_timesteps": 8 * 512}
    monkeypatch.setattr(
        f"{PeriodicEvaluation.__module__}.Evaluator", ScriptedEvaluator([1, 5, 4, 5, 3, 2, 1, 0, 4, 6, 5, 1])
    )
    train("squared", tmp_path, **settings)
    folder = tmp_path / "checkpoints"
    kept = {int(path.name): checkpoint.read_about(path) for path in folder.iterdir()}
    assert kept.keys() == {2, 8}, "the first of equal scores, and the latest"
    assert (kept[2].score, kept[2].score_of) == (5, "evaluation")
    assert kept[8].score_of == "training", "the evaluation of this update was not the best"
    assert checkpoint.best(folder).name == "000002"
    longer = Trainer(load_config("squared", QUICK | settings | {"train.total_timesteps": 12 * 512}), tmp_path)
    longer.restore(longer.checkpoint_path)
    longer.train()
    assert {path.name for path in folder.iterdir()} == {"000010", "000012"}


def test_training_continues_if_evaluation_has_no_episode(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{PeriodicEvaluation.__module__}.Evaluator", ScriptedEvaluator([None, 3]))
    with pytest.warns(UserWarning, match="update 4 has no evaluation, training continues: evaluate: none of 2 epi"):
        trainer, metrics = train("breakout", tmp_path, **{"eval.interval": 2048})
    assert trainer.updates == 8
    assert [row.get("evaluation/score") for row in metrics][3::4] == [None, 3]
