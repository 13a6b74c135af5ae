"""Lazy imports: public names of a package that are imported from their modules on first use."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["open_door"]


def open_door(
    package: str, homes: Mapping[str, str], modules: Collection[str] = (), extra: str = "train"
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose public names are imported on first use.

    Importing the package then imports nothing else. Workers and commands start quickly, and torch is only loaded for
    training. If the module of a name needs a package that is not installed, BindingMissing is raised.

    Args:
        package: ``__name__`` of the package.
        homes: Module that defines each public name, relative to ``pufferlib``.
        modules: Modules of the package that are public.
        extra: Argument of ``puffer install`` that installs missing packages.
    """

    def fetch(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(f"pufferlib.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            raise _missing(f"{package}.{name}", extra, error) from error
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted({*homes, *modules})


def _missing(name: str, extra: str, error: ModuleNotFoundError) -> Exception:
    if not error.name or error.name.startswith("pufferlib"):
        return error  # a missing module of pufferlib itself is not a missing extra
    from pufferlib.errors import BindingMissing
    from pufferlib.machine.commands import way_to_install

    return BindingMissing(f"{name}: the package {error.name} is not installed; {way_to_install(extra)}")
