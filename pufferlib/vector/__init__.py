"""Vectorization: many environments behind the interface of one.

``make`` is the way in. Backends: ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker), ``Ray`` (actors, on many machines) and ``PufferEnv``, the native one,
where the environment batches itself.
``autotune`` measures which of them is fastest for an environment on this machine.

All backends share the modules of this folder: ``arguments`` checks what is asked for and writes ``specs``,
``factory`` chooses the backend, ``vector_env`` is the interface, ``env_runner`` builds and steps the environments
of one process, ``pooled`` has them in workers. ``failures`` has the errors of workers, ``restarts`` keeps account of
those that were replaced. A kind of worker has a folder of its own: ``multiprocessing`` and ``ray``.

Each public name is fetched on its first use, since some have their home elsewhere: ``pufferlib.autotune``,
``pufferlib.replays``, which writes what environments did, to be stepped again, ``pufferlib.wrappers.vector``, which
transforms the batches of any backend, and ``pufferlib.frameworks``, where Gymnasium's interface is.
"""

from typing import TYPE_CHECKING

from pufferlib.doors import open_door

if TYPE_CHECKING:
    from pufferlib.autotune import EnvProfile, TunedConfig, autotune, tuned
    from pufferlib.env import PufferEnv
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
