"""Runs of training that tests share."""

import pytest

__all__ = ["untrained_run"]


def untrained_run(folder):
    """Run of squared in ``folder``, whose policy is as it was made."""
    pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.train.config import load_config
    from pufferlib.train.runs import Run
    from pufferlib.train.trainer import Trainer

    settings = {"env.num_envs": 1, "env.size": 3, "train.minibatch_size": 64, "train.device": "cpu"}
    config = load_config("squared", settings)
    config.save(folder / "config.toml")
    trainer = Trainer(config, folder)
    trainer.save()
    trainer.close()
    return Run.at(folder)
