"""Environments that run in a separate interpreter, because they need other packages.

Some packages cannot be installed together with the rest (JAX of one version, or pygame instead of pygame-ce). They are
installed in a *stack*, a separate virtual environment with the same Python version. ``IsolatedEnv`` runs a worker of
``pufferlib.vector.multiprocessing`` in a stack. It is a ``PufferEnv`` like any other, and works with every backend of
``vector.make`` and with training.
"""

from pufferlib.isolated.env import IsolatedEnv
from pufferlib.isolated.stacks import find_interpreter, stack_folders

__all__ = ["IsolatedEnv", "find_interpreter", "stack_folders"]
