"""Pools of Python environments in worker processes, without the interfaces above them."""

import contextlib

import numpy as np

from pufferlib.envpool.workers import WorkerBackend

__all__ = ["config", "open_pool", "send_and_recv"]


def config(num_envs=2, batch_size=None, **changes):
    """Return the settings that a backend receives."""
    settings = {
        "num_envs": num_envs,
        "batch_size": batch_size or num_envs,
        "num_threads": 2,
        "env_seed": list(range(42, 42 + num_envs)),
        "max_episode_steps": 0,
        "thread_affinity_offset": -1,
        "autoreset": "next_step",
        "copy": True,
        "render_mode": None,
        "render_width": None,
        "render_height": None,
        "from_pixels": False,
        "frame_stack": 1,
    }
    return settings | changes


@contextlib.contextmanager
def open_pool(env, num_envs=2, batch_size=None, backend=None, **changes):
    """Yield a pool of the environments that ``env`` makes, and close it."""
    made = WorkerBackend(env, **(backend or {}))
    settings = config(num_envs, batch_size, **changes)
    pool = made.make(settings, made.describe(settings))
    with contextlib.closing(pool):
        yield pool


def send_and_recv(pool, actions, env_ids=None):
    """Send actions and return the next batch."""
    pool.send(np.asarray(actions), None if env_ids is None else np.asarray(env_ids, np.int32))
    return pool.recv()
