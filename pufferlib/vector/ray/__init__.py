"""The backend on a Ray cluster, from the caller down.

``workers``: the ``VectorEnv`` and its actors. ``actor``: the program of each of them. ``cluster``: the connection to
Ray, which is imported only there.
"""

from pufferlib.vector.ray.workers import Ray

__all__ = ["Ray"]
