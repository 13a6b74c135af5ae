"""Gymnasium and PettingZoo environments made to look simple, with nothing lost.

Whatever its spaces, an emulated environment shows the learner one flat Box to see and one
Discrete, MultiDiscrete or Box to act with. ``flat.view(env.obs_dtype)`` gives the fields back in
numpy, ``pufferlib.pytorch.nativize_tensor`` in torch.
"""

from pufferlib.emulation.gymnasium_env import GymnasiumPufferEnv
from pufferlib.emulation.layout import Layout, Leaf, Limits, action_layout, observation_layout
from pufferlib.emulation.legacy_api import GymToGymnasium, PettingZooTruncatedWrapper
from pufferlib.emulation.pettingzoo_env import PettingZooPufferEnv

__all__ = [
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
