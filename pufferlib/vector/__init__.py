"""Vectorization: many environments behind the interface of one.

``make`` is the way in. Backends: ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker) and ``PufferEnv``, the native one, where the environment batches itself.
"""

from pufferlib.env import PufferEnv
from pufferlib.vector.base import VectorEnv
from pufferlib.vector.cpus import usable_cpus
from pufferlib.vector.making import make
from pufferlib.vector.processes import Multiprocessing
from pufferlib.vector.serial import Serial

__all__ = ["Multiprocessing", "PufferEnv", "Serial", "VectorEnv", "make", "usable_cpus"]
