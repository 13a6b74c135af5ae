"""Import finders that explain old module names, and register Ocean's environment ids with Gymnasium."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["install_finders"]

_NAMESPACE = "puffer"  # of Ocean's ids: puffer/breakout
_MOVED = {
    "analysis": "runs",
    "clean_pufferl": "training",
    "export": "exports",
    "pufferl": "training",
    "replay": "replays",
    "sweep": "sweeps",
    "train": "training",
}


def install_finders() -> None:
    """Install finders that explain old module names, and register Ocean's ids once Gymnasium is imported."""
    sys.meta_path.append(_MovedModules)  # last, so that it is asked only for missing modules
    if "gymnasium" in sys.modules:
        _register_ids()
    else:
        sys.meta_path.insert(0, _GymnasiumFinder)


class _MovedModules:
    """Finder that names the new location of modules of earlier versions and of PufferLib 3."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for moved modules such as ``pufferlib.train``. Never find a module."""
        parent, _, package = name.partition(".")
        if parent == "pufferlib" and package in _MOVED:
            message = f"No module named {name!r}: import from pufferlib.{_MOVED[package]}"
            if _MOVED[package].startswith(package):
                message += f"; pufferlib.{package} is a function"
            raise ModuleNotFoundError(message, name=name)


class _GymnasiumFinder:
    """Finder for ``gymnasium`` that registers Ocean's ids after it is loaded."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of ``gymnasium`` with a loader that also registers, or None for any other name."""
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
    """Register all C environments of Ocean with Gymnasium, without loading them. Repeated calls do nothing."""
    import gymnasium

    for settings in sorted((Path(__file__).parent / "ocean").glob("[!_]*/train.toml")):
        env_id = f"{_NAMESPACE}/{settings.parent.name}"
        if env_id not in gymnasium.registry and list(settings.parent.glob("*.c")):
            gymnasium.register(
                env_id,
                entry_point="pufferlib.frameworks.gymnasium:GameEnv",
                vector_entry_point="pufferlib.frameworks.gymnasium:make_vector_env",
                kwargs={"name": settings.parent.name},
            )
