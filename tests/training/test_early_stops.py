"""Tests of early stopping by score, patience and time."""

import pytest

from pufferlib.errors import APIUsageError
from pufferlib.settings.config import load_config
from pufferlib.training.episodes import EpisodeMeans
from pufferlib.training.standard_callbacks import PeriodicEvaluation, StopAfterSeconds, StopAtScore


class Trainer:
    """Trainer with the attributes that the callbacks use. Each update takes 100 steps."""

    def __init__(self):
        self.agent_steps, self.uptime_s, self.stop_reason = 0, 0.0, None
        self.episodes = EpisodeMeans()

    def stop(self, reason):
        self.stop_reason = self.stop_reason or reason

    def update(self, callback, scores=(), **metrics):
        self.episodes.add([{"score": score} for score in scores])
        callback.on_rollout_end(self)
        self.episodes.pop()
        self.agent_steps += 100
        callback.on_update_end(self, metrics)
        return self.stop_reason


def test_stop_at_score_averages_latest_episodes():
    trainer, stop = Trainer(), StopAtScore(score=2.0, episodes=3)
    assert trainer.update(stop, [9, 9]) is None, "fewer than three episodes"
    assert trainer.update(stop, []) is None
    assert trainer.update(stop, [0, 0, 0]) is None, "the first two episodes are not among the latest three"
    assert trainer.update(stop, [5]) is None
    assert trainer.update(stop, [6, 0]) == "the score of 3 episodes reached 3.67, stop.score is 2"


def test_stop_at_score_prefers_evaluation_score():
    trainer, stop = Trainer(), StopAtScore(score=2.0)
    assert trainer.update(stop, [9] * 1000) is None
    assert trainer.update(stop, [9] * 1000, **{"evaluation/score": 1.9}) is None
    assert trainer.update(stop, **{"evaluation/score": 2.0}).startswith("the evaluation score reached 2, stop")


def test_stop_at_score_stops_after_patience():
    trainer, stop = Trainer(), StopAtScore(patience=200)
    scores = [1.0, 2.0, 2.0, 2.1, 2.0, 2.1]
    reasons = [trainer.update(stop, **{"evaluation/score": score}) for score in scores]
    assert reasons[:-1] == [None] * 5
    assert reasons[-1] == "the evaluation score did not exceed 2.10 for 200 steps (stop.patience)"


def test_stop_at_score_restores_its_state():
    trainer, first = Trainer(), StopAtScore(score=9.0, patience=200, episodes=2)
    first.on_training_start(trainer)
    assert trainer.update(first, [3, 4]) is None
    assert trainer.update(first, [2]) is None
    second = StopAtScore(score=9.0, patience=200, episodes=2)
    second.load_state_dict(first.state_dict())
    second.on_training_start(trainer)
    assert trainer.update(second, [2]).startswith("the score of 2 episodes did not exceed 3.50 for 200")


def test_stop_after_seconds():
    trainer, stop = Trainer(), StopAfterSeconds(60)
    trainer.uptime_s = 59.9
    assert trainer.update(stop) is None
    trainer.uptime_s = 60.5
    assert trainer.update(stop) == "60.5 s have passed, stop.seconds is 60"


def test_stop_setting_out_of_range_raises():
    with pytest.raises(APIUsageError, match=r"stop\.seconds must be at least 0, got -1"):
        load_config("squared", {"stop.seconds": -1})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StopAtScore(2.0, episodes=0), "StopAtScore: episodes must be an int of at least 1, got 0"),
        (lambda: StopAtScore(patience=-1), "StopAtScore: patience must be an int of at least 0, got -1"),
        (lambda: PeriodicEvaluation(0), "PeriodicEvaluation: interval must be an int of at least 1, got 0"),
        (lambda: PeriodicEvaluation(8, 0), "PeriodicEvaluation: episodes must be an int of at least 1, got 0"),
    ],
)
def test_invalid_counts_raise(make, message):
    with pytest.raises(APIUsageError, match=message):
        make()
