"""Gymnasium's classic control problems, as ``classic/CartPole-v1``, or ``classic/CartPole`` without the version.

They need only Gymnasium. For images, install pygame-ce (LGPL-2.1) with ``puffer install classic``.

=========================== =============== ================== ======================================== =========
Name                        Observation     Action             Reward                                   Cut off
=========================== =============== ================== ======================================== =========
``Acrobot-v1``              float32 ``(6,)`` Discrete(3)       -1 a step until the tip is high enough   500
``CartPole-v1``             float32 ``(4,)`` Discrete(2)       1 a step while the pole stands           500
``MountainCar-v0``          float32 ``(2,)`` Discrete(3)       -1 a step until the car is up            200
``MountainCarContinuous-v0`` float32 ``(2,)`` Box(-1, 1, (1,)) 100 at the top, minus 0.1 action squared 999
``Pendulum-v1``             float32 ``(3,)`` Box(-2, 2, (1,))  minus squared angle, speed and torque    200
=========================== =============== ================== ======================================== =========

``CartPoleNoVel-v1``, ``MountainCarContinuousNoVel-v0`` and ``PendulumNoVel-v1`` are the same without velocities in the
observation, so they need a memory. The names are those of rl-baselines3-zoo.

Terminal: the goal is reached or the pole has fallen. Pendulum has no terminal states. Truncation: after the
number of steps in the last column.

Options: the arguments of Gymnasium's class, such as ``sutton_barto_reward`` (CartPole), ``goal_velocity``
(MountainCar) and ``g`` (Pendulum), and:

* ``max_episode_steps``: length at which an episode is truncated. With 200, CartPole-v1 equals CartPole-v0.
* ``clip_action``: accept any real action and clip it to the Box, for policies without bounds.
* ``render_mode``: None or "rgb_array".

The same seed always gives the same episodes. Sources: Barto, Sutton, Anderson 1983,
https://doi.org/10.1109/TSMC.1983.6313077 (CartPole), Sutton 1996 (Acrobot), Moore 1990 (MountainCar).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the ids of the problems."""
    return (
        "Acrobot-v1",
        "CartPole-v1",
        "CartPoleNoVel-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "MountainCarContinuousNoVel-v0",
        "Pendulum-v1",
        "PendulumNoVel-v1",
    )


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the problem ``name``.

    Raises:
        UnknownNameError: No problem has this name. The error suggests similar names.
    """
    return creator(__name__, full_id(name, names()), names())
