"""NoveltyReward, compared with counts in Python."""

import functools
from collections import Counter

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import NoveltyReward
from tests.wrappers.batches import MATRIX, Spy, make, play, varied

PLACES = functools.partial(varied, observation_space=Box(0, 2, (2,), np.int64))


def bonuses(rows, coef):
    """Return the bonus of each recorded row."""
    counts, seen, found = Counter(), {}, []
    for row in rows:
        place = row["observation"].tobytes()
        counts[place] += row["acted"] or row["begins"]
        if row["begins"]:
            seen[row["agent"]] = {place}
            found.append(0.0)
        elif row["acted"] and place not in seen[row["agent"]]:
            seen[row["agent"]].add(place)
            found.append(coef / np.sqrt(counts[place]))
        else:
            found.append(0.0)
    return found


@pytest.mark.parametrize(("layout", "autoreset"), MATRIX)
def test_bonus_is_paid_once_per_episode_and_falls_with_the_count(layout, autoreset):
    spy = Spy(make(PLACES(), layout=layout, autoreset=autoreset))
    with NoveltyReward(spy, coef=0.5) as vecenv:
        paid = [reward for received in play(vecenv, 40) for reward in received[1].tolist()]
        expected = bonuses(spy.rows, coef=0.5)
        plain = [row["reward"] for row in spy.rows]
        assert sum(bonus > 0 for bonus in expected) > 20
        if autoreset != "disabled":  # a reset of some environments returns rows that recv does not
            assert np.allclose(paid, np.add(plain, expected)[: len(paid)], atol=1e-6)
        assert vecenv.paid == pytest.approx(sum(expected))


def test_counts_are_saved_and_only_rise_in_training():
    with NoveltyReward(make(PLACES()), coef=1.0) as vecenv, NoveltyReward(make(PLACES()), coef=1.0) as other:
        for _ in play(vecenv, 20):
            pass
        other.load_state_dict(vecenv.state_dict())
        other.training = False
        for _ in play(other, 20):
            pass
        (counts,) = (value for key, value in other.state_dict().items() if key.endswith(".counts"))
        assert counts.sum() == 4 * 21
        assert 0 < other.paid < vecenv.paid


def test_wrong_arguments_are_refused():
    with make(PLACES()) as vecenv, pytest.raises(APIUsageError, match="coef must be above 0, got -1"):
        NoveltyReward(vecenv, coef=-1)
    with make() as vecenv, pytest.raises(APIUsageError, match=r"novelty_coef: .* integers, got float32: .* round"):
        NoveltyReward(vecenv)
    space = Dict({"a": Discrete(3), "b": Dict({"c": Box(0, 1, (2,))})})
    with make(varied(observation_space=space)) as vecenv, pytest.raises(APIUsageError, match=r"in the field b\.c"):
        NoveltyReward(vecenv)
