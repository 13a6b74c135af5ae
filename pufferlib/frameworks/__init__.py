"""Environments and policies for the loops of other libraries, and theirs for our trainer; a module for each library.

``cleanrl``: policies in the single files of CleanRL. ``rllib``, ``sb3`` and ``torchrl``: environments for the
algorithms of RLlib, Stable-Baselines3 and TorchRL. ``gymnasium`` and ``pettingzoo``: C environments as these libraries
have them.
"""

import importlib
import types

_MODULES = {"cleanrl", "gymnasium", "pettingzoo", "rllib", "sb3", "torchrl"}


def __getattr__(name: str) -> types.ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
