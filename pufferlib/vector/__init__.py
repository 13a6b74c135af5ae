"""Vectorization: many environments behind the interface of one.

``make`` creates a vector environment. Backends are ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker), ``Ray`` (actors on many machines) and the native ``PufferEnv``, which batches by itself.
``autotune`` measures which one is fastest for an environment on this machine.

Modules that all backends share: ``arguments`` checks the arguments and creates ``specs``, ``factory`` selects the
backend, ``vector_env`` defines the interface, ``env_runner`` builds and steps the environments of one process, and
``pooled`` manages workers. ``failures`` has the errors of workers, and ``restarts`` replaces them. Each kind of worker
has its own folder: ``multiprocessing`` and ``ray``.

Public names are imported on first use. Some are defined elsewhere: in ``pufferlib.autotune``, ``pufferlib.replays``
(recording and replay), ``pufferlib.wrappers.vector`` (wrappers of batches) and ``pufferlib.frameworks`` (Gymnasium's
interface).
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.autotune import EnvProfile, TunedConfig, autotune, tuned
    from pufferlib.env import AutoresetMode, PufferEnv
    from pufferlib.frameworks.gymnasium_vector import GymnasiumVectorEnv, to_gymnasium
    from pufferlib.machine.cpus import usable_cpus
    from pufferlib.replays.bundle import Bundle
    from pufferlib.replays.player import Replayed, replay
    from pufferlib.vector.factory import make
    from pufferlib.vector.multiprocessing import Multiprocessing
    from pufferlib.vector.ray import Ray
    from pufferlib.vector.serial import Serial
    from pufferlib.vector.vector_env import VectorEnv

__all__ = [
    "AutoresetMode",
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

_HOME = {
    "AutoresetMode": "env",
    "Bundle": "replays.bundle",
    "EnvProfile": "autotune",
    "GymnasiumVectorEnv": "frameworks.gymnasium_vector",
    "Multiprocessing": "vector.multiprocessing",
    "PufferEnv": "env",
    "Ray": "vector.ray",
    "Replayed": "replays.player",
    "Serial": "vector.serial",
    "TunedConfig": "autotune",
    "VectorEnv": "vector.vector_env",
    "autotune": "autotune",
    "make": "vector.factory",
    "replay": "replays.player",
    "to_gymnasium": "frameworks.gymnasium_vector",
    "tuned": "autotune",
    "usable_cpus": "machine.cpus",
}


__getattr__, __dir__ = open_door(__name__, _HOME, ["wrappers"])
