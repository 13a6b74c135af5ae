"""Tests of fit_ratings with known results."""

import math

import numpy as np
import pytest

from pufferlib.selfplay import fit_ratings


def difference(wins, losses):
    """Return the Elo difference of two players by the formula, with half a win added for each."""
    return 400 * math.log10((wins + 0.5) / (losses + 0.5))


@pytest.mark.parametrize(("wins", "losses"), [(75, 25), (50, 50), (100, 0), (1, 3)])
def test_ratings_of_two_players_match_formula(wins, losses):
    ratings, widths = fit_ratings(np.array([[0.0, wins], [losses, 0.0]]))
    assert ratings[0] - ratings[1] == pytest.approx(difference(wins, losses))
    assert ratings.mean() == pytest.approx(1000)
    share, games = (wins + 0.5) / (wins + losses + 1), wins + losses + 1
    # The error of the difference is that of a logit. The mean is fixed, so each rating has half of it.
    error = 400 / math.log(10) / math.sqrt(games * share * (1 - share))
    np.testing.assert_allclose(widths, 1.96 * error / 2)


def test_ratings_are_recovered_within_intervals():
    rng, truth = np.random.default_rng(0), np.array([1300.0, 1100.0, 1000.0, 600.0])
    inside = []
    for _ in range(100):
        scores = np.zeros((4, 4))
        for i in range(4):
            for j in range(i):
                scores[i, j] = rng.binomial(200, 1 / (1 + 10 ** ((truth[j] - truth[i]) / 400)))
                scores[j, i] = 200 - scores[i, j]
        ratings, widths = fit_ratings(scores)
        inside.append(np.abs(ratings - truth) <= widths)
    assert 0.9 < np.mean(inside) < 0.99


def test_players_are_rated_through_common_opponents():
    scores = np.array([[0, 30, 0], [10, 0, 30], [0, 10, 0.0]])
    ratings, _ = fit_ratings(scores)
    assert ratings[0] - ratings[2] == pytest.approx(2 * difference(30, 10))


def test_ratings_without_games_are_equal():
    ratings, widths = fit_ratings(np.zeros((3, 3)))
    assert ratings.tolist() == [1000] * 3
    assert widths.tolist() == [0] * 3
