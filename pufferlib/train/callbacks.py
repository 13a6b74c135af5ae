"""Callbacks: objects that take part in a training, and may stop it.

Evaluation during training and early stops are callbacks too, see ``PeriodicEvaluation`` and ``StopAtScore``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError

if TYPE_CHECKING:
    from pufferlib.train.trainer import Trainer

__all__ = ["Callback", "CallbackFunction", "CallbackList"]

HOOKS = ("on_training_start", "on_rollout_end", "on_update_end", "on_checkpoint", "on_training_end")
CallbackFunction = Callable[["Trainer", dict[str, float]], object]


class Callback:
    """Base of callbacks; no hook does anything, so that each class overrides those that it needs.

    A hook may read all of the trainer and call ``trainer.stop`` and ``trainer.request_checkpoint``. What it raises ends
    the training after the update in progress, with a checkpoint.
    """

    def on_training_start(self, trainer: "Trainer") -> None:
        """Called once, before the first update, after a checkpoint was restored. What this raises ends at once."""

    def on_rollout_end(self, trainer: "Trainer") -> None:
        """Called once for each update, when ``trainer.rollout`` is collected and nothing is learned from it yet."""

    def on_update_end(self, trainer: "Trainer", metrics: dict[str, float]) -> None:
        """Called after each update, before the loggers.

        Args:
            trainer: Its ``policy`` has the new weights.
            metrics: Those of the update; figures that are added here reach the loggers.
        """

    def on_checkpoint(self, trainer: "Trainer", path: Path) -> None:
        """Called after a checkpoint was written, with its folder."""

    def on_training_end(self, trainer: "Trainer") -> None:
        """Called once, while the environments are still open: at the end, after Ctrl-C, and after an error too."""


class CallbackList(Callback):
    """Calls several callbacks, in their order; what one of them raises is kept until ``raise_failure``.

    The others are called nevertheless, so that the update and the training end as they would have.

    Args:
        callbacks: Objects with all or some of the methods of ``Callback``, or functions, which are called as
            ``on_update_end``.

    Raises:
        APIUsageError: One of them is neither.
    """

    def __init__(self, callbacks: Sequence[Callback | CallbackFunction]) -> None:
        self._callbacks = [_checked(callback) for callback in callbacks]
        self._failure: Exception | None = None

    def on_training_start(self, trainer: "Trainer") -> None:
        """See ``Callback``."""
        self._call("on_training_start", trainer)

    def on_rollout_end(self, trainer: "Trainer") -> None:
        """See ``Callback``."""
        self._call("on_rollout_end", trainer)

    def on_update_end(self, trainer: "Trainer", metrics: dict[str, float]) -> None:
        """See ``Callback``."""
        self._call("on_update_end", trainer, metrics)

    def on_checkpoint(self, trainer: "Trainer", path: Path) -> None:
        """See ``Callback``."""
        self._call("on_checkpoint", trainer, path)

    def on_training_end(self, trainer: "Trainer") -> None:
        """See ``Callback``."""
        self._call("on_training_end", trainer)

    def raise_failure(self) -> None:
        """Raise what a callback raised, once, with a note that names it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _call(self, hook: str, trainer: "Trainer", *args: Any) -> None:
        for callback in self._callbacks:
            method = getattr(callback, hook, None)
            if method is None:
                continue
            try:
                method(trainer, *args)
            except Exception as error:
                where = f"the callback {_name(callback)}, {hook}, after update {trainer.updates}"
                error.add_note(f"raised by {where}")
                trainer.stop(f"{type(error).__name__} in {where}")
                self._failure = self._failure or error


class _Function(Callback):
    """A function as a callback."""

    def __init__(self, function: CallbackFunction) -> None:
        self.function = function

    def on_update_end(self, trainer: "Trainer", metrics: dict[str, float]) -> None:
        """Call the function."""
        self.function(trainer, metrics)


def _checked(callback: Any) -> Any:
    """The callback, if it is one."""
    if isinstance(callback, type):
        raise APIUsageError(f"Trainer: a callback must be an object, got the class {callback.__name__}; call it first")
    if any(hasattr(callback, hook) for hook in HOOKS):
        return callback
    if not callable(callback):
        raise APIUsageError(
            f"Trainer: a callback must be a function of trainer and metrics, or have one of the methods "
            f"{', '.join(HOOKS)}, got {callback!r:.80}"
        )
    return _Function(callback)


def _name(callback: Any) -> str:
    """Name of a callback's function or class."""
    if isinstance(callback, _Function):
        return getattr(callback.function, "__qualname__", None) or repr(callback.function)
    return type(callback).__qualname__
