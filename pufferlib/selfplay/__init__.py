"""Agents against each other: matches with cross tables and ratings, and leagues that remember them.

``pufferlib.train`` has the opponents of training, its settings ``selfplay``. Here trained agents meet: ``entrants``
finds them and the game that they share, ``games`` plays, ``round_robin`` and ``league`` pair them, ``ratings`` fits Elo
ratings.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pufferlib.selfplay.league import League
    from pufferlib.selfplay.ratings import fit_ratings
    from pufferlib.selfplay.round_robin import CrossTable, match

__all__ = ["CrossTable", "League", "fit_ratings", "match"]

_HOMES = {"CrossTable": "round_robin", "League": "league", "fit_ratings": "ratings", "match": "round_robin"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
