"""Small training runs that tests share."""

from pathlib import Path

import pytest

__all__ = ["TINY", "only_run", "untrained_run"]

# Trains for about a second: eight updates of 512 steps.
TINY = [
    "--env.num-envs=32", "--train.horizon=16", "--train.minibatch-size=256", "--train.total-timesteps=4096",
    "--train.num-threads=1", "--policy.hidden-size=16", "--eval.episodes=4", "--train.device=cpu",
]  # fmt: skip


def only_run(folder: Path) -> Path:
    """Return the only run in ``folder``."""
    (run,) = (folder / "runs").iterdir()
    return run


def untrained_run(folder, env="squared", settings=None):
    """Make a run in ``folder`` with an untrained policy."""
    pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.runs.folder import Run
    from pufferlib.settings.config import load_config
    from pufferlib.training.trainer import Trainer

    small = {"env.num_envs": 1, "train.minibatch_size": 64, "train.device": "cpu"}
    config = load_config(env, {**small, **(settings or {"env.size": 3})})
    config.save(folder / "config.toml")
    trainer = Trainer(config, folder)
    trainer.save()
    trainer.close()
    return Run.at(folder)
