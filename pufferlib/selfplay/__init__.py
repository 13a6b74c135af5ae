"""Matches and leagues of trained agents, with cross tables and Elo ratings.

``entrants`` finds the agents and the game that they share, ``games`` plays, ``round_robin`` and ``league`` pair the
agents, and ``ratings`` fits Elo ratings. Self-play during training is in ``pufferlib.training`` (settings
``selfplay``).
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

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
