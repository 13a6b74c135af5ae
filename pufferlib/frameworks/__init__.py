"""Policies for the loops of other libraries, and theirs for our trainer; a module for each library.

``cleanrl``: the single files of CleanRL.
"""

import importlib
import types

_MODULES = {"cleanrl"}


def __getattr__(name: str) -> types.ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
