"""Wrappers: around one environment, before emulation, and in ``pufferlib.wrappers.vector`` around whole batches.

``single`` has the former.
"""

import importlib
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name == "vector":  # loaded when it is used
        return importlib.import_module("pufferlib.wrappers.vector")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
