"""Vectorization: many environments behind the interface of one.

``make`` is the way in. Backends: ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker), ``Ray`` (actors, on many machines) and ``PufferEnv``, the native one,
where the environment batches itself.
``autotune`` measures which of them is fastest for an environment on this machine.

All backends share the modules of this folder: ``arguments`` checks what is asked for and writes ``specs``,
``factory`` chooses the backend, ``vector_env`` is the interface, ``env_runner`` builds and steps the environments
of one process, ``pooled`` has them in workers. ``failures`` has the errors of workers, ``restarts`` keeps account of
those that were replaced, ``recording`` writes what environments did, to be stepped again. A kind of worker has a folder
of its own: ``multiprocessing`` and ``ray``. ``autotune`` is in ``tuning``. Around a vector environment of any backend,
``wrappers`` transform its batches, and ``gymnasium_vector`` gives it Gymnasium's interface.
"""

import importlib
from typing import Any

from pufferlib.env import PufferEnv
from pufferlib.machine.cpus import usable_cpus
from pufferlib.vector.factory import make
from pufferlib.vector.gymnasium_vector import GymnasiumVectorEnv, to_gymnasium
from pufferlib.vector.multiprocessing import Multiprocessing
from pufferlib.vector.ray import Ray
from pufferlib.vector.recording.bundle import Bundle
from pufferlib.vector.recording.player import Replayed, replay
from pufferlib.vector.serial import Serial
from pufferlib.vector.tuning import EnvProfile, TunedConfig, autotune, tuned
from pufferlib.vector.vector_env import VectorEnv

__all__ = [
    "Bundle",
    "EnvProfile",
    "GymnasiumVectorEnv",
    "Multiprocessing",
    "PufferEnv",
    "Ray",
    "Replayed",
    "Serial",
    "TunedConfig",
    "VectorEnv",
    "autotune",
    "make",
    "replay",
    "to_gymnasium",
    "tuned",
    "usable_cpus",
]


def __getattr__(name: str) -> Any:
    if name == "wrappers":  # loaded when it is used, because workers do without
        return importlib.import_module("pufferlib.vector.wrappers")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
