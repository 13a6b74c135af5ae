"""The part of ``env_creator`` that all bindings share: names, options, missing packages, emulation."""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pufferlib.buffers import Array
from pufferlib.errors import UnknownKeywordError, UnknownNameError
from pufferlib.registry.creators import emulated
from pufferlib.registry.facts import Facts, read_facts

from .missing import explain_missing

__all__ = ["creator", "facts_of"]


def creator(
    package: str, name: str, known: Iterable[str], adaptor: str = "env:make_env", options_of: tuple[str, ...] = ()
) -> Callable[..., Any]:
    """Return the picklable creator ``(buf=None, seed=0, **options)`` for ``env_creator(name)`` of a binding.

    The creator imports the adaptor and calls its function as ``function(name, **options)``. The result, a Gymnasium
    or PettingZoo environment, is wrapped in ``EpisodeStats`` (unless it already contains that wrapper) and emulated.
    A function with a parameter ``buf`` is called with ``buf`` and ``seed`` and returns the finished environment.

    Options are the function's keyword-only parameters and its parameters with a default. Any other option raises
    UnknownKeywordError. The function checks the values. If it has ``**options`` that ``options_of`` does not describe,
    it also checks their names.

    Args:
        package: ``__name__`` of the binding.
        name: Name of the environment.
        known: All names that the binding accepts.
        adaptor: ``module:function`` in the binding. The module imports the wrapped package.
        options_of: Names of further functions or classes in that module that receive ``**options``.

    Raises:
        UnknownNameError: ``name`` is not in ``known``. The error suggests similar names.
    """
    known = tuple(known)
    if name not in known:
        raise UnknownNameError.of(package, "environment", name, known)
    return functools.partial(_create, package, adaptor, options_of, name)


def _create(
    package: str,
    adaptor: str,
    options_of: tuple[str, ...],
    name: str,
    buf: Mapping[str, Array] | None = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    facts = facts_of(package)
    where = f"{facts.name}/{name}"
    module_name, _, function_name = adaptor.partition(":")
    with explain_missing(facts, where):
        module = importlib.import_module(f"{package}.{module_name}")
        function = getattr(module, function_name)
        if options_of or not _accepts_any_keyword(function):
            _check_options(where, options, [function, *(getattr(module, other) for other in options_of)])
        if "buf" in inspect.signature(function).parameters:
            return function(name, buf=buf, seed=seed, **options)
        env = function(name, **options)
        try:
            return emulated(env, buf, seed)
        except BaseException:
            env.close()
            raise


@functools.cache
def facts_of(package: str) -> Facts:
    """Return the facts of the binding whose ``__name__`` is ``package``."""
    file = importlib.import_module(package).__file__
    assert file is not None, package
    return read_facts(Path(file).with_name("binding.toml"))


def _accepts_any_keyword(function: Callable[..., Any]) -> bool:
    return any(item.kind is item.VAR_KEYWORD for item in inspect.signature(function).parameters.values())


def _check_options(where: str, options: Mapping[str, Any], functions: Iterable[Callable[..., Any]]) -> None:
    parameters = [item for function in functions for item in inspect.signature(function).parameters.values()]
    known = {item.name for item in parameters if item.kind is item.KEYWORD_ONLY or item.default is not item.empty}
    known -= {"buf", "seed"}
    for option in options.keys() - known:
        raise UnknownKeywordError.of(where, "keyword argument", option, known)
