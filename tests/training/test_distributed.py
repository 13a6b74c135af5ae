"""Tests of distributed training with ranks in threads, and of its configuration."""

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from pufferlib.errors import APIUsageError
from pufferlib.runs import checkpoint
from pufferlib.settings.config import load_config
from pufferlib.training.callbacks import Callback
from pufferlib.training.distributed.place import Place, place_of_this_process
from pufferlib.training.distributed.ranks import ALONE, Ranks, check_agents, config_of_all
from pufferlib.training.trainer import Trainer
from tests.training.ranks import (
    AGENTS,
    Patchy,
    in_threads,
    make_config,
    make_trainer,
    train_as_one,
    train_in_threads,
    updates_of,
)


def weights(trainer):
    return parameters_to_vector(trainer.policy.parameters()).detach()


@pytest.mark.parametrize(
    "settings",
    [
        {"train.optimizer": "adam"},
        {"train.optimizer": "muon", "train.norm_adv": False},
        {"policy.memory": "MinGRU", "train.target_kl": 0.02},
        {"train.lr_schedule": "adaptive", "train.target_kl": 2e-2},
    ],
    ids=["adam", "muon", "memory", "adaptive"],
)
def test_two_ranks_match_one_process_with_twice_the_envs(settings, tmp_path):
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


def test_ranks_share_moments_of_all_observations(tmp_path):
    settings = {"train.normalize_observations": True, "train.normalize_rewards": True}
    (first, _), (second, _) = train_in_threads(tmp_path, settings)
    seen = first.policy.state_dict()["observation_moments.mean"], first.policy.state_dict()["observation_moments.var"]
    assert torch.equal(weights(first), weights(second))
    for name, value in first.policy.state_dict().items():
        assert torch.equal(value, second.policy.state_dict()[name]), name
    assert seen[0].numpy() == pytest.approx([41.5, 41.7], abs=0.2)  # 40 + 3 u, where u is above 0.2 for present agents
    assert seen[1].numpy() == pytest.approx([9 / 12, 9 * 0.64 / 12], rel=0.2)
    whole, _ = train_as_one(tmp_path, settings)
    for name, value in whole.policy.state_dict().items():
        if name.startswith("observation_moments"):
            assert np.allclose(first.policy.state_dict()[name], value, rtol=1e-9), name


def test_ranks_have_different_observations_and_random_numbers(tmp_path):
    (first, _), (second, _) = train_in_threads(tmp_path, {})
    assert not torch.equal(first.rollout.observations, second.rollout.observations)
    assert not torch.equal(first.state.generator.get_state(), second.state.generator.get_state())


def test_resumed_ranks_match_uninterrupted_ranks(tmp_path):
    settings = {"vec.backend": "native", "env.num_envs": 4, "train.normalize_observations": True}

    def train(ranks, count, checkpoint=None):
        trainer = make_trainer(make_config(settings, 4), tmp_path, ranks)
        is_exact = trainer.restore(checkpoint) if checkpoint else None
        updates_of(trainer, count)
        trainer.save()
        return trainer, is_exact

    both = in_threads(lambda ranks: train(ranks, 2))
    saved = both[0][0].checkpoint_path
    whole = in_threads(lambda ranks: (updates_of(both[ranks.rank][0], 2), both[ranks.rank][0])[1])
    resumed = in_threads(lambda ranks: train(ranks, 2, saved))
    for rank in range(2):
        trainer, is_exact = resumed[rank]
        assert is_exact
        assert torch.equal(weights(trainer), weights(whole[rank]))
        assert torch.equal(trainer.rollout.observations, whole[rank].rollout.observations)
    alone = Trainer(make_config(settings, 4), tmp_path)
    assert not alone.restore(saved)
    assert (alone.updates, alone.agent_steps) == (2, 2 * 2 * 4 * 16)
    three = in_threads(lambda ranks: train(ranks, 1, saved), 3)
    assert [is_exact for _, is_exact in three] == [False] * 3
    assert torch.equal(weights(three[0][0]), weights(three[2][0]))


