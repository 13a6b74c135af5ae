"""Finished sweep that tests share."""

import pytest

__all__ = ["ONLY", "SPACES", "TINY", "done"]

# Trains for half a second.
TINY = {
    "env.num_envs": 32,
    "train.total_timesteps": 4096,
    "train.horizon": 16,
    "train.minibatch_size": 256,
    "train.num_threads": 1,
    "train.device": "cpu",
    "policy.hidden_size": 16,
    "eval.episodes": 4,
}
SPACES = {
    "train.learning_rate": {"distribution": "log", "min": 1e-4, "max": 1e-1},
    "train.gamma": {"distribution": "logit", "min": 0.5, "max": 0.999},
    "train.update_epochs": {"distribution": "int", "min": 1, "max": 3},
}
ONLY = ",".join(SPACES)


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """Return the result of a sweep with four trials in two workers."""
    import pufferlib

    sweeps = tmp_path_factory.mktemp("sweeps")
    return pufferlib.sweeps.sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=4, workers=2, sweeps=sweeps)
