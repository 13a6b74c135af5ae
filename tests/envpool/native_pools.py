"""Pools of C environments for tests."""

import numpy as np

from pufferlib.envpool.native import NativeBackend, NativePool
from pufferlib.ocean.env import type_of

__all__ = ["BusyBackend", "make_busy_pool", "make_pool", "sample_actions"]


def make_pool(name="cartpole", num_envs=4, batch_size=0, seeds=None, params=None, **config):
    """Make a pool of a C environment, as ``make`` does. ``params`` are keyword arguments of the environment."""
    backend = NativeBackend(name, **(params or {}))
    config = {
        "num_envs": num_envs,
        "batch_size": batch_size or num_envs,
        "env_seed": list(seeds or range(num_envs)),
        "num_threads": 1,
        **config,
    }
    return backend.make(config, backend.describe(config))


def make_busy_pool(name="cartpole", num_envs=4, batch_size=0, num_threads=3, params=None, **options):
    """Make a pool whose helper threads always take part, even with little work and without a core for each."""
    env_type = type_of(name)
    values = env_type.in_c(params or {})
    spec = NativeBackend(name, **(params or {})).describe({})
    batch_size = batch_size or num_envs
    return NativePool(env_type.index, values, spec, range(num_envs), batch_size, num_threads, helper_ns=0, **options)


class BusyBackend(NativeBackend):
    """Backend that makes busy pools of one C environment."""

    def make(self, config, spec):
        """Make a pool with two helper threads. ``num_threads`` is ignored."""
        options = {name: config[name] for name in ("max_episode_steps", "autoreset", "copy")}
        return make_busy_pool(self.name, config["num_envs"], config["batch_size"], params=self.params, **options)


def sample_actions(spec, rng, envs):
    """Return random actions for ``envs`` environments."""
    spec.action_space.seed(int(rng.integers(2**31)))
    return np.stack([spec.action_space.sample() for _ in range(envs * spec.num_players)])
