"""Environment class with a name, as in PufferLib 0.2."""

from collections.abc import Callable
from typing import Any

import gymnasium

from pufferlib.buffers import BufferSource
from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.emulation.legacy_api import converted
from pufferlib.emulation.pettingzoo_env import PettingZooPufferEnv

__all__ = ["Binding"]


class Binding:
    """Creator of emulated environments of Gymnasium, PettingZoo or older APIs of both.

    Args:
        env_cls: Class or function that creates the environment.
        env_name: Name of the environment. None for the name of the class.
    """

    def __init__(self, env_cls: Callable[..., Any], env_name: str | None = None) -> None:
        self.env_cls = env_cls
        self.env_name = env_name or getattr(env_cls, "__name__", repr(env_cls))

    def __call__(self, *args: Any, buf: BufferSource = None, seed: int | None = None, **kwargs: Any) -> Any:
        """Create an environment with the arguments of its class, and emulate it."""
        env = converted(self.env_cls(*args, **kwargs))
        kind: Any = GymnasiumPufferEnv if isinstance(env, gymnasium.Env) else PettingZooPufferEnv
        return kind(env=env, buf=buf, seed=seed)

    def __repr__(self) -> str:
        return f"Binding({self.env_name})"
