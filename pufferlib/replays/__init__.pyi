from pufferlib.replays.bundle import Bundle as Bundle
from pufferlib.replays.player import Replayed as Replayed, replay as replay
from pufferlib.replays.recorder import Recorder as Recorder
