"""Callbacks: objects that take part in a training, and may stop it.

Evaluation during training and early stops are callbacks too, see ``PeriodicEvaluation`` and ``StopAtScore``.
"""

import functools
import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from pufferlib.errors import APIUsageError, UnknownNameError, nearest
from pufferlib.registry import is_object_name, load_object
from pufferlib.vector.proxy import AnyVectorEnv

if TYPE_CHECKING:
    import torch

    from pufferlib.models import Policy
    from pufferlib.settings.config import Config
    from pufferlib.training.distributed.ranks import Ranks
    from pufferlib.training.episodes import EpisodeMeans
    from pufferlib.training.rollout import Rollout

__all__ = [
    "Callback",
    "CallbackFunction",
    "CallbackList",
    "TrainerView",
    "checked_callbacks",
    "find_callback",
    "for_other_ranks",
    "names_of",
]

HOOKS = ("wrap_envs", "on_training_start", "on_rollout_end", "on_update_end", "on_checkpoint", "on_training_end")


class TrainerView(Protocol):
    """The part of ``Trainer`` that callbacks rely on."""

    uptime_s: float

    @property
    def config(self) -> "Config":
        """Settings of the run. Automatic settings are replaced by their values."""

    @property
    def run_dir(self) -> Path:
        """Folder of the run."""

    @property
    def device(self) -> "torch.device":
        """Device of the policy."""

    @property
    def ranks(self) -> "Ranks":
        """Processes that train together."""

    @property
    def policy(self) -> "Policy":
        """Network that learns."""

    @property
    def optimizer(self) -> "torch.optim.Optimizer":
        """Optimizer of the policy."""

    @property
    def vecenv(self) -> Any:
        """Environments."""

    @property
    def rollout(self) -> "Rollout":
        """Rollout that was collected last."""

    @property
    def episodes(self) -> "EpisodeMeans":
        """Episodes that ended in the rollout, until the end of the update."""

    @property
    def agent_steps(self) -> int:
        """Number of steps of all agents so far."""

    @property
    def updates(self) -> int:
        """Number of updates completed."""

    def stop(self, reason: str) -> None:
        """Stop the training after the update in progress."""

    def request_checkpoint(self, score: float | None = None) -> None:
        """Save a checkpoint after the update in progress."""


CallbackFunction = Callable[[TrainerView, dict[str, float]], object]


class Callback:
    """Base class of callbacks. Every hook does nothing, so a subclass overrides only the ones that it needs.

    A hook may read everything of the trainer and call ``trainer.stop`` and ``trainer.request_checkpoint``. An exception
    ends the training after the update in progress, with a checkpoint.

    Attributes:
        every_rank: Call this callback in every rank, not in rank 0 only. The other ranks get a copy of the object as it
            is before the training, so everything in it must be picklable. A callback that overrides ``wrap_envs`` needs
            this to train in several ranks.
    """

    every_rank = False

    def wrap_envs(self, vecenv: AnyVectorEnv, policy: "Policy") -> Any:
        """Return the environments, for example in a wrapper. Called once, when the trainer is built.

        Args:
            vecenv: Environments, wrapped by the callbacks before this one.
            policy: Network that learns, with its initial weights.
        """
        return vecenv

    def on_training_start(self, trainer: TrainerView) -> None:
        """Run once before the first update, after a checkpoint was restored. An exception ends the training."""

    def on_rollout_end(self, trainer: TrainerView) -> None:
        """Run in each update after ``trainer.rollout`` is collected and before the policy learns from it."""

    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        """Run after each update, before the loggers.

        Args:
            trainer: Trainer, whose ``policy`` has the new weights.
            metrics: Metrics of the update. Numbers added here reach the loggers, also NumPy scalars and arrays and
                tensors of one element. Other values are left out with a warning.
        """

    def on_checkpoint(self, trainer: TrainerView, path: Path) -> None:
        """Run after a checkpoint was written to the folder ``path``."""

    def on_training_end(self, trainer: TrainerView) -> None:
        """Run once while the environments are still open, also after Ctrl-C and after an error."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs. It is saved in each checkpoint.

        Nested dicts and lists of tensors, arrays, numbers and strings. An empty dict, as here, is not saved. A state
        that cannot be saved is left out of the checkpoint with a warning.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore ``state_dict``. Called before ``on_training_start`` if the checkpoint has a state."""


