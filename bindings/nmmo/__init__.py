"""Neural MMO 2, a world in which 128 agents forage, fight, trade and talk, as ``nmmo/<size>``.

``default`` has 128 agents on a map of 160 x 160 tiles and lasts 1,024 steps, ``small`` 64 agents, 64 x 64 tiles, 128
steps, ``large`` 1,024 agents, 1,056 x 1,056 tiles, 8,192 steps. Install it (MIT) with ``puffer install nmmo``. Plain
pip cannot, because its metadata requires releases from 2022.

* Observation, a Dict: ``Tile`` int16 ``(225, 3)``, row, column and material of the 15 x 15 tiles around the agent,
  ``Entity`` int16 ``(100, 31)``, ``Inventory`` ``(12, 16)``, ``Market`` ``(384, 16)`` and ``Communication`` ``(32,
  4)``, one row per entry, padded with zeros, ``AgentId`` and ``CurrentTick``, and ``ActionTargets``, an int8 mask of
  the valid values for every component of an action.
* Action, a Dict that becomes a MultiDiscrete of 13 components: move, attack, use, give, destroy, buy, sell, give gold,
  talk, each with its arguments. Invalid actions are ignored.
* Reward: progress of the agent's task (by default 1 / 1,024 for each step survived), and -1 for dying.
* Terminal: the agent died. Its mask is False from the next step on. Truncation: the time is up.

Options:

* ``observe``: fields of the observation, or ``"all"``. The default excludes two large fields: ``Market``, which is more
  than half of the bytes and mostly empty, and ``Task``, an embedding of 4,096 numbers that is zero without a
  ``curriculum``. With a ``curriculum``, all fields are included.
* ``num_maps``: number of maps, of which each game uses one. A map takes about 0.2 s when it is first used.
* ``curriculum``: file with nmmo's task specifications. It is a pickle, so only use files that you trust.
* ``config``: any other setting of nmmo by name, ``{"NPC_N": 64}``, except paths.
* ``render_mode``: None, or "rgb_array", the map with players in red and other entities in yellow.

Differences from the package: maps are generated in memory, while nmmo writes them to the working folder. The worlds are
bit-identical. Their noise is computed by ``simplex.py``, because vec-noise no longer builds. Actions are checked in
half the time. Environments can be garbage collected.

Source: Suarez et al., "Neural MMO 2.0" (2023), https://doi.org/10.48550/arXiv.2311.03736.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the sizes of the world."""
    return ("default", "large", "small")


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the world of size ``name``.

    Raises:
        UnknownNameError: No world has this name. The error suggests similar names.
    """
    return creator(__name__, name, names())
