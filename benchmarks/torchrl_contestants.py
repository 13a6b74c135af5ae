"""TorchRL's batched environments as contestants of engine.py, with the calls of the others.

``AsyncEnvPool`` has its default backend, threads, which is many times faster here than its processes.
"""

import functools
from collections.abc import Callable
from typing import Any

import sides
import toys

__all__ = ["TorchRL", "open_torchrl", "pool_of_first"]


class TorchRL:
    """A batched environment of TorchRL, stepped as its collectors do."""

    def __init__(self, env: Any, single_action_space: Any) -> None:
        self._env, self.single_action_space = env, single_action_space

    def reset(self, seed: int) -> None:
        """Start all."""
        self._data = self._env.reset()

    def step(self, actions: Any) -> None:
        """Act in all."""
        import torch

        self._data.set("action", torch.as_tensor(actions, dtype=torch.int64))
        self._data = self._env.step_and_maybe_reset(self._data)[1]

    def close(self) -> None:
        """End the processes."""
        self._env.close()


def open_torchrl(library: str, creator: Callable[[], Any], num_envs: int) -> TorchRL:
    """``ParallelEnv`` if ``library`` is "parallel", ``AsyncEnvPool`` if it is "pool"."""
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

    torch.set_num_threads(1)  # the least waiting for tensors this small

    return GymWrapper(creator(), categorical_action_encoding=True)


def pool_of_first(kind: str, num_envs: int, batch: int, seconds: float) -> float:
    """Microseconds that all environments of an ``AsyncEnvPool`` take for a step each, at least ``batch`` at a time."""
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
