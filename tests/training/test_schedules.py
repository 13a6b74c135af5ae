import dataclasses

import pytest

from pufferlib.training.config import TrainConfig
from pufferlib.training.state import annealed, share


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


def test_annealed_keeps_constant_settings():
    config = TrainConfig(lr_schedule="constant", priority_beta=1.0, clip_coef=0.1, ent_coef=0.007)
    assert annealed(config, 0.3) == config
