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
    from pufferlib.registry import env_creator, list_envs, make, register
    from pufferlib.training.agent import load
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
    "list_envs",
    "load",
    "make",
    "register",
    "set_buffers",
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
    "list_envs": "registry",
    "load": "train.agent",
    "make": "registry",
    "register": "registry",
    "set_buffers": "buffers",
}
_MODULES = {
    "analysis",
    "emulation",
    "envpool",
    "export",
    "frameworks",
    "models",
    "ocean",
    "pytorch",
    "render",
    "spaces",
    "sweep",
    "train",
    "vector",
    "vectorization",
    "wrappers",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"pufferlib.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"pufferlib.{name}")
    else:
        raise AttributeError(f"module 'pufferlib' has no attribute {name!r}")
    globals()[name] = value
    _register_ids()
    return value


def _register_ids() -> None:
    """Let ``gymnasium.make`` know Ocean's environments, for whoever has imported Gymnasium before."""
    if "gymnasium" in sys.modules:
        from pufferlib.registry.gymnasium_ids import register_ids

        register_ids()


_register_ids()


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
