"""Wrappers of whole batches: array operations on all rows, for every backend.

Each wrapper takes a vector environment of ``pufferlib.vector.make`` or another wrapper, and has the same interface.
Wrappers of single environments are in ``pufferlib.wrappers`` and in Gymnasium.

``base`` defines the base class, and ``transitions`` the batch that wrappers transform. ``leaves`` handles nested
observations. The loops over rows are compiled (``_kernels.pyx``).
"""

from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.frames import ActionRepeat, FrameStack
from pufferlib.wrappers.vector.normalize import (
    ClipAction,
    ClipObservation,
    ClipReward,
    NormalizeObservation,
    NormalizeReward,
)
from pufferlib.wrappers.vector.novelty import NoveltyReward
from pufferlib.wrappers.vector.records import EpisodeStatistics, RecordVideo
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = [
    "ActionRepeat",
    "ClipAction",
    "ClipObservation",
    "ClipReward",
    "EpisodeStatistics",
    "FrameStack",
    "NormalizeObservation",
    "NormalizeReward",
    "NoveltyReward",
    "RecordVideo",
    "Transitions",
    "VectorWrapper",
]
