"""Training that ends as soon as it has shown what a test asks for."""

import math

from pufferlib.training.trainer import Trainer

__all__ = ["train_until"]


def train_until(config, run_dir, judge, enough):
    """Train, and judge the policy at every tenth of its steps, until ``judge(policy) >= enough``.

    Returns the last judgement.
    """
    trainer = Trainer(config, run_dir)
    judged = -math.inf
    try:
        for tenth in range(1, 11):
            while trainer.agent_steps < config.train.total_timesteps * tenth / 10:
                trainer.step()
            judged = judge(trainer.policy)
            if judged >= enough:
                break
    finally:
        trainer.close()
    return judged
