"""Backend with worker processes.

``workers`` defines the ``VectorEnv`` and manages its workers. ``process`` starts and stops the processes (with
``preload``). ``worker`` is the program of a worker process. Parent and workers share the arrays (``shared_memory``) and
signals (``_channel.pyx``).
"""

from pufferlib.vector.multiprocessing.workers import Multiprocessing

__all__ = ["Multiprocessing"]
