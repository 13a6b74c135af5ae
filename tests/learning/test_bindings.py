"""Training in environments of bindings, with the settings of each binding. Some environments must be solved."""

import math

import pytest

from pufferlib.registry.facts import all_facts
from pufferlib.runs import checkpoint
from pufferlib.settings.config import load_config
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer
from tests.learning.until import train_until
from tests.loggers import ListLogger
from tests.needs import OWN_PROCESS, missing_binding
from tests.tiers import as_nightly

DOCUMENTED = [  # environments with long runs in docs/results.md or docs/known-good.md
    "atari/pong",
    "atari/breakout",
    "nethack/NetHackScore-v0",
    "procgen/bigfish",
    "minigrid/MiniGrid-DoorKey-5x5-v0",
    "crafter/CrafterReward-v1",
    "nmmo/default",
]
LONG = ("atari/breakout", "procgen/bigfish")  # about half a minute each
OTHERS = [
    pytest.param(f"{facts.name}/{facts.conformance[0]}", marks=[pytest.mark.nightly] if facts.isolated else [])
    for facts in all_facts().values()
    if facts.conformance
    and facts.name not in OWN_PROCESS
    and not any(name.startswith(f"{facts.name}/") for name in DOCUMENTED)
]
STEPS = 1024  # or one rollout if that is longer
FEWER_ENVS = {"procgen/bigfish": {"env.num_envs": 8}}  # instead of 32, so that one rollout has 4,096 steps

pytestmark = [pytest.mark.all, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "steps", "score"),
    [
        ("classic/CartPole-v1", 300_000, 475.0),
        ("minigrid/MiniGrid-Empty-5x5-v0", 60_000, 0.9),
    ],
)
def test_env_is_solved(name, steps, score, tmp_path):
    skip_without_binding(name)
    config = load_config(name, {"train.total_timesteps": steps, "train.device": "cpu"})
    assert evaluate(config, None).score_mean < score
    assert train_until(config, tmp_path, lambda policy: evaluate(config, policy).score_mean, score) >= score


@pytest.mark.parametrize("name", [*(as_nightly(name) if name in LONG else name for name in DOCUMENTED), *OTHERS])
def test_binding_trains_with_its_settings(name, tmp_path):
    skip_without_binding(name)
    few = {"train.total_timesteps": STEPS, "train.update_epochs": 1, **FEWER_ENVS.get(name, {})}
    config = load_config(name, {**few, "train.device": "cpu"})
    metrics = ListLogger()
    trainer = Trainer(config, tmp_path, loggers=[metrics])
    before = [parameter.detach().clone() for parameter in trainer.policy.parameters()]
    trainer.train()
    assert metrics[-1]["agent_steps"] >= STEPS
    assert all(math.isfinite(row[f"losses/{loss}"]) for row in metrics for loss in ("policy", "value", "entropy"))
    assert any((old != new).any() for old, new in zip(before, trainer.policy.parameters(), strict=True))
    assert checkpoint.read_about(trainer.checkpoint_path).agent_steps == metrics[-1]["agent_steps"]


def skip_without_binding(name):
    if reason := missing_binding(name.partition("/")[0]):
        pytest.skip(reason)
