"""Callbacks: objects that take part in a training, and may stop it.

Evaluation during training and early stops are callbacks too, see ``PeriodicEvaluation`` and ``StopAtScore``.
"""

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError
from pufferlib.registry import is_object_name, load_object

if TYPE_CHECKING:
    from pufferlib.training.trainer import Trainer

__all__ = ["Callback", "CallbackFunction", "CallbackList", "find_callback"]

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
            metrics: Metrics of the update. Numbers that are added here reach the loggers, also as NumPy scalars and
                as arrays and tensors of one element. Other values are left out with a warning.
        """

    def on_checkpoint(self, trainer: "Trainer", path: Path) -> None:
        """Called after a checkpoint was written, with its folder."""

    def on_training_end(self, trainer: "Trainer") -> None:
        """Called once, while the environments are still open: at the end, after Ctrl-C, and after an error too."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to go on as this one does, kept in each checkpoint.

        Nested dicts and lists of tensors, arrays, numbers and strings; an empty dict, as here, is not kept. A state
        that cannot be saved is left out of the checkpoint with a warning.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called; before ``on_training_start``, where the checkpoint has a state."""


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
        self._failure: Exception | SystemExit | None = None

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

    def state_dict(self) -> dict[str, Any]:
        """See ``Callback``; by the names of their classes."""
        states = ((name, _state_of(name, callback)) for name, callback in self._with_states())
        return {name: state for name, state in states if state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ``Callback``; those that the checkpoint does not know begin anew."""
        for name, callback in self._with_states():
            if name in state:
                callback.load_state_dict(state[name])

    def raise_failure(self) -> None:
        """Raise what a callback raised, once, with a note that names it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _with_states(self) -> Iterator[tuple[str, Any]]:
        """Callbacks that have a state, by names that tell several of one class apart."""
        seen = Counter[str]()
        for callback in self._callbacks:
            if hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict"):
                name = _name(callback)
                seen[name] += 1
                yield (name if seen[name] == 1 else f"{name} {seen[name]}"), callback

    def _call(self, hook: str, trainer: "Trainer", *args: Any) -> None:
        for callback in self._callbacks:
            method = getattr(callback, hook, None)
            if method is None:
                continue
            try:
                method(trainer, *args)
            except (Exception, SystemExit) as error:  # sys.exit() must not cost the training either
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


def find_callback(where: str, name: str) -> Callable[[], Callback | CallbackFunction]:
    """Find the callback that ``name`` stands for, and return what makes it: a new one each time where it is a class.

    Args:
        where: Begins the message of an error.
        name: A class, a function or an object: ``mypkg.callbacks:KeepDoublings``, ``path/to/my_callbacks.py:enough``;
            a file alone means its only class of ``Callback``.

    Raises:
        UnknownNameError: There is no such module or attribute.
        APIUsageError: There is no such file, it cannot be run, or what it names is no callback.
    """
    if not is_object_name(name):
        raise APIUsageError(f"{where}: expected module:Class, file.py:Class, or a function instead, got {name!r}")
    found = load_object(where, name, (Callback,))
    if not isinstance(found, type):
        callback: Callback | CallbackFunction = found
        _checked(callback, where)
        return lambda: callback
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise APIUsageError(
            f"{where}: the class {name} must need no arguments ({error}); name a function that takes trainer and "
            "metrics, or an object"
        ) from error
    if not any(hasattr(found, hook) for hook in HOOKS):
        raise APIUsageError(f"{where}: the class {name} must have one of the methods {', '.join(HOOKS)}, got none")
    return found


def _checked(callback: Any, where: str = "Trainer") -> Any:
    """The callback, if it is one."""
    if isinstance(callback, type):
        raise APIUsageError(f"{where}: a callback must be an object, got the class {callback.__name__}; call it first")
    if any(hasattr(callback, hook) for hook in HOOKS):
        return callback
    if not callable(callback):
        raise APIUsageError(
            f"{where}: a callback must be a function of trainer and metrics, or have one of the methods "
            f"{', '.join(HOOKS)}, got {callback!r:.80}"
        )
    return _Function(callback)


def _state_of(name: str, callback: Any) -> dict[str, Any]:
    """State of a callback; empty, with a warning, if it cannot be saved, since a checkpoint matters more."""
    from pufferlib.training.tensor_file import can_be_written  # brings torch, which naming a callback must not

    reason = "it has values that are no numbers, strings, tensors or arrays, nor dicts and lists of them"
    try:
        state: dict[str, Any] = callback.state_dict()
        if can_be_written({name: state}):
            return state
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(f"the checkpoint has no state of the callback {name}: {reason}", stacklevel=5)
    return {}


def _name(callback: Any) -> str:
    """Name of a callback's function or class."""
    if isinstance(callback, _Function):
        return getattr(callback.function, "__qualname__", None) or repr(callback.function)
    return type(callback).__qualname__
