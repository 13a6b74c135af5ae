"""``autotune``: which way to run an environment is fastest on this machine.

``candidates``: the ways there are. ``measuring``: what one of them costs. ``ranking``: the answer. ``cache``:
keeps it.
"""

from pufferlib.vector.tuning.measure import EnvProfile
from pufferlib.vector.tuning.search import TunedConfig, autotune

__all__ = ["EnvProfile", "TunedConfig", "autotune"]
