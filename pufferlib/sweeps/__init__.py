"""Search for settings, on Optuna: spaces, trials in worker processes, reports; ``pufferlib.sweep("breakout")``.

The package can be called: ``pufferlib.sweep(...)`` is ``pufferlib.sweeps.launch.sweep(...)``, which its docstring
describes.
"""

import importlib
import sys
import types
import typing

_HOME = {"SweepConfig": "settings", "SweepResult": "result", "load_sweep": "result", "sweep": "launch"}


class _CallableSweep(types.ModuleType):
    """Module that is called like the function of its name, which is imported only then."""

    def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Call ``pufferlib.sweeps.launch.sweep``."""
        from pufferlib.sweeps.launch import sweep

        return sweep(*args, **kwargs)


def __getattr__(name: str) -> typing.Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pufferlib.sweep' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pufferlib.sweep.{_HOME[name]}"), name)


sys.modules[__name__].__class__ = _CallableSweep
