"""Worker process in the interpreter of a stack."""

import importlib
import signal
from multiprocessing.connection import Connection
from typing import Any

from pufferlib.env import PufferEnv
from pufferlib.vector.multiprocessing.worker import Parent, serve_parent

__all__ = ["READY", "build", "main"]

READY = b"ready"  # first message, sent after all imports


def main(conn_fd: int, stacks_fd: int, parent_pid: int, parent_fd: int) -> None:
    """Run ``serve_parent`` with the file descriptors that the parent has opened."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and has blocked it until now
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    conn = Connection(conn_fd)
    conn.send_bytes(READY)
    serve_parent(conn, Connection(stacks_fd, readable=False), Parent(parent_pid, parent_fd))


def build(entry: str, buf: Any = None, **options: Any) -> PufferEnv:
    """Import ``entry``, a ``"module:function"``, and call it to make the environment."""
    module, _, function = entry.partition(":")
    env: PufferEnv = getattr(importlib.import_module(module), function)(buf=buf, **options)
    return env
