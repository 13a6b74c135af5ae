"""Ranks learn as one process with all of their environments would, and say what does not fit."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from pufferlib.errors import APIUsageError
from pufferlib.train import checkpoint
from pufferlib.train.config import load_config
from pufferlib.train.distributed.place import Place, place_of_this_process
from pufferlib.train.distributed.rank_config import check_agents, config_of_all
from pufferlib.train.distributed.ranks import ALONE, Ranks
from pufferlib.train.trainer import Trainer
from tests.train.ranks import AGENTS, Patchy, ThreadRanks, make_config, train_as_one, train_in_threads, updates_of


def weights(trainer):
    return parameters_to_vector(trainer.policy.parameters()).detach()


@pytest.mark.parametrize(
    "settings",
    [
        {"train.optimizer": "adam"},
        {"train.optimizer": "muon", "train.norm_adv": False},
        {"policy.memory": "MinGRU", "train.target_kl": 0.02},
    ],
    ids=["adam", "muon", "memory"],
)
def test_two_ranks_learn_as_one_with_twice_the_environments(settings, tmp_path):
    (first, of_first), (second, of_second) = train_in_threads(tmp_path, settings)
    whole, of_whole = train_as_one(tmp_path, settings)
    assert torch.equal(weights(first), weights(second))
    start = weights(Trainer(make_config(settings, AGENTS), tmp_path, vecenv=Patchy()))
    moved = (weights(whole) - start).abs().max()
    assert moved > 1e-2
    torch.testing.assert_close(weights(first), weights(whole), rtol=0, atol=1e-5 * float(moved))
    for mine, theirs, expected in zip(of_first, of_second, of_whole, strict=True):
        for name, value in expected.items():
            if name != "sps" and "_s" not in name[-2:]:
                assert mine[name] == theirs[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    assert first.collector.reward_scale == pytest.approx(whole.collector.reward_scale, rel=1e-5) != 1.0


def test_the_ranks_share_the_moments_of_all_that_they_have_seen(tmp_path):
    settings = {"train.normalize_observations": True, "train.normalize_rewards": True}
    (first, _), (second, _) = train_in_threads(tmp_path, settings)
    seen = first.policy.state_dict()["observation_moments.mean"], first.policy.state_dict()["observation_moments.var"]
    assert torch.equal(weights(first), weights(second))
    for name, value in first.policy.state_dict().items():
        assert torch.equal(value, second.policy.state_dict()[name]), name
    assert seen[0].numpy() == pytest.approx([41.5, 41.7], abs=0.2)  # 40 + 3 u; u above 0.2 where agents are there
    assert seen[1].numpy() == pytest.approx([9 / 12, 9 * 0.64 / 12], rel=0.2)
    whole, _ = train_as_one(tmp_path, settings)
    for name, value in whole.policy.state_dict().items():
        if name.startswith("observation_moments"):
            assert np.allclose(first.policy.state_dict()[name], value, rtol=1e-9), name


def test_ranks_have_environments_and_actions_of_their_own(tmp_path):
    (first, _), (second, _) = train_in_threads(tmp_path, {})
    assert not torch.equal(first.rollout.observations, second.rollout.observations)
    assert not torch.equal(first.generator.get_state(), second.generator.get_state())
