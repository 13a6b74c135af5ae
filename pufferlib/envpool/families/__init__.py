"""Families of tasks: each module has ``tasks()``, and imports nothing heavy before one of them is made."""

import pkgutil

__all__ = ["FAMILIES"]

#: Names of the modules of this package, which are found by their place.
FAMILIES = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))
