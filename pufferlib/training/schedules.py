"""Schedules: settings that change over a run, as a share of what they were at its start."""

import dataclasses
import math

from pufferlib.training.config import TrainConfig

__all__ = ["annealed", "share"]


def share(schedule: str, progress: float, least: float = 0.0) -> float:
    r"""Part of its first value that a setting has left.

    .. math::
        s = m + (1 - m) f(p), \quad f_\mathrm{linear}(p) = 1 - p, \quad f_\mathrm{cosine}(p) = (1 + \cos \pi p) / 2

    Source of the cosine: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (2017).

    Args:
        schedule: "constant", "linear" or "cosine".
        progress: p: part of the run that is over; more than 1 counts as 1.
        least: m: the share at the end.
    """
    if schedule == "constant":
        return 1.0
    left = max(0.0, 1 - progress)
    if schedule == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2  # of what is left, so that the end is 0 exactly
    return least + (1 - least) * left


def annealed(config: TrainConfig, progress: float) -> TrainConfig:
    """The settings after ``progress`` (from 0 to 1) of the run: learning rate, clip range, entropy bonus, priorities.

    The importance weights of prioritized minibatches grow to their full strength, ``priority_beta`` 1.
    """
    return dataclasses.replace(
        config,
        learning_rate=config.learning_rate * share(config.lr_schedule, progress, config.min_lr_ratio),
        clip_coef=config.clip_coef * share(config.clip_schedule, progress, config.min_clip_ratio),
        ent_coef=config.ent_coef * share(config.ent_schedule, progress, config.min_ent_ratio),
        priority_beta=1 - (1 - config.priority_beta) * share("linear", progress),
    )
