"""Vector wrappers in combination: their interface, their state, and use in place of vector environments."""

import copy
import re

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import (
    ClipReward,
    EpisodeStatistics,
    FrameStack,
    NormalizeObservation,
    NormalizeReward,
    VectorWrapper,
)
from tests.wrappers.batches import make, play


def wrapped(vecenv, frames=4, **options):
    vecenv = NormalizeReward(NormalizeObservation(EpisodeStatistics(vecenv, **options)))
    return FrameStack(vecenv, frames)


def test_wrapper_is_accepted_as_vector_env(tmp_path):
    with wrapped(make(record=tmp_path)) as vecenv:
        assert isinstance(vecenv, pufferlib.vector.Serial)
        assert isinstance(vecenv, FrameStack)
        assert isinstance(vecenv, VectorWrapper)
        assert vecenv.num_envs == 4
        assert [env.count for env in vecenv.call("get_wrapper_attr", "unwrapped")] == [0] * 4
        observations, infos = vecenv.reset(seed=1)
        assert observations is vecenv.observations
        assert infos == []
        observations, rewards, terminals, truncations, _ = vecenv.step([0] * 4)
        assert rewards is vecenv.rewards
        assert np.array_equal(terminals, vecenv.terminals)
        assert np.array_equal(truncations, vecenv.truncations)
        assert copy.copy(vecenv).num_envs == 4
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("inner", [make, lambda: pufferlib.make("cartpole", num_envs=4)], ids=["serial", "native"])
def test_partial_reset_leaves_other_rows_unchanged(inner):
    with wrapped(inner()) as vecenv:
        vecenv.reset()
        for _ in range(3):
            vecenv.step([0] * 4)
        before, rewards = vecenv.observations.copy(), vecenv.rewards.copy()
        observations, _ = vecenv.reset(env_ids=[1])
        assert np.array_equal(observations[[0, 2, 3]], before[[0, 2, 3]])
        assert np.array_equal(vecenv.rewards[[0, 2, 3]], rewards[[0, 2, 3]])
        assert (observations[1] == observations[1, 0]).all()
        assert vecenv.rewards[1] == 0
        assert vecenv.episode_lengths[1] == 0


@pytest.mark.parametrize("inner", [make, lambda: pufferlib.make("cartpole", num_envs=4)], ids=["serial", "native"])
def test_loaded_state_starts_new_episodes_of_wrappers(inner):
    with wrapped(inner()) as vecenv:
        vecenv.training = False  # so that equal observations stay equal
        vecenv.reset(seed=3)
        state = vecenv.save_state()
        first = vecenv.observations.copy()
        for _ in range(3):
            vecenv.step([0] * 4)
        assert np.array_equal(vecenv.load_state(state), first)
        assert np.array_equal(vecenv.observations, first)
        assert not vecenv.episode_lengths.any()


def test_state_dict_is_saved_and_loaded(tmp_path):
    with wrapped(make()) as vecenv:
        for _ in play(vecenv, 30):
            pass
        np.savez(tmp_path / "state.npz", allow_pickle=False, **vecenv.state_dict())
        mean, var, returns = vecenv.mean, vecenv.var, vecenv.return_queue
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state, wrapped(make()) as vecenv:
        vecenv.load_state_dict(state)
        vecenv.training = False
        assert np.array_equal(vecenv.mean, mean)
        assert vecenv.var == var
        assert np.array_equal(vecenv.return_queue, returns)
        raw = vecenv.vecenv.vecenv.vecenv.vecenv
        observations, _ = vecenv.reset()
        inner = vecenv.vecenv.vecenv
        assert np.allclose(observations[:, -1], (raw.observations - inner.mean) / np.sqrt(inner.var), atol=1e-5)


def test_state_dict_of_other_wrappers_is_refused():
    with wrapped(make()) as vecenv, wrapped(make(), frames=3) as other, ClipReward(make()) as clipped:
        state = other.state_dict()
        with pytest.raises(APIUsageError, match=r"3\.FrameStack\.frames must be 4, got 3; wrap the"):
            vecenv.load_state_dict(state)
        with pytest.raises(
            APIUsageError,
            match=r"must be of 0\.EpisodeStatistics, .*, got a state of 0\.ClipReward, which differs in 0\.",
        ):
            vecenv.load_state_dict(clipped.state_dict())
        with pytest.raises(
            APIUsageError, match=r"1\.NormalizeObservation\.mean must have the shape \(3,\), got \(2,\)"
        ):
            vecenv.load_state_dict({**vecenv.state_dict(), "1.NormalizeObservation.mean": np.zeros(2)})
        for wrong in (None, [1]):
            message = f"load_state_dict: state must be a dict, got {wrong}; give the one that state_dict returned"
            with pytest.raises(APIUsageError, match=re.escape(message)):
                vecenv.load_state_dict(wrong)


def test_backends_give_the_same_observations_and_rewards():
    seen = []
    for layout in ("serial", "workers"):
        with wrapped(make(layout=layout)) as vecenv:
            seen.append([np.concatenate([batch[0].ravel(), batch[1]]) for batch in play(vecenv, 20)])
    assert np.array_equal(*seen)


def test_to_gymnasium_and_to_sb3_accept_wrappers():
    with wrapped(make()) as vecenv:
        env = pufferlib.vector.to_gymnasium(vecenv)
        observations, _ = env.reset(seed=1)
        assert observations.shape == (4, 4, 3)
        infos = [env.step(np.zeros(4, int))[-1] for _ in range(8)]
        found = next(info for info in infos if info.get("_final_obs", [False])[0])
        assert found["final_obs"][0].shape == (4, 3)
        assert found["final_info"]["_episode_return"][0]
    sb3 = pytest.importorskip("pufferlib.frameworks.sb3")
    with wrapped(make()) as vecenv:
        env = sb3.to_sb3(vecenv)
        assert env.reset().shape == (4, 4, 3)
        assert env.step(np.zeros(4, int))[0].shape == (4, 4, 3)


def test_trainer_accepts_wrappers(tmp_path):
    pytest.importorskip("torch")
    from pufferlib.settings.config import Config, TrainConfig
    from pufferlib.training.trainer import Trainer

    for vecenv in (wrapped(make(layout="parts")), wrapped(pufferlib.make("cartpole", num_envs=8))):
        train = TrainConfig(total_timesteps=1024, horizon=16, minibatch_size=64)
        trainer = Trainer(Config(env_name="cartpole", train=train), tmp_path, vecenv=vecenv)
        metrics = trainer.step()
        assert np.isfinite(metrics["losses/value"])
        trainer.close()
