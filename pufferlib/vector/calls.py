"""Calls to environments where they live: methods, attributes, states and partial resets."""

import pickle
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium

from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.machine.pickling import pickled
from pufferlib.vector.env_runner import EnvRunner

__all__ = ["EnvCall", "Raised", "perform", "sendable"]


class EnvCall(NamedTuple):
    """Call to some of the environments of one runner.

    Attributes:
        kind: "call" a method, "get" or "set" an attribute, return the "wrappers", "reset", set the "options" of the
            next full reset, or "save" or "load" the state.
        positions: Indices of the environments within the runner.
        name: Name of the method or attribute.
        args: Positional arguments of the method.
        kwargs: Keyword arguments of the method.
        values: Attribute values, options or states, one for each position.
        seeds: Reset seeds, one for each position.
    """

    kind: Literal["call", "get", "set", "wrappers", "reset", "options", "save", "load"]
    positions: tuple[int, ...]
    name: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    values: Sequence[Any] = ()
    seeds: Sequence[int | None] = ()

    @property
    def is_plain(self) -> bool:
        """True if all arguments are of builtin types, so that they need not be pickled by value."""
        return all(type(value) in _PLAIN for value in (*self.args, *self.kwargs.values(), *self.values))


_PLAIN = {bool, bytes, float, int, str, type(None)}


class Raised:
    """Exception of an environment, returned in place of a result."""

    def __init__(self, error: Exception) -> None:
        self._error: Exception | None = error
        self._line = traceback.format_exception_only(error)[0].strip()
        self._traceback = "".join(traceback.format_exception(error)).rstrip()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the type, arguments and attributes of the exception.

        Unpickling an exception directly would call its ``__init__`` with wrong arguments. If the exception cannot be
        restored from these parts, they are None.
        """
        error = self._error
        parts = None if error is None else (type(error), error.args, vars(error))
        try:
            _exception(*pickle.loads(pickled(parts)))
        except Exception:
            parts = None
        return {**vars(self), "_error": parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the exception from its parts."""
        parts = state["_error"]
        vars(self).update(state, _error=None if parts is None else _exception(*parts))

    def error(self, where: str, env_id: int) -> Exception:
        """Return the exception with a note about its environment, or a WorkerError if it could not be pickled."""
        error = self._error or WorkerError(f"{where}: {self._line}")
        error.add_note(f"In environment {env_id}:\n{self._traceback}")
        return error


def _exception(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error


def perform(runner: EnvRunner, call: EnvCall) -> list[Any]:
    """Perform ``call``. Return a result for each position, or the infos of a reset.

    Exceptions of methods and attributes are returned as ``Raised``. Exceptions of a reset are raised.
    """
    if call.kind == "reset":
        return runner.reset(call.seeds, call.values or None, call.positions)
    if call.kind == "options":
        runner.next_options = list(call.values)
        return [None for _ in call.positions]
    if call.kind == "wrappers":
        return [_wrapper_names(runner.envs[position]) for position in call.positions]
    attempt = _attempt_state if call.kind in ("save", "load") else _attempt
    return [attempt(runner.envs[position], call, place) for place, position in enumerate(call.positions)]


def _attempt_state(env: Any, call: EnvCall, place: int) -> Any:
    """Save or load the state of an environment, including the state of the emulation."""
    name = f"{call.kind}_state"
    kwargs = call.kwargs if env.emulated else {}
    try:
        if not hasattr(env, name):
            raise APIUsageError(
                f"{type(env).__name__}: its state must be bytes to be saved, got no method {name}; define "
                "save_state() and load_state(state)"
            )
        result = getattr(env, name)(*call.values[place : place + 1], **kwargs)
        return result if call.kind == "save" else None
    except Exception as error:
        return Raised(error)


def _wrapper_names(env: Any) -> list[str]:
    """Return the class names of all wrappers, including base classes."""
    names, part = [], _user_env(env)
    while isinstance(part, gymnasium.Wrapper):
        names += [f"{kind.__module__}.{kind.__qualname__}" for kind in type(part).__mro__]
        part = part.env
    return names


def _attempt(env: Any, call: EnvCall, place: int) -> Any:
    owner = _user_env(env)
    try:
        if call.kind == "set":
            getattr(owner, "set_wrapper_attr", lambda *args: setattr(owner, *args))(call.name, call.values[place])
            return None
        value = getattr(owner, "get_wrapper_attr", lambda name: getattr(owner, name))(call.name)
        if call.kind == "get" or not (call.args or call.kwargs or callable(value)):
            return value  # as in Gymnasium's VectorEnv.call
        return value(*call.args, **call.kwargs)
    except Exception as error:
        return Raised(error)


def sendable(results: list[Any]) -> list[Any]:
    """Replace each result that cannot be pickled by an error."""

    def one(result: Any) -> Any:
        try:
            pickled(result)
        except Exception as error:
            return Raised(
                APIUsageError(f"a result must be something that can be pickled, got {result!r:.80} ({error})")
            )
        return result

    return [one(result) for result in results]


def _user_env(env: Any) -> Any:
    """Return the environment that the user wrote: the native one, or the one behind the emulation."""
    return env.env if env.emulated else env
