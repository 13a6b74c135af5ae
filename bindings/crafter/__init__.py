"""Crafter, a game of survival in an open world, as ``crafter/CrafterReward-v1``, in short ``crafter/reward``.

``CrafterNoReward-v1``, in short ``noreward``, is the same without rewards, for agents that explore on
their own. Needs crafter (MIT) and numba, which ``puffer install crafter`` brings.

* Observation: uint8 ``(size, size, 3)``, by default ``(64, 64, 3)``: 9 by 7 cells and the inventory.
* Action: Discrete(17): wait, 4 moves, act, sleep, place 4 things, make 6 tools.
* Reward: 1 when something is achieved for the first time in a game, 0.1 for a point of health won or lost.
* Terminal: health is 0. Truncation: ``length`` steps, 10,000 by default.
* Infos of a game: ``score``, the number of its 22 achievements; ``perf``, their share;
  ``achievements/NAME``, 1 or 0: their means are the success rates that papers report.
* Options: ``size``, ``view``, ``area``, ``length``, ``channels_first``, ``render_size`` and ``render_mode``; see
  ``make_env``.

Differences from the package:

* Seeds: ``reset(seed=s)`` starts the world of ``crafter.Env(seed=s)``, and decides the whole game. The
  package removes creatures in an order that depends on addresses in memory.
* Making a world takes 50 ms instead of 2 s, because numba compiles its noise, once per machine (2 s). The
  worlds are the same.
* ``render`` draws without touching the chance of the game.
* The old ``gym`` is not needed.

Source: Hafner 2021, https://arxiv.org/abs/2109.06780.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The two games, by their ids."""
    return ("CrafterNoReward-v1", "CrafterReward-v1")


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    short = {env_id.removeprefix("Crafter").removesuffix("-v1").lower(): env_id for env_id in names()}
    return creator(__name__, short.get(name, name), names())
