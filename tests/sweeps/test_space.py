"""Spaces: what each distribution draws, and what it refuses."""

import numpy as np
import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.sweeps.space import Space, check_table, read_bound


def draws(space, count=2000):
    distribution = space.to_optuna()
    rng = np.random.default_rng(0)
    if distribution.log:
        drawn = np.exp(rng.uniform(np.log(distribution.low), np.log(distribution.high), count))
    else:
        drawn = rng.uniform(distribution.low, distribution.high, count)
    return np.array([space.setting_of(round(each) if space.is_whole else each) for each in drawn])


@pytest.mark.parametrize(
    ("space", "low", "middle", "high"),
    [
        (Space("train.clip_coef", "uniform", 0.1, 0.3), 0.1, 0.2, 0.3),
        (Space("train.learning_rate", "log", 1e-4, 1e-2), 1e-4, 1e-3, 1e-2),
        (Space("train.gamma", "logit", 0.01, 0.99), 0.01, 0.5, 0.99),
        (Space("train.horizon", "pow2", 16, 256, is_whole=True), 16, 64, 256),
        (Space("train.update_epochs", "int", 1, 9, is_whole=True), 1, 5, 9),
        (Space("train.total_timesteps", "log", 100, 10_000, is_whole=True), 100, 1000, 10_000),
    ],
    ids=lambda value: value.distribution if isinstance(value, Space) else "",
)
def test_half_of_what_is_drawn_is_below_the_middle_of_its_scale(space, low, middle, high):
    values = draws(space)
    assert values.min() >= low
    assert values.max() <= high
    assert np.median(values) == pytest.approx(middle, rel=0.15)
    assert all(space.holds(value) for value in values)
    assert all(isinstance(value.item(), int) for value in values) == space.is_whole


def test_a_value_survives_the_way_to_optuna_and_back():
    for value in (0.9, 0.99, 0.9987, 0.5):
        space = Space("train.gamma", "logit", 0.5, 0.9999)
        assert space.setting_of(space.drawn_of(value)) == pytest.approx(value, rel=1e-12)
    space = Space("train.optimizer", "choice", choices=("adam", "muon"))
    assert space.setting_of(space.drawn_of("muon")) == "muon"


def test_a_value_outside_is_taken_to_the_nearest_bound():
    space = Space("train.ent_coef", "log", 1e-5, 0.2)
    assert space.setting_of(space.drawn_of(0.0)) == 1e-5
    assert not space.holds(0.0)
    assert Space("train.horizon", "pow2", 8, 64, is_whole=True).drawn_of(100) == 6


def test_the_name_of_a_parameter_is_that_of_its_scale():
    assert Space("train.gamma", "logit", 0.5, 0.9).key == "logit(train.gamma)"
    assert Space("train.horizon", "pow2", 8, 64).key == "log2(train.horizon)"
    assert Space("train.ent_coef", "log", 0.1, 1).key == "train.ent_coef"


@pytest.mark.parametrize(
    ("distribution", "low", "high", "message"),
    [
        ("uniform", 2, 1, "min must be less than max, got min 2 and max 1"),
        ("log", 0, 1, "min must be above 0 for log, got 0 to 1"),
        ("logit", 0.5, 1.0, "between 0 and 1, and neither, for logit, got 0.5 to 1.0"),
        ("pow2", 10, 100, "powers of two for pow2, got 10 to 100; try 8 and 128"),
        ("uniform", 0, float("inf"), "min must be less than max"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(distribution, low, high, message):
    with pytest.raises(APIUsageError, match=message):
        Space("train.ent_coef", distribution, low, high)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"distribution": "log", "min": 1, "maximum": 2}, "unknown key 'maximum'; did you mean"),
        ({"distribution": "logg", "min": 1, "max": 2}, "unknown distribution 'logg'; did you mean 'log'"),
        ({"min": 1, "max": 2}, "must have a distribution: uniform, log, .*; got none"),
        ({"distribution": "log", "min": 1}, "log needs max, got distribution = 'log', min = 1"),
        ({"distribution": "choice", "choices": []}, "choices must be a list of at least one value"),
    ],
)
def test_a_table_that_is_no_space_is_refused(table, message):
    with pytest.raises((APIUsageError, UnknownNameError), match=f"mine.toml: sweep.train.gamma: {message}"):
        check_table("mine.toml: sweep.train.gamma", table)


def test_a_bound_may_be_a_multiple_of_the_environments_own_value():
    assert read_bound("here", "min", "0.1x", 0.02) == pytest.approx(0.002)
    with pytest.raises(APIUsageError, match=r"min '0.1x' is a multiple of the environment's own value, which is 0"):
        read_bound("here", "min", "0.1x", 0)
    with pytest.raises(APIUsageError, match=r"here: min must be a number, or a multiple .*, got 'ax'"):
        read_bound("here", "min", "ax", 1.0)
