"""The backend on a Ray cluster, from the caller down.

``backend``: the ``VectorEnv``. ``pool``: its actors, and what goes wrong with them. ``actor``: what runs in
each of them. ``cluster``: the connection to Ray, which is imported only there.
"""

from pufferlib.vector.ray.backend import Ray

__all__ = ["Ray"]
