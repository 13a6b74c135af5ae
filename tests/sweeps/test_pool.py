"""Cores of the processes that train trials."""

import os

import pytest

from pufferlib.sweeps.pool import shares_of_cores


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("workers", "usable", "shares"),
    [
        (2, 8, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (3, 8, [[0, 1], [2, 3], [4, 5]]),
        (2, 4, [[0, 1], [2, 3]]),  # a container may use four of eight
        (1, 1, [[0]]),
        (3, 2, [[0], [1], [0]]),
    ],
)
def test_workers_share_the_cores_that_they_may_use(workers, usable, shares):
    assert shares_of_cores(workers, usable) == shares
