"""Doors of packages: public names that are fetched from their modules on first use."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["open_door"]


def open_door(
    package: str, homes: Mapping[str, str], modules: Collection[str] = (), extra: str = "train"
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose public names are defined in its modules.

    Importing the package then imports nothing else. Workers and command lines start at once, and only those who train
    load torch. A name whose module needs a package that is not installed raises BindingMissing.

    Args:
        package: Its ``__name__``.
        homes: Module of each public name, relative to ``pufferlib``.
        modules: Modules of the package that are public themselves.
        extra: What ``puffer install`` is told to bring a missing package.
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
        return error  # a part of our own that is missing is no matter of extras
    from pufferlib.errors import BindingMissing
    from pufferlib.machine.commands import way_to_install

    return BindingMissing(f"{name}: the package {error.name} is not installed; {way_to_install(extra)}")
