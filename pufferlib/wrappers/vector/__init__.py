"""Wrappers of whole batches: array operations over all rows, the same on every backend.

Each takes what ``pufferlib.vector.make`` returns, or another wrapper, and has its interface. Wrappers of a single
environment, before it is part of a batch, are in ``pufferlib.wrappers`` and Gymnasium.

``base`` is what all have alike, ``transitions`` the batch on its way through them. ``leaves`` knows nested
observations; the loops over rows are compiled (``_kernels.pyx``).
"""

from pufferlib.wrappers.vector.action_repeat import ActionRepeat
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.clip import ClipAction, ClipObservation, ClipReward
from pufferlib.wrappers.vector.frame_stack import FrameStack
from pufferlib.wrappers.vector.normalize import NormalizeObservation, NormalizeReward
from pufferlib.wrappers.vector.statistics import EpisodeStatistics
from pufferlib.wrappers.vector.transitions import Transitions
from pufferlib.wrappers.vector.video import RecordVideo

__all__ = [
    "ActionRepeat",
    "ClipAction",
    "ClipObservation",
    "ClipReward",
    "EpisodeStatistics",
    "FrameStack",
    "NormalizeObservation",
    "NormalizeReward",
    "RecordVideo",
    "Transitions",
    "VectorWrapper",
]
