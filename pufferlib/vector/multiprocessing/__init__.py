"""The backend with worker processes, from the caller down.

``workers``: the ``VectorEnv`` and its workers, whose processes start and end in ``process`` (with ``preload``).
``worker``: the program of each of them. Parent and worker share the arrays (``shared_memory``) and signals
(``_channel.pyx``).
"""

from pufferlib.vector.multiprocessing.workers import Multiprocessing

__all__ = ["Multiprocessing"]
