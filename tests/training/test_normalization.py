import contextlib
import functools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from safetensors.torch import load_file

import pufferlib
from pufferlib import registry, vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.models.players import PolicyPlayer
from pufferlib.play.session import Session
from pufferlib.runs.folder import Run
from pufferlib.settings.config import load_config
from pufferlib.training.agent import load_policy
from pufferlib.training.evaluation import evaluate
from pufferlib.training.normalization import warn_of_normalizing_wrappers, with_normalization
from pufferlib.training.trainer import Trainer
from pufferlib.wrappers.vector import NormalizeObservation, NormalizeReward
from tests.envs import FunctionEnv, TargetEnv
from tests.tiers import once

SMALL = {
    "train.device": "cpu",
    "train.total_timesteps": 512,
    "train.horizon": 16,
    "train.minibatch_size": 64,
    "policy.hidden_size": 16,
    "train.normalize_observations": True,
    "train.normalize_rewards": True,
}
MEAN = "observation_moments.mean"


def make(folder, name="cartpole", **settings):
    folder.mkdir(exist_ok=True)
    size = {"env.num_envs": 4} if name == "cartpole" else {}
    return Trainer(load_config(name, {**SMALL, **size, **settings}), folder)


def weights(trainer):
    return torch.cat([parameter.detach().flatten() for parameter in trainer.policy.parameters()])


@pytest.fixture
def run(tmp_path):
    """Train a run of cartpole with normalized observations and rewards."""
    with_run = make(tmp_path)
    with_run.config.save(Run.at(tmp_path).config)
    with_run.train()
    return Run.at(tmp_path)


def test_rollout_is_normalized_with_moments_of_policy(tmp_path):
    trainer = make(tmp_path)
    for _ in range(8):
        trainer.step()
    moments, seen = trainer.policy.state_dict(), trainer.rollout.observations
    assert np.array_equal(moments[MEAN], trainer.vecenv.mean)
    assert moments["observation_moments.count"] > 8 * 16 * 4
    assert seen.abs().max() < 10
    assert 0.3 < seen.std() < 3
    trainer.close()


def test_normalized_rewards_are_not_scaled_again(tmp_path):
    for folder, normalizes in (("a", True), ("b", False)):  # without normalization the first rollout sets the scale
        settings = {"train.normalize_rewards": normalizes, "train.reward_scale": 0.0, "train.gamma": 1.0}
        trainer = make(tmp_path / folder, **settings)
        trainer.step()
        assert (trainer.collector.reward_scale == 1) == normalizes
        trainer.close()


CASES = {
    "native": ("cartpole", {}),
    "threads and memory": ("cartpole", {"env.num_threads": 2, "policy.memory": "LSTM"}),
    "serial, resets next": (
        "cartpole",
        {"vec.backend": "Serial", "vec.num_envs": 2, "env.num_envs": 2, "env.autoreset": "next_step"},
    ),
    "new episodes": (
        "CartPole-v1",
        {
            "vec.backend": "Serial",
            "vec.num_envs": 4,
            "train.exact_resume": True,
            "train.checkpoint_interval": 3,
        },
    ),
}


@pytest.mark.parametrize("case", once(CASES, ["threads and memory", "serial, resets next", "new episodes"]))
def test_resumed_run_matches_uninterrupted_run(case, tmp_path):
    name, settings = CASES[case]
    whole = make(tmp_path / "whole", name, **settings)
    whole.train()
    half = make(tmp_path / "half", name, **settings)
    for _ in range(3):
        half.step()
    half.save()
    half.close()
    resumed = make(tmp_path / "resumed", name, **settings)
    resumed.restore(half.checkpoint_path)
    resumed.train()
    assert torch.equal(weights(resumed), weights(whole))
    assert all(torch.equal(value, whole.policy.state_dict()[key]) for key, value in resumed.policy.state_dict().items())


def test_moments_are_saved_with_policy_and_fixed_in_evaluation(run):
    config = run.settings()
    policy = load_policy(config, run)
    kept = load_file(run.checkpoint / "policy.safetensors")
    assert torch.equal(policy.state_dict()[MEAN], kept[MEAN])
    first = evaluate(config, policy, episodes=4)
    assert torch.equal(policy.state_dict()[MEAN], kept[MEAN])
    assert evaluate(config, policy, episodes=4) == first


