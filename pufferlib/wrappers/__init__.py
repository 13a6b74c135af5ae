"""Wrappers of single environments. Wrappers of whole batches are in ``pufferlib.wrappers.vector``.

Apply single-environment wrappers before emulation. They are defined in the module ``single``.
"""

from pufferlib.imports import open_door
from pufferlib.wrappers.single import (
    ClipAction,
    EpisodeStats,
    GymToGymnasium,
    MeanOverAgents,
    MultiagentEpisodeStats,
    PadAgents,
    PettingZooTruncatedWrapper,
    ResizeObservation,
)

__all__ = [
    "ClipAction",
    "EpisodeStats",
    "GymToGymnasium",
    "MeanOverAgents",
    "MultiagentEpisodeStats",
    "PadAgents",
    "PettingZooTruncatedWrapper",
    "ResizeObservation",
]


__getattr__, _ = open_door(__name__, {}, ["vector"])  # imported on first use
