"""Tests of the interquartile mean and the stratified bootstrap, as defined by rliable."""

import itertools

import numpy as np
import pytest

from pufferlib.runs.statistics import bootstrap_interval, estimate_iqm, iqm


@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ([7], 7),
        ([1, 2, 9], 4),  # a quarter of three scores is less than one
        ([9, 1, 2, 4], 3),
        ([1, 5, 3, 100, 4], 4),
        ([[0, 10, 2, 8], [4, 6, 100, -100]], 5),  # scores of all tasks together, 2, 4, 6 and 8 are left
    ],
)
def test_iqm_by_hand(scores: list[float], mean: float) -> None:
    assert iqm(scores) == mean


def test_iqm_of_rows() -> None:
    assert iqm([[9, 1, 2, 4], [1, 1, 1, 9]], axis=1).tolist() == [3, 1]


def test_interval_matches_exact_bootstrap() -> None:
    """Three runs have 27 resamples, so their percentiles are known exactly."""
    runs = [1.0, 2.0, 6.0]
    exact = np.quantile([np.mean(drawn) for drawn in itertools.product(runs, repeat=3)] * 1000, [0.025, 0.975])
    estimate = estimate_iqm(runs)
    assert (estimate.low, estimate.high) == pytest.approx(exact, abs=1e-9)
    assert estimate.value == 3


def test_bootstrap_is_stratified_by_task() -> None:
    """Without strata a resample could have more runs of one task, so the mean would vary."""
    low, high = bootstrap_interval([[0.0, 0.0], [10.0, 10.0]], lambda drawn: drawn.mean(1), resamples=500)
    assert (low, high) == (5, 5)


def test_single_run_has_no_spread() -> None:
    estimate = estimate_iqm([3.0])
    assert (estimate.value, estimate.low, estimate.high) == (3, 3, 3)
