"""Worker processes of a search."""

import os

import pytest

from pufferlib.sweeps.spaces import with_settings
from pufferlib.sweeps.workers import fit_minibatch, split_cores
from pufferlib.training.config import load_config


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
def test_split_cores(workers, usable, shares):
    assert split_cores(workers, usable) == shares


@pytest.mark.parametrize(
    ("memory", "minibatch_size", "fitting"),
    [
        ("none", 256, 256),
        ("none", 96, 32),
        ("none", 4096, 512),  # the whole rollout of 16 steps and 32 agents
        ("LSTM", 96, 32),  # whole segments
        ("LSTM", 8, 16),
    ],
)
def test_fit_minibatch_divides_steps_of_update(memory, minibatch_size, fitting):
    settings = {"train.horizon": 16, "train.minibatch_size": minibatch_size, "policy.memory": memory}
    config = fit_minibatch(with_settings(load_config("squared"), settings), num_agents=32)
    assert config.train.minibatch_size == fitting
