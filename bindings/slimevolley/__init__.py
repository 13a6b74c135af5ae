"""Slime volleyball: two slimes, a fence, a ball that must not touch one's own ground; as ``slimevolley/<id>``.

Needs slimevolleygym (Apache-2.0), whose metadata pip cannot follow: ``puffer install slimevolley``.

| Name | Observation | Action |
| --- | --- | --- |
| ``SlimeVolley-v0`` | float32 ``(12,)``: where oneself, the ball and the other are and go | MultiBinary(3) |
| ``SlimeVolleyPixel-v0`` | uint8 ``(84, 168, 3)`` | MultiBinary(3) |
| ``SlimeVolleyNoFrameskip-v0`` | uint8 ``(84, 168, 3)`` | Discrete(6) |
| ``SlimeVolleySurvivalNoFrameskip-v0`` | the same, and 0.01 for each step | Discrete(6) |

Binary actions are forward, back and jump.

* Reward: 1 for a point won, -1 for a point lost.
* Terminal: one side has lost its five lives. Truncation: ``max_episode_steps``, 3,000.
* The agent plays on the right. On the left plays the package's own small recurrent network, which is good; with
  ``self_play=True`` a second agent does: both see the court as if they stood on the right, and one's reward is the
  other's loss.

Differences from the package, and why:

* The old interface of gym, which is not needed: observations are float32 as their space says (they were float64), and
  the time limit is a truncation.
* Seeds: the opponent's memory went on from one game to the next, so that the same seed gave another game. It is
  cleared now.
* Pictures are drawn without a window. Both sides have one colour, as in the observations of pixels.
* Importing the package changes how numpy prints; that is undone.

Source: Ha 2020, https://github.com/hardmaru/slimevolleygym; the opponent: https://blog.otoro.net/2015/03/28/neural-slime-volleyball.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The official ids, sorted."""
    kinds = ("", "NoFrameskip", "Pixel", "SurvivalNoFrameskip")
    return tuple(f"SlimeVolley{kind}-v0" for kind in kinds)


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes a court.

    Raises:
        UnknownNameError: There is no such id; the nearest ones are suggested.
    """
    return creator(__name__, name, names())
