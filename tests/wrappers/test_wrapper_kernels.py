"""Compiled loops of the wrappers: dtypes, and checks of shapes."""

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector._kernels import (
    EpisodeFlags,
    Moments,
    add_rewards,
    clear_episodes,
    push_frames,
    scale_rewards,
)

FLAGS, IDS = np.zeros(3, bool), np.arange(3)
REALS, SINGLES = np.zeros(3), np.zeros(3, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8, np.int16, np.int64, np.bool_])
def test_moments_match_numpy(dtype):
    rows = np.random.default_rng(1).integers(0, 2 if dtype is np.bool_ else 100, (20, 5)).astype(dtype)
    moments, present = Moments(3, 1e-8), np.arange(8) % 2 == 0
    moments.update(rows[:8, ::2], present)  # neither contiguous nor all rows
    moments.update(rows[8:, ::2])
    counted = np.concatenate([rows[:8][present], rows[8:]])[:, ::2].astype(np.float64)
    assert moments.count == 16
    assert np.allclose(moments.mean, counted.mean(0))
    assert np.allclose(moments.var, counted.var(0))
    out = np.zeros((20, 3), np.float32)
    moments.normalize(rows[:, ::2], out, 1.5)
    expected = (rows[:, ::2] - counted.mean(0)) / np.sqrt(counted.var(0) + 1e-8)
    assert np.allclose(out, np.clip(expected, -1.5, 1.5), atol=1e-5)


def test_number_that_is_infinite_at_first_gets_the_moments_of_later_rows():
    moments = Moments(2, 1e-8)
    rows = np.random.default_rng(0).normal(1000, 1, (4, 64, 2))
    moments.update(np.where(np.arange(2) == 1, np.inf, rows[0]))
    for later in rows[1:]:
        moments.update(later)
    assert np.allclose(moments.mean, [rows[..., 0].mean(), rows[1:, :, 1].mean()], atol=0.05)
    assert (moments.var < 2).all()


@pytest.mark.parametrize(("value", "shown"), [(np.inf, 10.0), (-np.inf, -10.0), (np.nan, np.nan)])
def test_infinite_and_missing_numbers_do_not_change_the_statistics(value, shown):
    moments = Moments(2, 1e-8)
    moments.update(np.array([[1, 5], [3, 9]], np.float32))
    moments.update(np.array([[2, value], [2, 5]], np.float32))
    out = np.empty((1, 2), np.float32)
    moments.normalize(np.array([[2, value]], np.float32), out, 10.0)
    assert moments.mean.tolist() == [2, 7]
    np.testing.assert_equal(out, [[0, shown]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: Moments(2, 1e-8).update(np.zeros((4, 3))),
        lambda: Moments(2, 1e-8).update(np.zeros((4, 2)), FLAGS),
        lambda: Moments(2, 1e-8).normalize(np.zeros((4, 2)), np.zeros((3, 2), np.float32), 1),
        lambda: Moments(2, 1e-8).normalize(np.zeros((4, 2)), np.zeros((4, 4), np.float32)[:, ::2], 1),
        lambda: EpisodeFlags(3, 3, True).note(IDS, FLAGS, FLAGS, FLAGS[:2]),
        lambda: EpisodeFlags(3, 3, True).note(IDS + 1, FLAGS, FLAGS, FLAGS),
        lambda: EpisodeFlags(3, 2, True).note_reset(IDS, FLAGS, IDS),
        lambda: add_rewards(REALS, SINGLES[:2], 0.9),
        lambda: add_rewards(REALS, SINGLES, 0.9, FLAGS[:2]),
        lambda: clear_episodes(REALS, FLAGS, FLAGS[:2]),
        lambda: clear_episodes(IDS, FLAGS[:2], FLAGS),
        lambda: scale_rewards(SINGLES, SINGLES[:2], 1, 1),
        lambda: scale_rewards(SINGLES, SINGLES, 1, 1, FLAGS[:2]),
        lambda: push_frames(np.zeros((3, 8), np.uint8), np.zeros((3, 3), np.uint8), 3, FLAGS, False),
        lambda: push_frames(np.zeros((3, 8), np.uint8), np.zeros((3, 4), np.uint8), 3, FLAGS, False),
        lambda: push_frames(np.zeros((3, 8), np.uint8), np.zeros((3, 4), np.uint8), 4, FLAGS[:2], False),
    ],
)
def test_arrays_of_other_shapes_are_refused(call):
    with pytest.raises(APIUsageError, match="expected"):
        call()
