"""Training by PPO: settings, the trainer, evaluation, runs; ``pufferlib.train("breakout")`` does all of it.

The package can be called: ``pufferlib.train(...)`` is ``pufferlib.training.launch.train(...)``, which its docstring
describes, and with ``seeds=5`` it is ``train_seeds``.
"""

import sys
import types
import typing


class _Callable(types.ModuleType):
    """Module that is called like the function of its name, which is imported only then, since it brings torch."""

    def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Call ``pufferlib.training.launch.train``, or with ``seeds`` given ``train_seeds``, which takes several."""
        from pufferlib.errors import BindingMissing
        from pufferlib.machine.commands import way_to_install

        try:
            from pufferlib.training.launch import train, train_seeds
        except ModuleNotFoundError as error:
            if not error.name or error.name.startswith("pufferlib"):
                raise  # a part of our own that is missing is no matter of extras
            message = f"pufferlib.train: the package {error.name} is not installed; {way_to_install('train')}"
            raise BindingMissing(message) from error
        return train(*args, **kwargs) if kwargs.get("seeds") is None else train_seeds(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
