"""Vectorization: many environments behind the interface of one.

``make`` is the way in. Backends: ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker), ``Ray`` (actors, on many machines) and ``PufferEnv``, the native one,
where the environment batches itself.
``autotune`` measures which of them is fastest for an environment on this machine.
"""

from pufferlib.cpus import usable_cpus
from pufferlib.env import PufferEnv
from pufferlib.vector.base import VectorEnv
from pufferlib.vector.making import make
from pufferlib.vector.measuring import EnvProfile
from pufferlib.vector.processes import Multiprocessing
from pufferlib.vector.ray_backend import Ray
from pufferlib.vector.serial import Serial
from pufferlib.vector.tuning import TunedConfig, autotune

__all__ = [
    "EnvProfile",
    "Multiprocessing",
    "PufferEnv",
    "Ray",
    "Serial",
    "TunedConfig",
    "VectorEnv",
    "autotune",
    "make",
    "usable_cpus",
]
