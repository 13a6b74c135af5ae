"""Wrappers: around one environment, before emulation, and in ``pufferlib.wrappers.vector`` around whole batches.

``single`` has the former.
"""

from pufferlib.doors import open_door
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


__getattr__, _ = open_door(__name__, {}, ["vector"])  # loaded when it is used
