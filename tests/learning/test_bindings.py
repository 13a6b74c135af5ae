"""Environments of other packages that must be solved, each with the settings of its binding."""

from importlib.util import find_spec

import pytest

from pufferlib.train.config import load_config
from pufferlib.train.evaluate import evaluate
from pufferlib.train.trainer import Trainer

pytestmark = [pytest.mark.learning, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "package", "steps", "score"),
    [
        ("classic/CartPole-v1", "gymnasium", 200_000, 475.0),
        ("minigrid/MiniGrid-Empty-5x5-v0", "minigrid", 60_000, 0.9),
    ],
)
def test_is_solved(name, package, steps, score, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    config = load_config(name, {"train.total_timesteps": steps, "train.device": "cpu"})
    trainer = Trainer(config, tmp_path)
    trainer.train()
    assert evaluate(config, trainer.policy).score_mean >= score
    assert evaluate(config, None).score_mean < score
