"""Elo ratings of players, fitted to the results of all of their games at once, with 95 % intervals.

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
PRIOR = 0.5  # points that each side of a pair gets besides, so that a player who won everything has a rating
NEWTON_STEPS = 100
TOLERANCE = 1e-9


def fit_ratings(scores: Array) -> tuple[Array, Array]:
    r"""Ratings that make the results likeliest, and half the width of their 95 % intervals.

    .. math::
        P(i\text{ beats }j) = 1 / (1 + 10^{(R_j - R_i) / 400})

    A draw is half a win of each. Each pair that has played gets half a point for either side besides.

    Args:
        scores: Points of player i in the games against player j, ``(players, players)``; the diagonal does not count.

    Returns:
        Ratings, whose mean is 1000, and the half widths, which are 1.96 standard errors.
    """
    points = np.where((scores + scores.T) > 0, scores + PRIOR, 0.0)
    np.fill_diagonal(points, 0)
    games = points + points.T
    logits = np.zeros(len(points))
    for _ in range(NEWTON_STEPS):
        expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
        gradient = (points - games * expected).sum(1)
        step = np.linalg.pinv(_information(games, expected)) @ gradient
        logits += step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))  # at most a logit, far from the maximum
        if np.abs(step).max() < TOLERANCE:
            break
    expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
    variances = np.diag(np.linalg.pinv(_information(games, expected)))
    return FIRST_RATING + NATURAL * (logits - logits.mean()), 1.96 * NATURAL * np.sqrt(np.maximum(variances, 0))


def _information(games: Array, expected: Array) -> Array:
    """Fisher information of the logits."""
    weights = games * expected * (1 - expected)
    return np.asarray(np.diag(weights.sum(1)) - weights)
