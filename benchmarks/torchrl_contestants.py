"""Batched environments of TorchRL as contestants of engine.py.

``AsyncEnvPool`` has its default backend, threads, which is many times faster here than its processes.
"""

import functools
from collections.abc import Callable
from typing import Any

import sides
import toys

__all__ = ["TorchRL", "open_torchrl", "pool_of_first"]


class TorchRL:
    """Batched environment of TorchRL with the interface of the other contestants, stepped like TorchRL's collectors."""

    def __init__(self, env: Any, single_action_space: Any) -> None:
        self._env, self.single_action_space = env, single_action_space

    def reset(self, seed: int) -> None:
        """Reset all environments."""
        self._data = self._env.reset()

    def step(self, actions: Any) -> None:
        """Step all environments."""
        import torch

        self._data.set("action", torch.as_tensor(actions, dtype=torch.int64))
        self._data = self._env.step_and_maybe_reset(self._data)[1]

    def close(self) -> None:
        """Close the environments."""
        self._env.close()


def open_torchrl(library: str, creator: Callable[[], Any], num_envs: int) -> TorchRL:
    """Create a ``ParallelEnv`` for ``library="parallel"``, or an ``AsyncEnvPool`` for "pool"."""
    from torchrl.envs import AsyncEnvPool, ParallelEnv

    maker = functools.partial(_wrapped, creator)
    if library == "parallel":
        env = ParallelEnv(num_envs, maker, mp_start_method="fork")
    else:
        env = AsyncEnvPool([maker] * num_envs)
    return TorchRL(env, creator().action_space)


def _wrapped(creator: Callable[[], Any]) -> Any:
    import torch
    from torchrl.envs import GymWrapper

    torch.set_num_threads(1)  # fastest for small tensors

    return GymWrapper(creator(), categorical_action_encoding=True)


def pool_of_first(kind: str, num_envs: int, batch: int, seconds: float) -> float:
    """Return the time of one step of all environments of an ``AsyncEnvPool`` in microseconds, ``batch`` at a time."""
    import torch
    from torchrl.envs import AsyncEnvPool

    maker = functools.partial(_wrapped, functools.partial(toys.make, kind))
    env = AsyncEnvPool([maker] * num_envs)
    calls, rows = 0, 0

    def send(data: Any) -> None:
        data.set("action", torch.zeros(len(data), dtype=torch.int64))
        env.async_step_and_maybe_reset_send(data)

    def once() -> None:
        nonlocal calls, rows
        _, data = env.async_step_and_maybe_reset_recv(min_get=batch)
        calls, rows = calls + 1, rows + len(data)
        send(data)

    send(env.reset())
    try:
        return sides.us_per_call(once, seconds) * num_envs * calls / rows
    finally:
        env.close()
