"""Fast environments, emulation, vectorization and training for reinforcement learning.

Importing this package imports nothing else: each public name is fetched on its first use, so
that workers and command lines start at once and torch is loaded only by those who train.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pufferlib.buffers import set_buffers
    from pufferlib.env import PufferEnv
    from pufferlib.errors import (
        APIUsageError,
        BindingMissing,
        InvalidAgentError,
        PufferError,
        UnknownNameError,
        WorkerError,
    )
    from pufferlib.exports.exported import export
    from pufferlib.registry import env_creator, list_envs, make, register
    from pufferlib.replays.player import replay
    from pufferlib.sweeps.launch import sweep
    from pufferlib.training.agent import load
    from pufferlib.training.launch import train
    from pufferlib.wrappers import (
        ClipAction,
        EpisodeStats,
        GymToGymnasium,
        MeanOverAgents,
        MultiagentEpisodeStats,
        PettingZooTruncatedWrapper,
        ResizeObservation,
    )

__version__ = "0.2.0"

__all__ = [
    "APIUsageError",
    "BindingMissing",
    "ClipAction",
    "EpisodeStats",
    "GymToGymnasium",
    "InvalidAgentError",
    "MeanOverAgents",
    "MultiagentEpisodeStats",
    "PettingZooTruncatedWrapper",
    "PufferEnv",
    "PufferError",
    "ResizeObservation",
    "UnknownNameError",
    "WorkerError",
    "__version__",
    "env_creator",
    "export",
    "list_envs",
    "load",
    "make",
    "register",
    "replay",
    "set_buffers",
    "sweep",
    "train",
]

_HOME = {
    "APIUsageError": "errors",
    "BindingMissing": "errors",
    "ClipAction": "wrappers",
    "EpisodeStats": "wrappers",
    "GymToGymnasium": "wrappers",
    "InvalidAgentError": "errors",
    "MeanOverAgents": "wrappers",
    "MultiagentEpisodeStats": "wrappers",
    "PettingZooTruncatedWrapper": "wrappers",
    "PufferEnv": "env",
    "PufferError": "errors",
    "ResizeObservation": "wrappers",
    "UnknownNameError": "errors",
    "WorkerError": "errors",
    "env_creator": "registry",
    "export": "exports.exported",
    "list_envs": "registry",
    "load": "training.agent",
    "make": "registry",
    "register": "registry",
    "replay": "replays.player",
    "set_buffers": "buffers",
    "sweep": "sweeps.launch",
    "train": "training.launch",
}
_MODULES = {
    "analysis",
    "emulation",
    "envpool",
    "exports",
    "frameworks",
    "models",
    "ocean",
    "pytorch",
    "render",
    "replays",
    "selfplay",
    "spaces",
    "sweeps",
    "testing",
    "training",
    "vector",
    "vectorization",
    "wrappers",
}


_EXTRA = {"export": "train", "load": "train", "sweep": "sweep", "train": "train"}  # what brings torch
_MOVED = {
    "clean_pufferl": "training",
    "export": "exports",
    "pufferl": "training",
    "replay": "replays",
    "sweep": "sweeps",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = _fetch(name)
    elif name in _MODULES:
        value = importlib.import_module(f"pufferlib.{name}")
    else:
        raise AttributeError(f"module 'pufferlib' has no attribute {name!r}")
    globals()[name] = value
    _register_ids()
    return value


def _fetch(name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"pufferlib.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if name not in _EXTRA or not error.name or error.name.startswith("pufferlib"):
            raise
        from pufferlib.errors import BindingMissing
        from pufferlib.machine.commands import way_to_install

        message = f"pufferlib.{name}: the package {error.name} is not installed; {way_to_install(_EXTRA[name])}"
        raise BindingMissing(message) from error


class _MovedModules:
    """Finder that says where modules of earlier versions, and of PufferLib 3, are now."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for ``pufferlib.train`` and others, and find nothing."""
        package = name.removeprefix("pufferlib.").partition(".")[0]
        if name.startswith("pufferlib.") and package in _MOVED:
            place = f"pufferlib.{_MOVED[package]}"
            function = f" pufferlib.{package} is a function." if package in _HOME else ""
            raise ModuleNotFoundError(f"No module named {name!r}: import from {place}.{function}", name=name)


sys.meta_path.append(_MovedModules)  # last, so that it is asked only for what there is not


def _register_ids() -> None:
    """Let ``gymnasium.make`` know Ocean's environments, for whoever has imported Gymnasium before."""
    if "gymnasium" in sys.modules:
        from pufferlib.registry.gymnasium_ids import register_ids

        register_ids()


_register_ids()


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
