"""Built-in tasks. Each module of this package has a function ``tasks()`` that returns some of them."""

import importlib
import pkgutil

from pufferlib.envpool.pool import PoolTask

__all__ = ["load_tasks"]


def load_tasks() -> list[PoolTask]:
    """Import all modules of this package and return their tasks."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return [task for module in modules for task in module.tasks()]
