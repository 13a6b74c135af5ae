"""Statistics of a few runs: the interquartile mean and its stratified bootstrap interval.

Agarwal and others, Deep Reinforcement Learning at the Edge of the Statistical Precipice
(https://arxiv.org/abs/2108.13264), whose library rliable defines both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Estimate", "bootstrap_interval", "estimate_iqm", "iqm"]


Scores = npt.NDArray[np.float64]

TRIM = 0.25  # share of the scores that is left out at either end
RESAMPLES = 50_000
CONFIDENCE = 0.95
_AT_ONCE = 2_000_000  # numbers that a block of resamples holds


@dataclass(frozen=True)
class Estimate:
    """A statistic of several runs, and the interval that it lies in.

    Attributes:
        value: The statistic.
        low: Lower end of the interval.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def iqm(scores: npt.ArrayLike, axis: int | None = None) -> Scores:
    """The interquartile mean: of the middle half of the scores, 25 % being left out at either end.

    As many are left out as fit whole into a quarter: of 5 scores the least and the greatest.

    Args:
        scores: An array of any shape.
        axis: The axis that it is taken over; None is all of them together.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=axis)
    axis = 0 if axis is None else axis
    count = ordered.shape[axis]
    left_out = int(TRIM * count)
    middle = np.take(ordered, np.arange(left_out, count - left_out), axis=axis)
    return np.asarray(middle.mean(axis=axis))


def bootstrap_interval(
    tasks: Sequence[npt.ArrayLike],
    statistic: Callable[[Scores], Scores],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of a statistic by the stratified bootstrap.

    Each resample draws as many runs of each task as there are, with replacement and apart from those of other tasks.

    Args:
        tasks: For each task, the scores of its runs.
        statistic: Takes scores as an array [resamples, runs of all tasks], gives one number for each resample.
        resamples: Number of resamples.
        confidence: Share of the resamples that lies inside.
        seed: Seed of the draws.
    """
    runs = [np.asarray(scores, np.float64) for scores in tasks]
    rng = np.random.default_rng(seed)
    block = max(1, _AT_ONCE // sum(map(len, runs)))
    values = []
    for start in range(0, resamples, block):
        count = min(block, resamples - start)
        drawn = [scores[rng.integers(len(scores), size=(count, len(scores)))] for scores in runs]
        values.append(statistic(np.concatenate(drawn, axis=1)))
    outside = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(values), [outside, 1 - outside])
    return float(low), float(high)


def estimate_iqm(*tasks: npt.ArrayLike, resamples: int = RESAMPLES) -> Estimate:
    """The interquartile mean of all runs of all tasks, with its 95 % interval.

    Args:
        tasks: For each task, the scores of its runs; those of several tasks must have one scale.
        resamples: Of the bootstrap.
    """
    scores = np.concatenate([np.asarray(scores, np.float64) for scores in tasks])
    low, high = bootstrap_interval(tasks, lambda drawn: iqm(drawn, axis=1), resamples=resamples)
    return Estimate(float(iqm(scores)), low, high)
