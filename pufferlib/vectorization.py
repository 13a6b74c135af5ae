"""Vectorization interface of PufferLib 0.2 to 0.4.

It takes a number of workers and a number of environments per worker, and steps return four values. New code should use
``pufferlib.vector.make``.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pufferlib.buffers import Array
from pufferlib.env import Infos
from pufferlib.vector import make

__all__ = ["Multiprocessing", "Ray", "RayVecEnv", "Serial", "VecEnvs"]

FourValues = tuple[Array, Array, Array, Infos]


class VecEnvs:
    """Environments in workers. ``Serial``, ``Multiprocessing`` and ``Ray`` set the backend.

    Attributes:
        vecenv: Underlying vector environment of ``pufferlib.vector``.
        single_observation_space: Observation space of one agent.
        single_action_space: Action space of one agent.
        num_agents: Number of rows of a batch.

    Args:
        backend: Backend of ``pufferlib.vector.make``.
        env_creator: Creator for ``pufferlib.vector.make``, or a ``pufferlib.emulation.Binding``.
        env_args: Positional arguments of the creator.
        env_kwargs: Keyword arguments of the creator.
        num_workers: Number of processes or Ray actors. May exceed the number of cores.
        envs_per_worker: Number of environments in each worker.
    """

    def __init__(
        self,
        backend: str,
        env_creator: Callable[..., Any],
        env_args: Sequence[Any] = (),
        env_kwargs: Mapping[str, Any] | None = None,
        num_workers: int = 1,
        envs_per_worker: int = 1,
    ) -> None:
        self.vecenv = make(
            env_creator,
            env_args,
            env_kwargs,
            backend=backend,
            num_envs=num_workers * envs_per_worker,
            num_workers=num_workers,
            overwork=True,
        )
        self.single_observation_space = self.vecenv.single_observation_space
        self.single_action_space = self.vecenv.single_action_space
        self.num_agents = self.vecenv.num_agents

    def reset(self, seed: int | None = None) -> Array:
        """Start new episodes. Return the observations ``(num_agents, *shape)``."""
        self.async_reset(seed)
        return self.recv()[0]

    def step(self, actions: Any) -> FourValues:
        """Take one step with every agent. See ``recv`` for the return values."""
        self.send(actions)
        return self.recv()

    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes without waiting. ``recv`` returns the first observations."""
        self.vecenv.async_reset(seed)

    def send(self, actions: Any) -> None:
        """Start one step with every agent, without waiting. ``recv`` returns the outcome."""
        self.vecenv.send(actions)

    def recv(self) -> FourValues:
        """Return observations, rewards float32, dones bool (terminated or truncated) and infos.

        All except the infos have ``num_agents`` rows.
        """
        observations, rewards, terminals, truncations, infos, _, _ = self.vecenv.recv()
        return observations, rewards, terminals | truncations, infos

    def close(self) -> None:
        """Close all environments."""
        self.vecenv.close()


Serial = functools.partial(VecEnvs, "Serial")
Multiprocessing = functools.partial(VecEnvs, "Multiprocessing")
Ray = functools.partial(VecEnvs, "Ray")
RayVecEnv = Ray  # name in PufferLib 0.2
