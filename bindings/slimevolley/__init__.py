"""Slime volleyball, as ``slimevolley/<id>``: two slimes, a fence, and a ball that must not touch one's own ground.

Install slimevolleygym (Apache-2.0) with ``puffer install slimevolley``. Plain pip cannot resolve its metadata.

| Name | Observation | Action |
| --- | --- | --- |
| ``SlimeVolley-v0`` | float32 ``(12,)``: position and velocity of agent, ball and opponent | MultiBinary(3) |
| ``SlimeVolleyPixel-v0`` | uint8 ``(84, 168, 3)`` | MultiBinary(3) |
| ``SlimeVolleyNoFrameskip-v0`` | uint8 ``(84, 168, 3)`` | Discrete(6) |
| ``SlimeVolleySurvivalNoFrameskip-v0`` | the same, with a reward of 0.01 for each step | Discrete(6) |

Binary actions are forward, back and jump.

* Reward: 1 for a point won, -1 for a point lost.
* Terminal: one side has lost its five lives. Truncation: ``max_episode_steps``, 3,000.
* The agent plays on the right. The opponent on the left is the package's small recurrent network, which plays
  well. With ``self_play=True``, a second agent plays on the left. Both see the court as if they stood on the right,
  and the points of one are lost by the other.

Differences from the package:

* The old gym interface is not needed. Observations are float32 as declared by their space (in the package, float64),
  and the time limit is a truncation.
* Seeds: the opponent's memory is cleared at the start of a game. In the package, it continues from the last game, so
  that the same seed gives different games.
* Images are drawn without a window. Both sides have the same color, as in pixel observations.
* Importing the package changes NumPy's print options. This is undone.

Source: Ha 2020, https://github.com/hardmaru/slimevolleygym. The opponent:
https://blog.otoro.net/2015/03/28/neural-slime-volleyball.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the official ids, sorted."""
    kinds = ("", "NoFrameskip", "Pixel", "SurvivalNoFrameskip")
    return tuple(f"SlimeVolley{kind}-v0" for kind in kinds)


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the environment ``name``.

    Raises:
        UnknownNameError: No environment has this name. The error suggests similar names.
    """
    return creator(__name__, name, names())
