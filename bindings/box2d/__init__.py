"""Gymnasium's Box2D games, as ``box2d/LunarLander-v3``; the version may be left out: ``box2d/LunarLander``.

Needs Box2D (zlib licence) and pygame-ce (LGPL-2.1), which ``puffer install box2d`` brings.

============================== ====================== ================== ==========================================
Name                           Observation            Action             Reward
============================== ====================== ================== ==========================================
``BipedalWalker-v3``           float32 ``(24,)``      Box(-1, 1, (4,))   progress (300 at the end), -100 for a fall
``BipedalWalkerHardcore-v3``   the same, with stumps, pits and stairs
``CarRacing-v3``               uint8 ``(96, 96, 3)``  Box ``(3,)``       1,000 for the whole track, -0.1 a frame
``LunarLander-v3``             float32 ``(8,)``       Discrete(4)        -100 for a crash, 100 for coming to rest
``LunarLanderContinuous-v3``   the same               Box(-1, 1, (2,))   the same
============================== ====================== ================== ==========================================

Terminal: a fall or a crash, the end of the way, or rest. Truncation: after 1,000 steps (BipedalWalker
1,600, Hardcore 2,000). Seeds decide everything.

Options: those of Gymnasium's class (``gravity``, ``enable_wind``, ``wind_power``, ``turbulence_power``;
``lap_complete_percent``, ``domain_randomize``, ``continuous``), and

* ``max_episode_steps``: the length at which an episode is cut off.
* ``clip_action``: take any real action and clip it to the Box, for policies without bounds.
* ``channels_first``: show CarRacing's pictures as ``(3, 96, 96)``, as NatureCNN takes them.
* ``render_mode``: None or "rgb_array".

Differences from the package:

* Each episode gets a new Box2D world: in a used one, BipedalWalker depends on what was played before.
* The numbers that LunarLander and BipedalWalker show leave the bounds that Gymnasium states, so here
  they have none.

Source: Brockman et al. 2016, https://arxiv.org/abs/1606.01540.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The games, by their ids."""
    return (
        "BipedalWalker-v3",
        "BipedalWalkerHardcore-v3",
        "CarRacing-v3",
        "LunarLander-v3",
        "LunarLanderContinuous-v3",
    )


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    return creator(__name__, full_id(name, names()), names())
