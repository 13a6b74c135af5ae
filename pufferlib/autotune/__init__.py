"""``autotune``: which way to run an environment is fastest on this machine.

``measure``: the cost of one way to run an environment. ``search``: the ways there are, and the answer. ``cache``: keeps
it.
"""

from pufferlib.autotune.measure import EnvProfile
from pufferlib.autotune.search import TunedConfig, autotune, tuned

__all__ = ["EnvProfile", "TunedConfig", "autotune", "tuned"]
