"""Emulation of Gymnasium, PettingZoo and dm_env environments with any spaces as environments with flat arrays.

An emulated environment has one flat Box of observations, and one Discrete, MultiDiscrete or Box of actions. The
conversion is lossless. ``flat.view(env.obs_dtype)`` restores the fields of an observation in numpy, and
``pufferlib.pytorch.nativize_tensor`` in torch.
"""

from collections.abc import Callable
from typing import Any

import gymnasium

from pufferlib.buffers import BufferSource
from pufferlib.emulation.dm_env import DMEnvPufferEnv, DMEnvToGymnasium
from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.emulation.layout import Layout, Leaf, Limits, action_layout, observation_layout
from pufferlib.emulation.legacy_api import GymToGymnasium, PettingZooTruncatedWrapper, converted
from pufferlib.emulation.pettingzoo_env import PettingZooPufferEnv

GymPufferEnv = GymnasiumPufferEnv  # name in PufferLib 0.4, which also converts environments of gym

__all__ = [
    "Binding",
    "DMEnvPufferEnv",
    "DMEnvToGymnasium",
    "GymPufferEnv",
    "GymToGymnasium",
    "GymnasiumPufferEnv",
    "Layout",
    "Leaf",
    "Limits",
    "PettingZooPufferEnv",
    "PettingZooTruncatedWrapper",
    "action_layout",
    "observation_layout",
]


class Binding:
    """Creator of emulated environments of Gymnasium, PettingZoo or older APIs of both, as in PufferLib 0.2.

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
