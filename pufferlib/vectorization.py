"""Vectorization as PufferLib 0.2 to 0.4 had it: so many workers, so many environments in each, and four values a step.

New code uses ``pufferlib.vector.make``, which this calls.
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
    """Environments in workers; ``Serial``, ``Multiprocessing`` and ``Ray`` are this with a backend.

    Attributes:
        vecenv: The environments as ``pufferlib.vector`` has them.
        single_observation_space: Of one agent.
        single_action_space: Of one agent.
        num_agents: Rows of a batch.

    Args:
        backend: As for ``pufferlib.vector.make``.
        env_creator: As for ``pufferlib.vector.make``; or a ``pufferlib.emulation.Binding``.
        env_args: Positional arguments of the creator.
        env_kwargs: Keyword arguments of the creator.
        num_workers: Processes, or actors of Ray; also more than there are cores.
        envs_per_worker: Environments in each.
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
        """Start new episodes. Returns the observations ``(num_agents, *shape)``."""
        self.async_reset(seed)
        return self.recv()[0]

    def step(self, actions: Any) -> FourValues:
        """Act once with every agent; see ``recv``."""
        self.send(actions)
        return self.recv()

    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes; ``recv`` returns their first observations."""
        self.vecenv.async_reset(seed)

    def send(self, actions: Any) -> None:
        """Act once with every agent; ``recv`` returns the outcome."""
        self.vecenv.send(actions)

    def recv(self) -> FourValues:
        """Observations, rewards float32, dones bool (ended or cut off), each with ``num_agents`` rows, and infos."""
        observations, rewards, terminals, truncations, infos, _, _ = self.vecenv.recv()
        return observations, rewards, terminals | truncations, infos

    def close(self) -> None:
        """Close every environment."""
        self.vecenv.close()


Serial = functools.partial(VecEnvs, "Serial")
Multiprocessing = functools.partial(VecEnvs, "Multiprocessing")
Ray = functools.partial(VecEnvs, "Ray")
RayVecEnv = Ray  # its name in 0.2
