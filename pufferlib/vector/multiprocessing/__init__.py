"""The backend with worker processes, from the caller down.

``backend``: the ``VectorEnv``. ``pool``: its workers, from their start (``launch``, ``preload``) to their
end (``ending``), with what goes wrong between (``failures``). ``worker``: what runs in each of them. Parent and
worker share the arrays (``shared``) and signals (``_channel.pyx``).
"""

from pufferlib.vector.multiprocessing.backend import Multiprocessing

__all__ = ["Multiprocessing"]
