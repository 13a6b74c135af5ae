"""Learning curves of several runs as one line with a band."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pufferlib.training.episodes import SCORE
from pufferlib.training.report import Series, read_scores, smooth
from pufferlib.training.statistics import iqm

__all__ = ["Band", "Curve", "band_of", "read_curve"]

POINTS = 200
RESAMPLES = 2000  # at each point: a picture shows no more


@dataclass(frozen=True)
class Curve:
    """The score of one run in training.

    Attributes:
        x: Agent steps or seconds, rising.
        score: Mean score of the episodes that ended in each update.
    """

    x: Series
    score: Series

    @property
    def smooth(self) -> Series:
        """The scores, smoothed as in the picture of a run."""
        return smooth(self.score) if self.score.size else self.score


@dataclass(frozen=True)
class Band:
    """Several curves as one.

    Attributes:
        x: Points at equal distances.
        middle: Interquartile mean of the smoothed curves that come as far.
        low: Lower end of its 95 % bootstrap interval; NaN where fewer than two curves come as far.
        high: Upper end.
    """

    x: Series
    middle: Series
    low: Series
    high: Series


def read_curve(metrics: Path, x: str = "agent_steps", y: str = SCORE) -> Curve:
    """Return the curve in a ``metrics.jsonl``; updates without the metric are left out.

    Args:
        metrics: The file.
        x: The metric that it is drawn over: "agent_steps" or "uptime_s".
        y: The metric that is drawn.

    Raises:
        APIUsageError: The file cannot be read.
    """
    return Curve(*read_scores(metrics, x, y))


def band_of(curves: Sequence[Curve]) -> Band:
    """One line for curves that repeat each other: interquartile mean and 95 % interval at each point.

    A point counts the curves that reach it, so that a run that goes on yet does not cut the others short.
    """
    curves = [curve for curve in curves if curve.x.size]
    if not curves:
        nothing = np.empty(0)
        return Band(nothing, nothing, nothing, nothing)
    x = np.linspace(min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), POINTS)
    scores = np.array([np.interp(x, curve.x, curve.smooth, left=np.nan, right=np.nan) for curve in curves])
    middle, low, high = (np.full(POINTS, np.nan) for _ in range(3))
    rng = np.random.default_rng(0)
    for i in range(POINTS):
        here = scores[np.isfinite(scores[:, i]), i]
        if here.size:
            middle[i] = iqm(here)
        if here.size > 1:
            drawn = here[rng.integers(here.size, size=(RESAMPLES, here.size))]
            low[i], high[i] = np.quantile(iqm(drawn, axis=1), [0.025, 0.975])
    return Band(x, middle, low, high)
