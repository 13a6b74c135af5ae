"""Training that stops when a test has seen enough."""

import math

from pufferlib.training.trainer import Trainer

__all__ = ["train_until"]


def train_until(config, run_dir, score, enough):
    """Train until ``score(policy) >= enough``, which is checked at every tenth of the steps.

    Returns:
        Last score.
    """
    trainer = Trainer(config, run_dir)
    latest = -math.inf
    try:
        for tenth in range(1, 11):
            while trainer.agent_steps < config.train.total_timesteps * tenth / 10:
                trainer.step()
            latest = score(trainer.policy)
            if latest >= enough:
                break
    finally:
        trainer.close()
    return latest
