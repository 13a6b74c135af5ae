"""Lazy imports of public names, and import finders.

The finders explain old module names, and register Ocean's environment ids with Gymnasium.
"""

import functools
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["install_finders", "open_door"]


_NAMESPACE = "puffer"  # of Ocean's ids: puffer/breakout
# Modules of earlier versions, and of PufferLib 2 and 3, that have another name here.
_MOVED = {
    "analysis": "pufferlib.runs",
    "clean_pufferl": "pufferlib.training",
    "cleanrl": "pufferlib.frameworks.cleanrl",
    "environment": "pufferlib",
    "environments": "pufferlib.bindings, or call pufferlib.make with the name of an environment",
    "exceptions": "pufferlib",
    "export": "pufferlib.exports; pufferlib.export is a function",
    "policy_pool": "pufferlib.training",
    "policy_ranker": "pufferlib.selfplay",
    "postprocess": "pufferlib.wrappers",
    "pufferl": "pufferlib.training",
    "replay": "pufferlib.replays; pufferlib.replay is a function",
    "sweep": "pufferlib.sweeps; pufferlib.sweep is a function",
    "train": "pufferlib.training; pufferlib.train is a function",
    "utils": "pufferlib.testing",
}


def open_door(package: str, extra: str = "train") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose public names are imported on first use.

    Importing the package then imports nothing else. Workers and commands start quickly, and torch is only loaded for
    training. The public names are listed once, as imports in the package's ``__init__.pyi``, which type checkers and
    editors read too. Each import has the form ``name as name``. If the module of a name needs a package that is not
    installed, BindingMissing is raised.

    Args:
        package: ``__name__`` of the package.
        extra: Argument of ``puffer install`` that installs missing packages.
    """

    @functools.cache
    def modules() -> dict[str, str]:
        """Return the module from which each public name is imported. Public modules come from ``.``."""
        with open(str(sys.modules[package].__file__).rpartition(".")[0] + ".pyi", encoding="utf-8") as file:
            stub = file.read()
        found = dict.fromkeys(re.findall(r"^(\w+):", stub, re.MULTILINE), package)
        for module, names in re.findall(r"^from (\S+) import (\([^)]*\)|.*)$", stub, re.MULTILINE):
            found |= dict.fromkeys(re.findall(r"(\w+) as ", names), module)
        return found

    def fetch(name: str) -> Any:
        if name == "__all__" and (names := sorted(name for name, module in modules().items() if module != ".")):
            return names
        if name.startswith("__") or name not in modules():
            moved = f": import from {_MOVED[name]}" if package == "pufferlib" and name in _MOVED else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{moved}")
        if modules()[name] == ".":
            return importlib.import_module(f"{package}.{name}")
        try:
            value = getattr(importlib.import_module(modules()[name]), name)
        except ModuleNotFoundError as error:
            raise _missing(f"{package}.{name}", extra, error) from error
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted(modules())


def _missing(name: str, extra: str, error: ModuleNotFoundError) -> Exception:
    if not error.name or error.name.startswith("pufferlib"):
        return error  # a missing module of pufferlib itself is not a missing extra
    from pufferlib.errors import BindingMissing
    from pufferlib.machine.commands import way_to_install

    return BindingMissing(f"{name}: the package {error.name} is not installed; {way_to_install(extra)}")


def install_finders() -> None:
    """Install finders that explain old module names, and register Ocean's ids once Gymnasium is imported."""
    sys.meta_path.append(_MovedModules)  # last, so that it is asked only for missing modules
    if "gymnasium" in sys.modules:
        _register_ids()
    else:
        sys.meta_path.insert(0, _GymnasiumFinder)


class _MovedModules:
    """Finder that names the new location of modules and names of earlier versions and of PufferLib 3."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for moved modules such as ``pufferlib.train``. Never find a module.

        Before ``from pufferlib.emulation import PufferEnv`` fails, Python asks for ``pufferlib.emulation.PufferEnv``.
        """
        package, _, last = name.rpartition(".")
        if package.startswith("pufferlib.") and last in getattr(sys.modules["pufferlib"], "__all__", ()):
            raise ModuleNotFoundError(f"{package} has no {last}: import it from pufferlib")
        parent, _, module = name.partition(".")
        if parent == "pufferlib" and module in _MOVED:
            # ``from pufferlib import pufferl`` hides the message of an error that has name=.
            raise ModuleNotFoundError(f"No module named {name!r}: import from {_MOVED[module]}")


class _GymnasiumFinder:
    """Finder for ``gymnasium`` that registers Ocean's ids after it is loaded."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of ``gymnasium`` with a loader that also registers, or None for any other name."""
        if name != "gymnasium":
            return None
        # Programs also ask for a spec without loading it, so this finder stays until gymnasium is loaded.
        others = [finder for finder in sys.meta_path if finder is not cls and hasattr(finder, "find_spec")]
        spec = next((found for finder in others if (found := finder.find_spec(name, path))), None)
        loader: Any = spec and spec.loader
        if loader is not None:
            load = loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                if cls in sys.meta_path:
                    sys.meta_path.remove(cls)
                _register_ids()

            loader.exec_module = load_and_register
        return spec


def _register_ids() -> None:
    """Register all C environments of Ocean with Gymnasium, without loading them. Repeated calls do nothing."""
    from pathlib import Path

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