class CallbackList(Callback):
    """Several callbacks, called in order. An exception of one of them is kept until ``raise_failure``.

    The other callbacks are called nevertheless, so that the update and the training end normally.

    Attributes:
        members: Callbacks of this rank.

    Args:
        callbacks: Objects with all or some of the methods of ``Callback``, or functions, which are called as
            ``on_update_end``.
        is_first: Whether this is rank 0. Other ranks keep only callbacks with ``every_rank``.

    Raises:
        APIUsageError: One of them is neither.
    """

    def __init__(self, callbacks: Sequence[Callback | CallbackFunction], is_first: bool = True) -> None:
        checked = checked_callbacks(callbacks)
        self.members = [each for each in checked if is_first or getattr(each, "every_rank", False)]
        self._failure: BaseException | None = None

    @override
    def wrap_envs(self, vecenv: AnyVectorEnv, policy: "Policy") -> Any:
        for callback in self.members:
            if hasattr(callback, "wrap_envs"):
                vecenv = callback.wrap_envs(vecenv, policy)
                if vecenv is None:
                    raise APIUsageError(
                        f"Trainer: {_name(callback)}.wrap_envs must return the environments, got None; return "
                        "vecenv, or a wrapper around it"
                    )
        return vecenv

    @override
    def on_training_start(self, trainer: TrainerView) -> None:
        self._call("on_training_start", trainer)

    @override
    def on_rollout_end(self, trainer: TrainerView) -> None:
        self._call("on_rollout_end", trainer)

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        self._call("on_update_end", trainer, metrics)

    @override
    def on_checkpoint(self, trainer: TrainerView, path: Path) -> None:
        self._call("on_checkpoint", trainer, path)

    @override
    def on_training_end(self, trainer: TrainerView) -> None:
        self._call("on_training_end", trainer)

    @override
    def state_dict(self) -> dict[str, Any]:
        states = ((name, _state_of(name, callback)) for name, callback in self._with_states())
        return {name: state for name, state in states if state}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, callback in self._with_states():
            if name in state:
                callback.load_state_dict(state[name])

    def raise_failure(self) -> None:
        """Raise the first exception of a callback, once, with a note that names the callback."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _with_states(self) -> Iterator[tuple[str, Any]]:
        """Yield the callbacks that have a state, each with a name that is unique among them."""
        seen = Counter[str]()
        for callback in self.members:
            if hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict"):
                name = _name(callback)
                seen[name] += 1
                yield (name if seen[name] == 1 else f"{name} {seen[name]}"), callback

    def _call(self, hook: str, trainer: TrainerView, *args: Any) -> None:
        for callback in self.members:
            method = getattr(callback, hook, None)
            if method is None:
                continue
            try:
                method(trainer, *args)
            except BaseException as error:  # an exit or an interrupt must not end the training without a checkpoint
                where = f"the callback {_name(callback)}, {hook}, after update {trainer.updates}"
                error.add_note(f"raised by {where}")
                trainer.stop(f"{type(error).__name__} in {where}")
                self._failure = self._failure or error


def for_other_ranks(callbacks: Sequence[Callback | CallbackFunction]) -> list[Callback | CallbackFunction]:
    """Return the callbacks that ranks other than rank 0 call too.

    Raises:
        APIUsageError: One of them wraps the environments of rank 0 only.
    """
    found = []
    for callback in callbacks:
        if getattr(callback, "every_rank", False):
            found.append(callback)
        elif getattr(type(callback), "wrap_envs", Callback.wrap_envs) is not Callback.wrap_envs:
            raise APIUsageError(
                f"train.processes: the callback {_name(callback)} wraps the environments of rank 0 only, so the ranks "
                "would train on different ones; set every_rank = True in its class"
            )
    return found


class _Function(Callback):
    """Callback that calls a function."""

    def __init__(self, function: CallbackFunction) -> None:
        self.function = function

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        self.function(trainer, metrics)


def find_callback(where: str, name: str) -> Callable[[], Callback | CallbackFunction]:
    """Return a function that makes the callback with this name. If the name is a class, each call makes a new object.

    Args:
        where: Start of error messages.
        name: Class, function or object, such as ``mypkg.callbacks:KeepDoublings`` or
            ``path/to/my_callbacks.py:enough``. For a file alone, the only subclass of ``Callback`` in it.

    Raises:
        UnknownNameError: There is no such module or attribute.
        APIUsageError: There is no such file, it cannot be run, or the name is not a callback.
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


def _check_names(callback: Any, where: str) -> None:
    """Raise UnknownNameError if a method is almost a hook: it would never be called."""
    for name in vars(type(callback)):
        if name.startswith("on_") and name not in HOOKS and (close := nearest(name, HOOKS, count=1, cutoff=0.85)):
            raise UnknownNameError.of(f"{where}: callback {type(callback).__name__}", "hook", name, HOOKS, close)


def checked_callbacks(callbacks: Any, where: str = "Trainer") -> list[Any]:
    """Return callbacks as objects with hooks.

    Raises:
        APIUsageError: ``callbacks`` is no list, or one of them is neither a function nor an object with hooks.
    """
    if isinstance(callbacks, str) or not isinstance(callbacks, Sequence):
        raise APIUsageError(f"{where}: callbacks must be a list, got {callbacks!r:.80}; put it into a list")
    return [_checked(callback, where) for callback in callbacks]


def _checked(callback: Any, where: str) -> Any:
    """Return ``callback`` as an object with hooks, or raise APIUsageError."""
    if isinstance(callback, type):
        raise APIUsageError(f"{where}: a callback must be an object, got the class {callback.__name__}; call it first")
    _check_names(callback, where)
    if any(hasattr(callback, hook) for hook in HOOKS):
        return callback
    if not callable(callback):
        raise APIUsageError(
            f"{where}: a callback must be a function of trainer and metrics, or have one of the methods "
            f"{', '.join(HOOKS)}, got {callback!r:.80}"
        )
    return _Function(callback)


def _state_of(name: str, callback: Any) -> dict[str, Any]:
    """Return the state of a callback. If it cannot be saved, warn and return an empty dict."""
    from pufferlib.runs.tensor_file import can_be_written  # loads torch, which find_callback must not

    reason = "it has values that are no numbers, strings, tensors or arrays, nor dicts and lists of them"
    try:
        state: dict[str, Any] = callback.state_dict()
        if can_be_written({name: state}):
            return state
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(f"the checkpoint has no state of the callback {name}: {reason}", stacklevel=5)
    return {}


def names_of(loss: Any, callbacks: Sequence[Any]) -> list[str]:
    """Return the names of the loss and callbacks of a training, in words, for ``About.given``."""
    return [f"the loss {_name(loss)}", *(f"the callback {_name(each)}" for each in callbacks)]


def _name(value: Any) -> str:
    """Return the name of the function or class of a callback or a loss."""
    value = value.function if isinstance(value, _Function) else value
    value = value.func if isinstance(value, functools.partial) else value
    return getattr(value, "__qualname__", None) or type(value).__qualname__
