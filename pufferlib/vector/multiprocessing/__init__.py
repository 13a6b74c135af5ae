"""The backend with worker processes, from the caller down.

``workers``: the ``VectorEnv`` and its workers, from their start (``process``, ``preload``) to their end
(``shutdown``). ``worker``: the program of each of them. Parent and worker share the arrays (``shared_memory``) and
signals (``_channel.pyx``).
"""

from pufferlib.vector.multiprocessing.workers import Multiprocessing

__all__ = ["Multiprocessing"]
