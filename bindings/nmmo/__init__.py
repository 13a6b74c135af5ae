"""Neural MMO 2, a world in which 128 agents forage, fight, trade and talk, as ``nmmo/<size>``.

``default`` has 128 agents on a map of 160 x 160 tiles and lasts 1,024 steps, ``small`` 64 agents, 64 x 64
tiles, 128 steps, ``large`` 1,024 agents, 1,056 x 1,056 tiles, 8,192 steps. ``puffer install nmmo`` installs
it (MIT): plain pip cannot, because its metadata asks for releases of 2022.

* Observation, a Dict: ``Tile`` int16 ``(225, 3)``, row, column and material of the 15 x 15 tiles around the
  agent; ``Entity`` int16 ``(100, 31)``, ``Inventory`` ``(12, 16)``, ``Market`` ``(384, 16)`` and
  ``Communication`` ``(32, 4)``, a row for each thing and zeros after the last; ``AgentId`` and
  ``CurrentTick``; ``ActionTargets``, for every part of an action an int8 mask of the values that can work.
* Action, a Dict that becomes a MultiDiscrete of 13 parts: move, attack, use, give, destroy, buy, sell, give
  gold, talk, each with its arguments. An action that makes no sense is dropped.
* Reward: progress of the agent's task (by default 1 / 1,024 for each step survived), and -1 for dying.
* Terminal: the agent died; its mask is False from the next step on. Truncation: the time is up.

Options:

* ``observe``: the fields to see, or ``"all"``. Left out, it is all but two large ones: ``Market``, more than
  half of the bytes and mostly empty, and ``Task``, an embedding of 4,096 numbers that is zero unless
  there is a ``curriculum``, with which it is seen.
* ``num_maps``: of which each game plays one; a map takes some 0.2 s when it is first played.
* ``curriculum``: a file of nmmo's task specifications (a pickle: take it from nobody you do not trust).
* ``config``: any other setting of nmmo's by its name, ``{"NPC_N": 64}``; not paths.
* ``render_mode``: None or "rgb_array", the map with players in red and other beings in yellow.

Differences from the package: maps are made in memory, where nmmo writes them under the working folder; the
worlds are the same, bit for bit. The noise that they are made of is our own (``simplex.py``), because
vec-noise no longer builds. Actions are checked in half the time. Environments can be freed.

Source: Suarez et al., "Neural MMO 2.0" (2023), https://doi.org/10.48550/arXiv.2311.03736.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The sizes of the world."""
    return ("default", "large", "small")


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the world of size ``name``.

    Raises:
        UnknownNameError: No world has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names())
