"""Training by PPO: settings, the trainer, evaluation, runs; ``pufferlib.train("breakout")`` does all of it.

The package can be called: ``pufferlib.train(...)`` is ``pufferlib.train.launch.train(...)``, which its docstring
describes.
"""

import sys
import types
import typing


class _Callable(types.ModuleType):
    """Module that is called like the function of its name, which is imported only then, since it brings torch."""

    def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Call ``pufferlib.train.launch.train``."""
        from pufferlib.train.launch import train

        return train(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
