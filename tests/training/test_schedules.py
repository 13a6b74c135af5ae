import contextlib
import dataclasses
import math

import pytest

from pufferlib.errors import APIUsageError
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.training.build import fit_to_agents
from pufferlib.training.state import SCHEDULED, adapted_rate, annealed, share
from pufferlib.training.trainer import Trainer


@pytest.mark.parametrize(
    ("schedule", "least", "expected"),
    [
        ("constant", 0.5, [1, 1, 1, 1]),
        ("linear", 0.0, [1, 0.75, 0, 0]),
        ("linear", 0.2, [1, 0.8, 0.2, 0.2]),
        ("cosine", 0.0, [1, 0.8535534, 0, 0]),  # (1 + cos(pi / 4)) / 2
        ("cosine", 0.5, [1, 0.9267767, 0.5, 0.5]),
    ],
)
def test_share_by_hand(schedule, least, expected):
    assert [share(schedule, progress, least) for progress in (0, 0.25, 1, 1.5)] == pytest.approx(expected)


def test_each_setting_has_its_own_schedule():
    config = TrainConfig(
        learning_rate=0.1,
        clip_coef=0.2,
        clip_schedule="linear",
        min_clip_ratio=0.5,
        ent_coef=0.3,
        ent_schedule="cosine",
        priority_beta=0.4,
    )
    half = annealed(config, 0.5)
    assert (half.learning_rate, half.clip_coef) == pytest.approx((0.05, 0.15))
    assert (half.ent_coef, half.priority_beta) == pytest.approx((0.15, 0.7))
    assert annealed(config, 1.0).priority_beta == 1.0
    changed = {"learning_rate", "clip_coef", "ent_coef", "priority_beta"}
    before, after = dataclasses.asdict(config), dataclasses.asdict(half)
    assert {name for name in before if before[name] != after[name]} == changed


def test_annealed_changes_only_scheduled_coefficients_of_the_loss():
    """Compiled and recorded losses get these as tensors. Another one that changes would stay at its first value."""
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    schedules = {name: "linear" for name in names if name.endswith("_schedule")}
    coefficients = {name: 0.5 for name in names if name.endswith("_coef")}
    config = TrainConfig(**schedules, **coefficients)
    before, after = dataclasses.asdict(config), dataclasses.asdict(annealed(config, 0.5))
    outside_the_loss = {"learning_rate", "priority_beta"}
    assert {name for name in before if before[name] != after[name]} == {*SCHEDULED} | outside_the_loss


def test_annealed_keeps_constant_settings():
    config = TrainConfig(lr_schedule="constant", priority_beta=1.0, clip_coef=0.1, ent_coef=0.007)
    assert annealed(config, 0.3) == config


@pytest.mark.parametrize(
    ("settings", "divergences", "expected"),
    [
        # Below 0.005 the rate is multiplied by 1.5, above 0.02 it is divided by 1.5.
        ({}, [0.0049, 0.005, 0.01, 0.02, 0.021, 0.0], [1.5e-3, 1.5e-3, 1.5e-3, 1.5e-3, 1e-3, 1.5e-3]),
        ({}, [0.0] * 7, [1.5e-3, 2.25e-3, 3.375e-3, 5.0625e-3, 7.59375e-3, 1e-2, 1e-2]),
        ({"learning_rate": 2e-6}, [1.0] * 3, [2e-6 / 1.5, 1e-6, 1e-6]),
        ({"min_lr_ratio": 0.5}, [1.0] * 3, [1e-3 / 1.5, 5e-4, 5e-4]),
        ({"learning_rate": 0.018}, [0.0, 1.0], [0.018, 0.012]),
        ({"learning_rate": 1e-7}, [1.0, 0.0], [1e-7, 1.5e-7]),
        ({"learning_rate": 0.0}, [1.0, 0.0], [0.0, 0.0]),
        ({}, [math.nan, math.inf], [1e-3, 1e-3 / 1.5]),
    ],
)
def test_adapted_rates_by_hand(settings, divergences, expected):
    config = TrainConfig(lr_schedule="adaptive", target_kl=0.01, **settings)
    rates = [config.learning_rate]
    for divergence in divergences:
        rates.append(adapted_rate(rates[-1], divergence, config))
    assert rates[1:] == pytest.approx(expected)
    assert annealed(config, 0.5).learning_rate == config.learning_rate


ADAPTIVE = {
    "train.lr_schedule": "adaptive",
    "train.target_kl": 1e-3,
    "train.update_epochs": 2,
    "train.minibatch_size": 256,
    "train.horizon": 16,
    "train.total_timesteps": 10**6,
    "train.device": "cpu",
    "env.num_envs": 64,
    "policy.hidden_size": 16,
}


@pytest.mark.parametrize(("optimizer", "min_lr_ratio"), [("adam", 0.0), ("adam", 0.5), ("muon", 0.0)])
def test_adaptive_rate_follows_updates_and_is_resumed(tmp_path, optimizer, min_lr_ratio):
    settings = {"train.optimizer": optimizer, "train.min_lr_ratio": min_lr_ratio}
    config = load_config("squared", {**ADAPTIVE, **settings})
    with contextlib.closing(Trainer(config, tmp_path)) as trainer:
        rows = [trainer.step() for _ in range(4)]
        trainer.save()
        rows += [trainer.step() for _ in range(3)]
    expected = [config.train.learning_rate]
    for row in rows:
        expected.append(adapted_rate(expected[-1], row["losses/approx_kl"], config.train))
    rates = [row["learning_rate"] for row in rows]
    assert rates == expected[:-1]
    assert len(set(rates)) > 2
    with contextlib.closing(Trainer(config, tmp_path)) as resumed:
        assert resumed.restore(trainer.checkpoint_path)
        again = [resumed.step() for _ in range(3)]
    assert [row["learning_rate"] for row in again] == rates[4:]
    assert [row["losses/approx_kl"] for row in again] == [row["losses/approx_kl"] for row in rows[4:]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_kl": 0.0}, "train.target_kl must be above 0, got 0; for example 0.01"),
        ({"update_epochs": 1, "minibatch_size": 1024}, "must have more than one gradient step, got 1; raise train.upd"),
        ({"update_epochs": 1, "accumulate_minibatches": 4}, "must have more than one gradient step, got 1"),
    ],
)
def test_adaptive_rate_without_divergence_raises(settings, message):
    config = TrainConfig(**{"lr_schedule": "adaptive", "target_kl": 0.01, "minibatch_size": 256, **settings})
    with pytest.raises(APIUsageError, match=message):
        fit_to_agents(dataclasses.replace(config, horizon=16), 64, False)


def test_adaptive_rate_with_one_step_is_valid_for_stale_rollouts():
    config = TrainConfig(lr_schedule="adaptive", target_kl=0.01, minibatch_size=1024, horizon=16, overlap="learning")
    assert fit_to_agents(config, 64, False).update_epochs == 1
