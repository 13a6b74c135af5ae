"""The Butterfly games of PettingZoo (MIT), played by several agents together, as ``butterfly/<id>``.

``knights_archers_zombies_v11``, ``cooperative_pong_v6`` and ``pistonball_v6``; the version may be left out,
``butterfly/pistonball``, or spelt as ``pettingzoo.make`` does, ``butterfly/pistonball-v6``.

* Observation: pictures become uint8 ``(stack, size, size)``, grey, oldest frame first, by default
  ``(4, 84, 84)``: the screen in cooperative_pong, the part around the piston in pistonball. With
  ``size=None`` they stay as the game draws them, uint8 ``(height, width, 3)``. Knights, archers and zombies
  are rows of numbers, float64 ``(27, 5)`` (``obs_method="vector"``).
* Action: Discrete(6) in knights_archers_zombies, Discrete(3) in cooperative_pong; pistonball a Box of one
  number in -1 to 1, or Discrete(3) with ``continuous=False``.
* Reward: zombies killed; the time that the ball is in play; the way that the ball went to the left.
* Terminal: the agent was killed, or the game is lost or won. Truncation: ``max_cycles``.

Options: ``size`` and ``stack`` of pictures, ``render_mode`` (None or "rgb_array"), and those of the game
itself, such as ``n_pistons``.

Differences from the package: without a ``render_mode`` cooperative_pong draws nothing, so that its agents
would see one picture forever. Closing a game shuts down pygame for all others of the process; here it does
not. The old import paths, which warn, are avoided. Zombies came when a clock said so that ran on from game to
game; now each game sets it anew, so that a seed decides everything.

Source: Terry et al., "PettingZoo" (2021), https://doi.org/10.48550/arXiv.2009.14471.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_VERSIONS = ("cooperative_pong_v6", "knights_archers_zombies_v11", "pistonball_v6")
_LATEST = {name.rpartition("_")[0]: name for name in _VERSIONS}


def names() -> tuple[str, ...]:
    """The games, by PettingZoo's ids."""
    return _VERSIONS


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    name = _LATEST.get(name, name.replace("-", "_"))
    return creator(__name__, name, names(), options_of=(name.rpartition("_")[0],) if name in _VERSIONS else ())
