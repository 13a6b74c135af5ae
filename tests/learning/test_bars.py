"""Learning bars: scores that the settings of an environment must reach with every seed, over a thousand episodes."""

import math
import statistics

import pytest

from pufferlib.settings.config import load_config
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer
from tests.needs import missing_binding

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(5400)]

BARS = [  # environment, metric, and the mean of the metric over the episodes
    ("breakout", "score", 820.0),  # of 864, three seeds reached 855 to 862
    ("pong", "score", 20.5),  # of 21, three seeds 20.8 to 20.9
    ("cartpole", "score", 500.0),  # the maximum, in every episode, fifteen seeds reached it
    ("connect4", "perf", 0.95),  # games won against an opponent that looks four moves ahead
    ("go", "perf", 0.95),  # games won, three seeds reached 0.998 to 1
    ("rware", "score", 4.7),  # deliveries of each robot, three seeds reached 4.9 to 5.5
    ("trash_pickup", "score", 13.2),  # of 15 pieces, three seeds reached 13.5 to 15
    ("tripletriad", "perf", 0.8),  # games won, three seeds reached 0.82 to 0.85
    ("tactical", "perf", 0.8),  # games won against the script, three seeds won 0.844 to 0.853
    ("nmmo3", "score", 6.36),  # the lower of both levels, of 8, three seeds reached 6.6 to 6.8
    ("moba", "perf", 0.99),  # games won, three seeds won all
    ("snake", "score", 100.0),  # length, three seeds reached 109 to 119
]
LIVES = 1000  # played after each run, an episode counts the first life of each agent
AGENTS = {"nmmo3": 16, "snake": 16}  # agents of one environment


@pytest.mark.parametrize("seed", [1, 2, 42])
@pytest.mark.parametrize(("name", "metric", "bar"), BARS)
def test_training_reaches_bar(name, metric, bar, seed, tmp_path):
    result = play(name, seed, tmp_path)
    assert result.metrics()[metric] >= bar


@pytest.mark.parametrize("seed", [1, 2, 42])
def test_enduro_meets_every_quota_in_nine_of_ten_races(seed, tmp_path):
    reports = play("enduro", seed, tmp_path).reports
    assert statistics.fmean(report["perf"] == 1 for report in reports) >= 0.9


@pytest.mark.parametrize(("name", "steps"), [("box2d/LunarLander-v3", 500_000), ("mujoco/HalfCheetah-v5", 300_000)])
def test_score_interval_is_above_random_play(name, steps, tmp_path):
    if reason := missing_binding(name.partition("/")[0]):
        pytest.skip(reason)
    settings = {"vec.backend": "Serial", "train.total_timesteps": steps}
    learned = play(name, 42, tmp_path, episodes=32, settings=settings)
    random = evaluate(load_config(name), None, episodes=32)
    assert learned.score_mean - half_width(learned) > random.score_mean + half_width(random)


def half_width(result):
    """Return half the width of the 95 % interval of the mean score."""
    return 1.96 * result.score_std / math.sqrt(result.episodes)


def play(name, seed, run_dir, episodes=None, settings=None):
    """Train with the settings of the environment and ``settings``. Return the evaluation over ``episodes``."""
    episodes = episodes or math.ceil(LIVES / AGENTS.get(name, 1))
    config = load_config(name, {"train.device": "cpu", "train.seed": seed, **(settings or {})})
    trainer = Trainer(config, run_dir)
    try:
        while trainer.agent_steps < trainer.config.train.total_timesteps:
            trainer.step()
        return evaluate(trainer.config, trainer.policy, episodes=episodes)
    finally:
        trainer.close()
