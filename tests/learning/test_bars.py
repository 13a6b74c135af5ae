"""Learning bars: what the settings of an environment reach with every seed, over a thousand episodes."""

import statistics

import pytest

from pufferlib.train.config import load_config
from pufferlib.train.evaluate import evaluate
from pufferlib.train.trainer import Trainer

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

BARS = [  # the mean over the episodes of a figure that the environment reports
    ("breakout", "score", 820.0),  # of 864; three seeds reached 855 to 862
    ("pong", "score", 20.5),  # of 21; three seeds 20.8 to 20.9
    ("cartpole", "score", 500.0),  # all there is, in every episode
    ("connect4", "perf", 0.95),  # games won against an opponent that looks four moves ahead
    ("go", "perf", 0.95),  # games won; three seeds reached 0.998 to 1
    ("rware", "score", 3.0),  # deliveries of each robot; 5.2 with seed 42
    ("trash_pickup", "score", 12.0),  # of 15 pieces; three seeds reached 14 to 15
    ("tripletriad", "perf", 0.8),  # games won; two seeds reached 0.83 and 0.86
]


@pytest.mark.parametrize("seed", [1, 2, 42])
@pytest.mark.parametrize(("name", "figure", "bar"), BARS)
def test_a_run_reaches_its_bar_with_every_seed(name, figure, bar, seed, tmp_path):
    result = play(name, seed, tmp_path)
    assert result.metrics()[figure] >= bar


@pytest.mark.parametrize("seed", [1, 2, 42])
def test_nine_races_of_ten_meet_the_quota_of_every_day(seed, tmp_path):
    reports = play("enduro", seed, tmp_path).reports
    assert statistics.fmean(report["perf"] == 1 for report in reports) >= 0.9


def play(name, seed, run_dir):
    """Train with the environment's own settings, and play a thousand episodes."""
    trainer = Trainer(load_config(name, {"train.device": "cpu", "train.seed": seed}), run_dir)
    try:
        while trainer.agent_steps < trainer.config.train.total_timesteps:
            trainer.step()
        return evaluate(trainer.config, trainer.policy, episodes=1000)
    finally:
        trainer.close()
