"""Learners with one bug each, made from the trainer."""

import tempfile

import numpy as np

from pufferlib.models import LSTMWrapper
from pufferlib.settings.config import load_config
from pufferlib.training.agent import Agent
from pufferlib.training.build import build_policy
from pufferlib.training.trainer import Trainer
from pufferlib.wrappers.vector import VectorWrapper


def train_in(name, vecenv, seed, total_timesteps, policy=None):
    settings = {"train.seed": seed, "train.total_timesteps": total_timesteps, "train.device": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(load_config(name, settings), folder, vecenv=vecenv, policy=policy)
        trainer.train()
    return trainer.policy


class NegatedRewards(VectorWrapper):
    """Wrapper that negates rewards, so the sign of every advantage is wrong."""

    def transform(self, transitions):
        transitions.rewards = -transitions.rewards


class NeighboursRewards(VectorWrapper):
    """Wrapper that swaps the rewards of the two agents of each environment."""

    def transform(self, transitions):
        transitions.rewards = transitions.rewards.reshape(-1, 2)[:, ::-1].reshape(-1).copy()


class ReversedBytes(VectorWrapper):
    """Wrapper that reverses the bytes of observations and clips them to their bounds."""

    def transform(self, transitions):
        transitions.observations = reversed_bytes(transitions.observations)


def reversed_bytes(rows):
    rows = rows[:, ::-1].copy()
    flat, image = rows[:, :5].view(np.int8), rows[:, 8:].view(np.float32)  # with three bytes of padding in between
    flat[:] = np.clip(flat, -1, 1)
    image[:] = np.clip(np.nan_to_num(image), -1, 1)
    return rows


class NeverReset(LSTMWrapper):
    """Policy that ignores resets of its memory."""

    def forward_eval(self, observations, state=None):
        rows = len(observations)
        for key, kept in getattr(self, "kept", {}).items():
            if len(kept) == rows:
                state[key] = kept
        outputs = super().forward_eval(observations, state)
        self.kept = {key: value.clone() for key, value in state.items()}
        return outputs

    def forward(self, observations, state=None, episode_starts=None):
        return super().forward(observations, state, None)


def sign_flipped(vecenv, seed, total_timesteps):
    return train_in("bandit", NegatedRewards(vecenv), seed, total_timesteps)


def rows_mixed_up(vecenv, seed, total_timesteps):
    return train_in("multiagent", NeighboursRewards(vecenv), seed, total_timesteps)


def acts_greedily(vecenv, seed, total_timesteps):
    return Agent(train_in("stochastic", vecenv, seed, total_timesteps), vecenv, greedy=True)


def bytes_reversed(vecenv, seed, total_timesteps):
    policy = train_in("spaces", ReversedBytes(vecenv), seed, total_timesteps)
    agent = Agent(policy, vecenv, seed=seed)
    return lambda observations: agent(reversed_bytes(observations))


def memory_never_reset(vecenv, seed, total_timesteps):
    config = load_config("memory")
    policy = build_policy(config, vecenv)
    policy.__class__ = NeverReset
    return train_in("memory", vecenv, seed, total_timesteps, policy)


def short_sighted(vecenv, seed, total_timesteps):
    """Train with a discount of 0."""
    settings = {"train.seed": seed, "train.total_timesteps": total_timesteps, "train.gamma": 0.0}
    name = vecenv.driver_env.name
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(load_config(name, settings), folder, vecenv=vecenv)
        trainer.train()
    return trainer.policy


def memory_never_kept(vecenv, seed, total_timesteps):
    return train_in("memory", vecenv, seed, total_timesteps, build_policy(without_memory("memory"), vecenv))


def without_memory(name):
    return load_config(name, {"policy.memory": "none"})
