"""Gymnasium's Box2D environments, as ``box2d/LunarLander-v3``, or ``box2d/LunarLander`` without the version.

Install Box2D (zlib licence) and pygame-ce (LGPL-2.1) with ``puffer install box2d``.

============================== ====================== ================== ==========================================
Name                           Observation            Action             Reward
============================== ====================== ================== ==========================================
``BipedalWalker-v3``           float32 ``(24,)``      Box(-1, 1, (4,))   progress (300 at the end), -100 for a fall
``BipedalWalkerHardcore-v3``   the same, with stumps, pits and stairs
``CarRacing-v3``               uint8 ``(96, 96, 3)``  Box ``(3,)``       1,000 for the whole track, -0.1 a frame
``LunarLander-v3``             float32 ``(8,)``       Discrete(4)        -100 for a crash, 100 for coming to rest
``LunarLanderContinuous-v3``   the same               Box(-1, 1, (2,))   the same
============================== ====================== ================== ==========================================

Terminal: a fall or crash, the end of the track, or rest. Truncation: after 1,000 steps (BipedalWalker
1,600, Hardcore 2,000). The same seed always gives the same episodes.

Options: the arguments of Gymnasium's class (LunarLander: ``gravity``, ``enable_wind``, ``wind_power``,
``turbulence_power``. CarRacing: ``lap_complete_percent``, ``domain_randomize``, ``continuous``), and:

* ``max_episode_steps``: length at which an episode is truncated.
* ``clip_action``: accept any real action and clip it to the Box, for policies without bounds.
* ``channels_first``: return CarRacing's images as ``(3, 96, 96)``, as NatureCNN expects them.
* ``native``: training, evaluations and batches of ``pufferlib.make`` step the environments in C, with the same
  results. With False they step Gymnasium's classes. Environments with a ``render_mode``, and CarRacing with more than
  9,990 steps or ``verbose``, always run Gymnasium's classes.
* ``render_mode``: None or "rgb_array".

Differences from the package:

* Each episode gets a new Box2D world. In a used one, BipedalWalker and CarRacing depend on earlier episodes.
* Observations of LunarLander and BipedalWalker are unbounded, because they can exceed Gymnasium's
  bounds.

Source: Brockman et al. 2016, https://arxiv.org/abs/1606.01540.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pufferlib.box2d.twin import find_box2d
from pufferlib.registry.in_c import Twin

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["env_creator", "names", "twin"]


def names() -> tuple[str, ...]:
    """Return the ids of the environments."""
    return (
        "BipedalWalker-v3",
        "BipedalWalkerHardcore-v3",
        "CarRacing-v3",
        "LunarLander-v3",
        "LunarLanderContinuous-v3",
    )


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the environment ``name``.

    Raises:
        UnknownNameError: No environment has this name. The error suggests similar names.
    """
    return creator(__name__, full_id(name, names()), names())


def twin(name: str, options: Mapping[str, Any]) -> Twin | None:
    """Return the environment in C with the same results, or None if there is none with these options."""
    env_id = full_id(name, names())
    if env_id not in names():
        return None
    return find_box2d(f"box2d/{env_id}", options, functools.partial(env_creator(env_id), **options))
