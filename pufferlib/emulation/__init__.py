"""Emulation of environments of Gymnasium, PettingZoo and dm_env: any spaces as flat arrays, without loss.

Whatever its spaces, an emulated environment has one flat Box of observations and one Discrete,
MultiDiscrete or Box of actions. ``flat.view(env.obs_dtype)`` gives the fields back in numpy,
``pufferlib.pytorch.nativize_tensor`` in torch.
"""

from pufferlib.emulation.binding import Binding
from pufferlib.emulation.dm_env import DMEnvPufferEnv, DMEnvToGymnasium
from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.emulation.layout import Layout, Leaf, Limits, action_layout, observation_layout
from pufferlib.emulation.legacy_api import GymToGymnasium, PettingZooTruncatedWrapper
from pufferlib.emulation.pettingzoo_env import PettingZooPufferEnv

GymPufferEnv = GymnasiumPufferEnv  # its name in PufferLib 0.4; environments of gym are converted

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
