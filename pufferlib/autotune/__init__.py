"""Search for the fastest vectorization of an environment on this machine.

``search`` lists and ranks the configurations, ``measure`` measures them, and ``cache`` stores the results.
"""

from pufferlib.autotune.measure import EnvProfile
from pufferlib.autotune.search import TunedConfig, autotune, tuned

__all__ = ["EnvProfile", "TunedConfig", "autotune", "tuned"]
