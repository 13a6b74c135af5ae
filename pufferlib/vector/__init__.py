"""Vectorization: many environments behind the interface of one.

``make`` creates a vector environment. Backends are ``Serial`` (in this process), ``Multiprocessing`` (shared memory,
one command word per worker), ``Ray`` (actors on many machines) and the native ``PufferEnv``, which batches by itself.
``autotune`` measures which one is fastest for an environment on this machine.

Modules that all backends share: ``arguments`` checks the arguments and creates ``specs``, ``factory`` selects the
backend, ``vector_env`` defines the interface, ``env_runner`` builds and steps the environments of one process, and
``calls`` runs their methods there. ``serial`` is the backend in this process. ``pooled`` manages the workers of the
other backends, whose interface is in ``workers``. ``failures`` has the errors of workers, and ``restarts`` replaces
them. Each kind of worker has its own folder: ``multiprocessing`` and ``ray``. ``twins`` batches environments in C that
equal Python environments. ``proxy`` has the base class of objects that wrap a vector environment, and the type of all
vector environments.

Public names are imported on first use. Some are defined elsewhere: in ``pufferlib.autotune``, ``pufferlib.replays``
(recording and replay), ``pufferlib.wrappers.vector`` (wrappers of batches) and ``pufferlib.frameworks`` (Gymnasium's
interface).
"""

from pufferlib.imports import open_door

__getattr__, __dir__ = open_door(__name__)
