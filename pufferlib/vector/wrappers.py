"""Former location of ``pufferlib.wrappers.vector``."""

from pufferlib.wrappers.vector import *  # noqa: F403
from pufferlib.wrappers.vector import __all__ as __all__