def test_evaluation_and_session_normalize_observations(run, monkeypatch):
    seen = []

    def act(self, observations, rows=slice(None)):
        seen.append(observations[rows].copy())
        return np.zeros(len(seen[-1]), np.int32)

    monkeypatch.setattr(PolicyPlayer, "act", act)
    config = run.settings()
    policy = load_policy(config, run)
    moments = policy.observation_moments
    evaluate(config, policy, episodes=1, seed=3)
    with vector.make(registry.env_creator("cartpole"), env_kwargs={"num_envs": 1}, backend="Serial", seed=3) as env:
        raw = env.reset()[0].copy()
    expected = (raw - moments.mean.numpy()) / np.sqrt(moments.var.numpy() + 1e-8)
    assert np.allclose(seen[0], expected, atol=1e-5)
    session = Session("cartpole", {}, seed=3, run=run, watched=True)
    session.step()
    session.close()
    assert np.allclose(seen[-1], expected, atol=1e-5)


def test_passed_vecenv_is_normalized(tmp_path):
    trainer = Trainer(load_config("target", SMALL), tmp_path, vecenv=TargetEnv(8))
    trainer.step()
    assert trainer.rollout.observations.abs().max() > 1  # raw observations are 0 or 1
    trainer.close()


REAL, SHARE = Box(-np.inf, np.inf, (2,), np.float32), Box(0, 1, (2,), np.float32)
MASK = Box(0, 2, (2,), np.float32)


def made(space):
    creator = functools.partial(FunctionEnv, space, Discrete(2), length=4)
    return vector.make(functools.partial(GymnasiumPufferEnv, env_creator=creator), num_envs=2, backend="Serial")


@pytest.mark.parametrize(
    ("space", "settings", "chosen"),
    [
        (REAL, {}, (True, True)),
        (Box(-100, 100, (2,), np.float64), {}, (True, True)),
        (SHARE, {}, (False, True)),
        (Box(0, 255, (8, 8, 3), np.uint8), {}, (False, True)),
        (Discrete(5), {}, (False, True)),
        (Dict({"a": SHARE, "b": Tuple([Discrete(3), REAL])}), {}, (True, True)),
        (Dict({"observation": SHARE, "action_mask": MASK}), {}, (False, True)),
        (REAL, {"train.normalize_observations": False}, (False, True)),
        (REAL, {"train.normalize_rewards": False}, (True, False)),
        (REAL, {"train.reward_scale": 0.1}, (True, False)),
        (REAL, {"train.reward_clip": 1.0}, (True, False)),
        (REAL, {"train.restart_share": 0.5}, (False, False)),
        (SHARE, {"train.normalize_observations": True}, (True, True)),
    ],
)
def test_unset_normalization_is_chosen_for_python_environments(space, settings, chosen):
    config = load_config("mine", settings).train
    with made(space) as vecenv:
        config = with_normalization(vecenv, config)
        assert (config.normalize_observations, config.normalize_rewards) == chosen


def test_unset_normalization_is_off_for_native_and_normalized_environments():
    config = load_config("mine").train
    with made(REAL) as vecenv, pufferlib.make("cartpole", num_envs=2) as native:
        wrapped = NormalizeReward(NormalizeObservation(vecenv))
        for envs in (wrapped, native):
            found = with_normalization(envs, config)
            assert (found.normalize_observations, found.normalize_rewards) == (False, False)


@pytest.mark.parametrize(
    ("wrap", "warned"),
    [
        (gymnasium.wrappers.NormalizeObservation, r"NormalizeObservation: its moments .* are not saved"),
        (gymnasium.wrappers.NormalizeReward, r"NormalizeReward: scores then count its changed rewards"),
        (gymnasium.wrappers.RecordEpisodeStatistics, None),
    ],
)
def test_normalizing_wrapper_inside_env_warns(wrap, warned):
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(pufferlib.EpisodeStats(wrap(FunctionEnv(Box(-9, 9, (2,))))), buf=buf, seed=seed)

    expected = pytest.warns(UserWarning, match=warned) if warned else contextlib.nullcontext()
    with vector.make(creator, num_envs=2, backend="Serial") as vecenv, expected:
        warn_of_normalizing_wrappers(vecenv)
    warn_of_normalizing_wrappers(creator())  # without a backend there is no list of wrappers


def test_training_warns_of_normalizing_wrapper(tmp_path):
    def make_env():
        return gymnasium.wrappers.NormalizeReward(FunctionEnv(Box(-9, 9, (2,)), length=7))

    small = {"train.total_timesteps": 64, "train.horizon": 16, "vec.backend": "Serial", "vec.num_envs": 4}
    with pytest.warns(UserWarning, match=r"remove it, because train\.normalize_rewards does the same"):
        pufferlib.train(make_env, {**small, "train.device": "cpu", "eval.episodes": 1}, runs=tmp_path)
