"""Pools of Python environments in worker processes."""

from pufferlib.envpool.workers.backend import WorkerBackend
from pufferlib.envpool.workers.pool import WorkerPool

__all__ = ["WorkerBackend", "WorkerPool"]
