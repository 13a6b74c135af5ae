"""Agents against each other: matches with cross tables and ratings, and leagues that remember them.

``pufferlib.training`` has the opponents of training, its settings ``selfplay``. Here trained agents meet: ``entrants``
finds them and the game that they share, ``games`` plays, ``round_robin`` and ``league`` pair them, ``ratings`` fits Elo
ratings.
"""

from typing import TYPE_CHECKING

from pufferlib.doors import open_door

if TYPE_CHECKING:
    from pufferlib.selfplay.league import League
    from pufferlib.selfplay.ratings import fit_ratings
    from pufferlib.selfplay.round_robin import CrossTable, match

__all__ = [
    "CrossTable",
    "League",
    "fit_ratings",
    "match",
]

_HOME = {
    "CrossTable": "selfplay.round_robin",
    "League": "selfplay.league",
    "fit_ratings": "selfplay.ratings",
    "match": "selfplay.round_robin",
}

__getattr__, __dir__ = open_door(__name__, _HOME)
