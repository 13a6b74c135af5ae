"""Statistics of a few runs: the interquartile mean and its stratified bootstrap interval.

Source: Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021),
https://arxiv.org/abs/2108.13264, and its library rliable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CONFIDENCE", "RESAMPLES", "Estimate", "bootstrap_interval", "estimate_iqm", "iqm"]


Scores = npt.NDArray[np.float64]

TRIM = 0.25  # share of the scores that is left out at each end
RESAMPLES = 50_000
CONFIDENCE = 0.95
_AT_ONCE = 2_000_000  # maximum size of a block of resamples


@dataclass(frozen=True)
class Estimate:
    """Statistic of several runs with a confidence interval.

    Attributes:
        value: Value of the statistic.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float
    low: float
    high: float


def iqm(scores: npt.ArrayLike, axis: int | None = None) -> Scores:
    """Return the interquartile mean: the mean of the middle half of the scores.

    At each end, 25 % of the scores are left out, rounded down. Of 5 scores, these are the lowest and the highest.

    Args:
        scores: Array of any shape.
        axis: Axis of the mean. None uses all scores.
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
    """Return the percentile interval of a statistic, by the stratified bootstrap.

    Each resample draws as many runs of each task as there are, with replacement and separately for each task.

    Args:
        tasks: Scores of the runs of each task.
        statistic: Function of an array of scores ``(resamples, runs of all tasks)`` that returns one number per
            resample.
        resamples: Number of resamples.
        confidence: Share of the resamples inside the interval.
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
    """Return the interquartile mean of all runs of all tasks, with its 95 % interval.

    Args:
        tasks: Scores of the runs of each task. Several tasks must have the same scale.
        resamples: Number of resamples of the bootstrap.
    """
    scores = np.concatenate([np.asarray(scores, np.float64) for scores in tasks])
    low, high = bootstrap_interval(tasks, lambda drawn: iqm(drawn, axis=1), resamples=resamples)
    return Estimate(float(iqm(scores)), low, high)