def test_failed_checkpoint_is_due_in_all_ranks(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    def train(ranks):
        trainer = make_trainer(make_config({"train.checkpoint_interval": 1}, AGENTS), tmp_path, ranks, Patchy())
        updates_of(trainer, 1)
        trainer.checkpointer.try_to_save()
        return trainer.checkpointer.has_all, trainer.checkpointer.is_due

    monkeypatch.setattr(checkpoint, "save", fail)
    with pytest.warns(UserWarning, match="a checkpoint could not be written"):
        assert in_threads(train) == [(False, True)] * 2


def test_stop_of_rank_0_stops_all_ranks(tmp_path):
    def train(ranks):
        stops = [lambda trainer, metrics: trainer.stop("enough")] if ranks.is_first else []
        trainer = make_trainer(make_config({}, AGENTS), tmp_path, ranks, Patchy(), callbacks=stops)
        trainer.train()
        return trainer.updates

    assert in_threads(train) == [1, 1]


def test_stop_of_rank_0_at_a_checkpoint_stops_all_ranks(tmp_path):
    class StopsAtCheckpoint(Callback):
        def on_checkpoint(self, trainer, path):
            trainer.stop("one checkpoint is enough")

    def train(ranks):
        config = make_config({"train.checkpoint_interval": 2}, AGENTS)
        trainer = make_trainer(config, tmp_path, ranks, Patchy(), callbacks=[StopsAtCheckpoint()])
        trainer.train()
        return trainer.updates

    assert in_threads(train) == [2, 2]


def test_ranks_scale_rewards_alike(tmp_path):
    def train(ranks):
        trainer = make_trainer(make_config({"train.normalize_rewards": True}, AGENTS), tmp_path, ranks, Patchy())
        updates_of(trainer, 2)
        return {name: value.tolist() for name, value in trainer.vecenv.state_dict().items()}

    first, second = in_threads(train)
    assert first == second
    assert any(name.endswith(".seen") and value[1] > 0 for name, value in first.items())


def test_rank_without_present_agents_learns_from_others(tmp_path):
    class Empty(Patchy):
        def draw(self):
            super().draw()
            self.masks[:] = False

    def train(ranks):
        config = make_config({"train.priority_alpha": 0.5 * ranks.rank}, AGENTS)
        trainer = make_trainer(config, tmp_path, ranks, Empty() if ranks.rank else Patchy())
        return updates_of(trainer, 1), weights(trainer)

    ((mine,), first), ((theirs,), second) = in_threads(train)
    assert torch.equal(first, second)
    assert mine["agent_steps"] == theirs["agent_steps"] > 0


GIVEN = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}


def test_place_is_read_from_torchrun_variables():
    local = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    place = place_of_this_process({**GIVEN, **local})
    assert place == Place(1, 4, 1, 2, "10.0.0.1", 29500)
    assert place.variables() == {**GIVEN, **local}
    assert place_of_this_process({}) is None
    assert place_of_this_process({**GIVEN, "RANK": "0", "WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RANK": "1"},
            "got RANK=1 without WORLD_SIZE and MASTER_ADDR and MASTER_PORT; .* unset RANK",
        ),
        ({**GIVEN, "MASTER_PORT": ""}, "without MASTER_PORT; start with torchrun"),
        ({**GIVEN, "RANK": "4"}, "the variable RANK must be a number from 0 to 3, got '4'"),
        ({**GIVEN, "WORLD_SIZE": "two"}, "the variable WORLD_SIZE must be a number from 1, got 'two'"),
    ],
)
def test_incomplete_or_invalid_variables_raise(variables, message):
    with pytest.raises(APIUsageError, match=message):
        place_of_this_process(variables)


def test_trainer_without_ranks_warns_under_torchrun(monkeypatch):
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    with pytest.warns(UserWarning, match="one of 4, and trains alone, because Trainer was called without ranks"):
        assert config_of_all(load_config("squared"), ALONE).train.processes == 1
    monkeypatch.delenv("WORLD_SIZE")
    config_of_all(load_config("squared"), ALONE)


def test_number_of_processes_must_match_setting():
    config = load_config("squared", {"train.processes": 3})
    with pytest.raises(APIUsageError, match="asks for 3 processes, and there is 1; puffer train"):
        config_of_all(config, ALONE)
    two = Ranks()
    two.size = 2
    with pytest.raises(APIUsageError, match="asks for 3 processes, and there are 2"):
        config_of_all(config, two)
    assert config_of_all(load_config("squared"), two).train.processes == 2


def test_different_numbers_of_agents_raise():
    def check(ranks):
        with pytest.raises(APIUsageError, match="got 1 agent in rank 0, 6 agents in rank 1; set "):
            check_agents(ranks, Patchy() if ranks.rank else Solo())

    class Solo:
        num_agents = 1

    in_threads(check)
