"""Recording and replay of episodes.

A ``Bundle`` is a file with everything that is needed to repeat the steps of one environment. ``failures`` writes one
for every ``WorkerError``, and ``Recorder`` writes them on request. ``pufferlib.replay`` repeats the steps.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.replays.bundle import Bundle
    from pufferlib.replays.player import Replayed, replay
    from pufferlib.replays.recorder import Recorder

__all__ = [
    "Bundle",
    "Recorder",
    "Replayed",
    "replay",
]

_HOME = {
    "Bundle": "replays.bundle",
    "Recorder": "replays.recorder",
    "Replayed": "replays.player",
    "replay": "replays.player",
}

__getattr__, __dir__ = open_door(__name__, _HOME)
