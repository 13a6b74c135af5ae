"""Training by PPO: settings, the trainer, evaluation, runs; ``pufferlib.train("breakout")`` does all of it.

The package can be called: ``pufferlib.train(...)`` is ``pufferlib.train.launch.train(...)``, which its docstring
describes.
"""

import sys
from types import ModuleType
from typing import Any

__all__: list[str] = []


class _Callable(ModuleType):
    """Module that is called like the function of its name, which is imported only then, since it brings torch."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``pufferlib.train.launch.train``."""
        from pufferlib.train.launch import train

        return train(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
