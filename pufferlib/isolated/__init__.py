"""Environments that need another set of packages: they run in an interpreter of their own, behind the same API.

Some packages cannot share an installation with the rest (JAX of one version, pygame instead of
pygame-ce). Such a *stack* is a virtual environment of the same Python version, beside this one.
``IsolatedEnv`` has a worker of ``pufferlib.vector.multiprocessing`` there and is a ``PufferEnv`` like any other: for
``vector.make`` with every backend, and for training.
"""

from pufferlib.isolated.env import IsolatedEnv
from pufferlib.isolated.stacks import find_interpreter, stack_folders

__all__ = ["IsolatedEnv", "find_interpreter", "stack_folders"]
