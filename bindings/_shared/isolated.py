"""The part of ``env_creator`` shared by bindings whose packages need an isolated Python environment."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pufferlib.buffers import BufferSource
from pufferlib.errors import BindingMissing, UnknownKeywordError, UnknownNameError
from pufferlib.isolated import IsolatedEnv, find_interpreter, stack_folders

from .creator import facts_of
from .missing import way_to_install
from .options import check_render_mode

__all__ = ["isolated_creator"]


def isolated_creator(
    package: str,
    name: str,
    known: Iterable[str],
    arguments: Callable[..., dict[str, Any]],
    adaptor: str = "env:make",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., IsolatedEnv]:
    """Return a picklable creator ``(buf=None, seed=0, timeout_s=..., **options)`` of an isolated environment.

    Args:
        package: ``__name__`` of the binding.
        name: Name of the environment.
        known: All names that the binding accepts.
        arguments: Function of the binding, ``(where, **options)``, whose keyword-only parameters are the options. It
            checks their values and returns the adaptor's arguments other than ``name`` and ``seed``.
        adaptor: ``module:function`` in the binding, called in the isolated process. Returns a ``PufferEnv``.
        variables: Environment variables for the isolated process, unless they are already set.

    Raises:
        UnknownNameError: ``name`` is not in ``known``. The error suggests similar names.
    """
    known = tuple(known)
    if name not in known:
        raise UnknownNameError.of(package, "environment", name, known)
    return functools.partial(_create, package, adaptor, arguments, dict(variables), name)


def _create(
    package: str,
    adaptor: str,
    arguments: Callable[..., dict[str, Any]],
    variables: Mapping[str, str],
    name: str,
    buf: BufferSource = None,
    seed: int = 0,
    timeout_s: float | None = 600.0,
    render_mode: str | None = None,
    **options: Any,
) -> IsolatedEnv:
    facts = facts_of(package)
    where = f"{facts.name}/{name}"
    parameters = inspect.signature(arguments).parameters.values()
    known = {item.name for item in parameters if item.kind is item.KEYWORD_ONLY} | {"timeout_s", "render_mode"}
    for option in options.keys() - known:
        raise UnknownKeywordError.of(where, "keyword argument", option, known)
    check_render_mode(where, render_mode)
    checked = arguments(where, **options) | {"name": name, "seed": seed, "render_mode": render_mode}
    python = find_interpreter(facts.isolated)
    if python is None:
        folders = " or ".join(map(str, stack_folders(facts.isolated)))
        raise BindingMissing(
            f"{where}: needs the packages of {facts.title}, and found none in {folders}; "
            + way_to_install(facts, where)
        )
    return IsolatedEnv(where, python, f"{package}.{adaptor}", checked, buf, timeout_s, variables)
