"""The other side: a worker like any other, in the interpreter of its stack."""

import importlib
import signal
from multiprocessing.connection import Connection
from typing import Any

from pufferlib.env import PufferEnv
from pufferlib.vector.multiprocessing.worker import Parent, serve_parent

__all__ = ["READY", "build", "main"]

READY = b"ready"  # the first message: everything that a worker needs is imported


def main(conn_fd: int, stacks_fd: int, parent_pid: int, parent_fd: int) -> None:
    """Serve the parent, as ``serve_parent`` does, by files that it opened."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle, which has blocked it so far
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    conn = Connection(conn_fd)
    conn.send_bytes(READY)
    serve_parent(conn, Connection(stacks_fd, readable=False), Parent(parent_pid, parent_fd))


def build(entry: str, buf: Any = None, **options: Any) -> PufferEnv:
    """Make the environment of ``entry``, which is ``"module:function"``."""
    module, _, function = entry.partition(":")
    env: PufferEnv = getattr(importlib.import_module(module), function)(buf=buf, **options)
    return env
