"""Worker processes of a search."""

import os

import pytest
import torch

from pufferlib.settings.config import load_config
from pufferlib.sweeps.spaces import with_settings
from pufferlib.sweeps.workers import fit_minibatch, split_cores, use_own_gpu


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
        ("none", 96, 64),
        ("none", 4096, 512),  # the whole rollout of 16 steps and 32 agents
        ("LSTM", 96, 64),  # whole segments
        ("LSTM", 8, 16),
    ],
)
def test_fit_minibatch_divides_steps_of_update(memory, minibatch_size, fitting):
    settings = {"train.horizon": 16, "train.minibatch_size": minibatch_size, "policy.memory": memory}
    config = fit_minibatch(with_settings(load_config("squared"), settings), num_agents=32)
    assert config.train.minibatch_size == fitting


@pytest.mark.parametrize(
    ("device", "gpus", "current"),
    [("auto", 4, 1), ("cuda", 4, 1), ("auto", 1, 0), ("auto", 0, 0), ("cuda:2", 4, 0), ("cpu", 4, 0)],
)
def test_workers_take_gpus_in_turns(monkeypatch, device, gpus, current):
    """The current GPU changes, not the settings, since the runs must be valid on machines with fewer GPUs."""
    chosen = [0]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    use_own_gpu(load_config("squared", {"train.device": device}), index=5)
    assert chosen[-1] == current
