"""The cooperative Butterfly games of PettingZoo (MIT), as ``butterfly/<id>``.

The ids are ``knights_archers_zombies_v11``, ``cooperative_pong_v6`` and ``pistonball_v6``. You can omit the version,
``butterfly/pistonball``, or write it like ``pettingzoo.make``, ``butterfly/pistonball-v6``.

* Observation: images are converted to uint8 ``(stack, size, size)``, grayscale, oldest frame first, by default
  ``(4, 84, 84)``. They show the screen in cooperative_pong and the surroundings of the piston in pistonball. With
  ``size=None`` they stay as the game draws them, uint8 ``(height, width, 3)``. In knights_archers_zombies,
  observations are rows of numbers, float64 ``(27, 5)`` (``obs_method="vector"``).
* Action: Discrete(6) in knights_archers_zombies, Discrete(3) in cooperative_pong. In pistonball, a Box of one
  number from -1 to 1, or Discrete(3) with ``continuous=False``.
* Reward: zombies killed, the time that the ball is in play, or the distance that the ball moved to the left.
* Terminal: the agent was killed, or the game is lost or won. Truncation: ``max_cycles``.

Options: ``size`` and ``stack`` of images, ``render_mode`` (None or "rgb_array"), and the options of the game
itself, such as ``n_pistons``.

Differences from the package:

* cooperative_pong draws its agents' observations even without a ``render_mode``. In the package, they would see the
  same image forever.
* Closing a game does not shut down pygame for other users in the process.
* The old import paths, which warn, are not used.
* The timer for new zombies is reset with each game, so that the same seed gives the same game.

Source: Terry et al., "PettingZoo" (2021), https://doi.org/10.48550/arXiv.2009.14471.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_VERSIONS = ("cooperative_pong_v6", "knights_archers_zombies_v11", "pistonball_v6")
_LATEST = {name.rpartition("_")[0]: name for name in _VERSIONS}


def names() -> tuple[str, ...]:
    """Return the PettingZoo ids of the games."""
    return _VERSIONS


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    name = _LATEST.get(name, name.replace("-", "_"))
    return creator(__name__, name, names(), options_of=(name.rpartition("_")[0],) if name in _VERSIONS else ())
