"""Folders of runs: checkpoints, metrics and results on disk, and tools to find, list and compare runs.

The public names are imported from their modules on first use, because some modules load torch or matplotlib.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
