"""Modules that the server loads from which workers are forked; never import it elsewhere.

The server begins with Ctrl-C blocked, so that a Ctrl-C while it loads this does not end it; here one
that has come is forgotten. From here on multiprocessing takes care of that.
"""

import signal

from pufferlib import emulation  # or each worker would load it for itself: 2 MiB and 20 ms
from pufferlib.vector.multiprocessing import worker

__all__ = ["emulation", "worker"]

_before = signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
signal.signal(signal.SIGINT, _before)
worker.leave_signals_to_parent()
