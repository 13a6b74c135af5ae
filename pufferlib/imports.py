"""Finders that take part in imports: old module names are explained, and Gymnasium gets Ocean's ids."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["install_finders"]

_MOVED = {
    "clean_pufferl": "training",
    "export": "exports",
    "pufferl": "training",
    "replay": "replays",
    "sweep": "sweeps",
    "train": "training",
}


def install_finders() -> None:
    """Explain old names of modules from now on, and register Ocean's ids as soon as Gymnasium is imported."""
    sys.meta_path.append(_MovedModules)  # last, so that it is asked only for what there is not
    if "gymnasium" in sys.modules:
        _register_ids()
    else:
        sys.meta_path.insert(0, _GymnasiumToCome)


class _MovedModules:
    """Finder that says where modules of earlier versions, and of PufferLib 3, are now."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for ``pufferlib.train`` and others, and find nothing."""
        parent, _, package = name.partition(".")
        if parent == "pufferlib" and package in _MOVED:
            message = f"No module named {name!r}: import from pufferlib.{_MOVED[package]}"
            if not package.endswith("pufferl"):
                message += f"; pufferlib.{package} is a function"
            raise ModuleNotFoundError(message, name=name)


class _GymnasiumToCome:
    """Finder of ``gymnasium``, which registers Ocean's ids once it is loaded."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of ``gymnasium`` with a loader that registers, or None for every other name."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        loader: Any = spec and spec.loader
        if loader is not None:
            load = loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register_ids()

            loader.exec_module = load_and_register
        return spec


def _register_ids() -> None:
    from pufferlib.registry.gymnasium_ids import register_ids

    register_ids()
