"""Training by PPO: settings, trainer, loggers, callbacks and evaluation. ``pufferlib.train`` uses all of them.

The public names are imported from their modules on first use, because most modules load torch.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
