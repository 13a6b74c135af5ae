"""Fast environments, emulation, vectorization and training for reinforcement learning.

Importing this package imports nothing else. Each public name is imported on first use, so that workers and commands
start quickly and torch is only loaded for training.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import install_finders, open_door

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
    "emulation",
    "envpool",
    "exports",
    "frameworks",
    "models",
    "ocean",
    "pytorch",
    "render",
    "replays",
    "runs",
    "selfplay",
    "spaces",
    "sweeps",
    "testing",
    "training",
    "vector",
    "vectorization",
    "wrappers",
}

__getattr__, __dir__ = open_door(__name__, _HOME, _MODULES)
install_finders()
