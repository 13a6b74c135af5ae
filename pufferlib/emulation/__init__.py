"""Emulation of Gymnasium, PettingZoo and dm_env environments with any spaces as environments with flat arrays.

An emulated environment has one flat Box of observations, and one Discrete, MultiDiscrete or Box of actions. The
conversion is lossless. ``flat.view(env.obs_dtype)`` restores the fields of an observation in numpy, and
``pufferlib.pytorch.nativize_tensor`` in torch.
"""

from pufferlib.emulation.binding import Binding
from pufferlib.emulation.dm_env import DMEnvPufferEnv, DMEnvToGymnasium
from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.emulation.layout import Layout, Leaf, Limits, action_layout, observation_layout
from pufferlib.emulation.legacy_api import GymToGymnasium, PettingZooTruncatedWrapper
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
