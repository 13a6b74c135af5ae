"""Pools of environments written in Python, each in one of several worker processes."""

from pufferlib.envpool.workers.backend import WorkerBackend
from pufferlib.envpool.workers.pool import WorkerPool

__all__ = ["WorkerBackend", "WorkerPool"]
