"""Modules loaded by the server that forks workers. Elsewhere, an import of this module changes nothing.

The server starts with Ctrl-C blocked, so that a Ctrl-C during these imports does not stop it. A Ctrl-C that arrived
meanwhile is discarded here. After that, multiprocessing handles Ctrl-C.
"""

import signal

from pufferlib import emulation  # otherwise each worker would load it: 2 MiB and 20 ms
from pufferlib.vector.multiprocessing import worker

__all__ = ["emulation", "worker"]

if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # only in the server
    _before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, _before)
    worker.leave_signals_to_parent()
