"""Search for settings with Optuna: search spaces, trials in worker processes, and reports.

Start with ``pufferlib.sweep``.
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__, extra="sweep")
