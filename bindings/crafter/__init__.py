"""Crafter, an open-world survival game, as ``crafter/CrafterReward-v1``, or ``crafter/reward`` for short.

``CrafterNoReward-v1``, or ``noreward``, is the same game without rewards, for agents with intrinsic motivation.
Install crafter (MIT) and numba with ``puffer install crafter``.

* Observation: uint8 ``(size, size, 3)``, by default ``(64, 64, 3)``: 9 by 7 cells and the inventory.
* Action: Discrete(17): wait, 4 moves, act, sleep, place 4 things, make 6 tools.
* Reward: 1 for each achievement unlocked for the first time in a game, 0.1 per point of health gained or lost.
* Terminal: health is 0. Truncation: ``length`` steps, 10,000 by default.
* Infos at the end of a game: ``score``, the number of its 22 achievements, ``perf``, their share, and
  ``achievements/NAME``, 1 or 0. The mean of the latter is the success rate reported in papers.
* Options: ``size``, ``view``, ``area``, ``length``, ``channels_first``, ``render_size`` and ``render_mode``. See
  ``make_env``.

Differences from the package:

* Seeds: ``reset(seed=s)`` starts the world of ``crafter.Env(seed=s)`` and determines the whole game. The package
  removes creatures in an order that depends on memory addresses.
* Generating a world takes 50 ms instead of 2 s, because numba compiles its noise function, once per machine (2 s). The
  worlds are the same.
* ``render`` does not affect the random numbers of the game.
* The old ``gym`` is not needed.

Source: Hafner 2021, https://arxiv.org/abs/2109.06780.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the ids of the two games."""
    return ("CrafterNoReward-v1", "CrafterReward-v1")


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    short = {env_id.removeprefix("Crafter").removesuffix("-v1").lower(): env_id for env_id in names()}
    return creator(__name__, short.get(name, name), names())
