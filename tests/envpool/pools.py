"""Pools of environments in worker processes, made without the interface above them."""

import contextlib

import numpy as np

from pufferlib.envpool.workers import WorkerBackend

__all__ = ["config", "pool_of", "sent"]


def config(num_envs=2, batch_size=None, **changes):
    """Settings as a backend takes them."""
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
def pool_of(env, num_envs=2, batch_size=None, backend=None, **changes):
    """A pool of environments that ``env`` makes, closed at the end."""
    made = WorkerBackend(env, **(backend or {}))
    settings = config(num_envs, batch_size, **changes)
    pool = made.make(settings, made.describe(settings))
    with contextlib.closing(pool):
        yield pool


def sent(pool, actions, env_ids=None):
    """The batch that follows ``actions``."""
    pool.send(np.asarray(actions), None if env_ids is None else np.asarray(env_ids, np.int32))
    return pool.recv()
