"""Fast environments, emulation, vectorization and training for reinforcement learning.

Importing this package imports nothing else. Each public name is imported on first use, so that workers and commands
start quickly and torch is only loaded for training.
"""

from pufferlib.imports import install_finders, open_door

__version__ = "0.2.0"

__getattr__, __dir__ = open_door(__name__)
install_finders()
