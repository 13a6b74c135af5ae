"""Backend on a Ray cluster.

``workers`` defines the ``VectorEnv`` and manages its actors. ``actor`` is the program of an actor. ``cluster`` connects
to Ray, and is the only module that imports it.
"""

from pufferlib.vector.ray.workers import Ray

__all__ = ["Ray"]
