"""Elo ratings with 95 % intervals, fitted to all results at once.

Sources: Bradley and Terry, "Rank Analysis of Incomplete Block Designs" (1952), for the model; Hunter, "MM Algorithms
for Generalized Bradley-Terry Models" (2004), for its likelihood, whose maximum is unique.
"""

import math

import numpy as np
import numpy.typing as npt

from pufferlib.training.opponent_pool import FIRST_RATING, SCALE

__all__ = ["fit_ratings"]

Array = npt.NDArray[np.float64]
NATURAL = SCALE / math.log(10)  # Elo points of a logit
PRIOR = 0.5  # additional points for each side of a pair, so that a player without losses has a finite rating
NEWTON_STEPS = 100
TOLERANCE = 1e-9


def fit_ratings(scores: Array) -> tuple[Array, Array]:
    r"""Compute maximum likelihood ratings and the half-width of their 95 % intervals.

    .. math::
        P(i\text{ beats }j) = 1 / (1 + 10^{(R_j - R_i) / 400})

    A draw counts as half a win for both. As a prior, both sides of each pair that has played get half a point more.

    Args:
        scores: Points of player i in games against player j, shape ``(players, players)``. The diagonal is ignored.

    Returns:
        Ratings with a mean of 1000, and half-widths of 1.96 standard errors.
    """
    points = np.where((scores + scores.T) > 0, scores + PRIOR, 0.0)
    np.fill_diagonal(points, 0)
    games = points + points.T
    logits = np.zeros(len(points))
    for _ in range(NEWTON_STEPS):
        expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
        gradient = (points - games * expected).sum(1)
        step = np.linalg.pinv(_information(games, expected)) @ gradient
        logits += step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))  # limit a step to 1 logit
        if np.abs(step).max() < TOLERANCE:
            break
    expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
    variances = np.diag(np.linalg.pinv(_information(games, expected)))
    return FIRST_RATING + NATURAL * (logits - logits.mean()), 1.96 * NATURAL * np.sqrt(np.maximum(variances, 0))


def _information(games: Array, expected: Array) -> Array:
    """Return the Fisher information matrix of the logits."""
    weights = games * expected * (1 - expected)
    return np.asarray(np.diag(weights.sum(1)) - weights)
