"""Episodes that can be stepped again.

``bundle``: the file. It is written by ``failures``, for every ``WorkerError``, and by ``recorder``, on request.
``pufferlib.replay`` steps it again.
"""

from typing import TYPE_CHECKING

from pufferlib.doors import open_door

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
