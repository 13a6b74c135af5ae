"""Matches and leagues of trained agents, with cross tables and Elo ratings.

``entrants`` finds the agents and the game that they share, ``games`` plays, ``round_robin`` pairs the agents and fits
Elo ratings, and ``league`` keeps agents and their games in a file. Self-play during training is in
``pufferlib.training`` (settings ``selfplay``).
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
