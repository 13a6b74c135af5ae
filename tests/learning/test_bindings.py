"""Environments of other packages that are trained on, each with the settings of its binding; some must be solved."""

import math

import pytest

from pufferlib.registry.facts import all_facts
from pufferlib.runs import checkpoint
from pufferlib.training.config import load_config
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer
from tests.learning.until import train_until
from tests.needs import OWN_PROCESS, missing_binding

AT_LENGTH = [  # those whose long runs docs/results.md shows
    "atari/pong",
    "atari/breakout",
    "nethack/NetHackScore-v0",
    "procgen/bigfish",
    "minigrid/MiniGrid-DoorKey-5x5-v0",
    "crafter/CrafterReward-v1",
    "nmmo/default",
]
SHORTLY = [
    pytest.param(f"{facts.name}/{facts.conformance[0]}", marks=[pytest.mark.nightly] if facts.isolated else [])
    for facts in all_facts().values()
    if facts.conformance
    and facts.name not in OWN_PROCESS
    and not any(name.startswith(f"{facts.name}/") for name in AT_LENGTH)
]
STEPS = 1024  # or one rollout, where that is longer
FEWER_ENVS = {"procgen/bigfish": {"env.num_envs": 8}}  # of 32, so that one rollout has 4,096 steps

pytestmark = [pytest.mark.all, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "steps", "score"),
    [
        ("classic/CartPole-v1", 300_000, 475.0),
        ("minigrid/MiniGrid-Empty-5x5-v0", 60_000, 0.9),
    ],
)
def test_is_solved(name, steps, score, tmp_path):
    needs(name)
    config = load_config(name, {"train.total_timesteps": steps, "train.device": "cpu"})
    assert evaluate(config, None).score_mean < score
    assert train_until(config, tmp_path, lambda policy: evaluate(config, policy).score_mean, score) >= score


@pytest.mark.parametrize("name", [*AT_LENGTH, *SHORTLY])
def test_trains_with_its_own_settings(name, tmp_path):
    """With the binding's own network, workers and schedule."""
    needs(name)
    few = {"train.total_timesteps": STEPS, "train.update_epochs": 1, **FEWER_ENVS.get(name, {})}
    config = load_config(name, {**few, "train.device": "cpu"})
    metrics = Rows()
    trainer = Trainer(config, tmp_path, loggers=[metrics])
    before = [parameter.detach().clone() for parameter in trainer.policy.parameters()]
    trainer.train()
    assert metrics.rows[-1]["agent_steps"] >= STEPS
    assert all(math.isfinite(row[f"losses/{loss}"]) for row in metrics.rows for loss in ("policy", "value", "entropy"))
    assert any((old != new).any() for old, new in zip(before, trainer.policy.parameters(), strict=True))
    assert checkpoint.read_about(trainer.checkpoint_path).agent_steps == metrics.rows[-1]["agent_steps"]


class Rows:
    """A logger that keeps what it gets."""

    def __init__(self):
        self.rows = []

    def log(self, metrics):
        self.rows.append(metrics)

    def close(self):
        pass


def needs(name):
    if reason := missing_binding(name.partition("/")[0]):
        pytest.skip(reason)
