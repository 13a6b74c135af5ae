from pufferlib.autotune import (
    EnvProfile as EnvProfile,
    TunedConfig as TunedConfig,
    autotune as autotune,
    tuned as tuned,
)
from pufferlib.env import AutoresetMode as AutoresetMode, PufferEnv as PufferEnv
from pufferlib.frameworks.gymnasium_vector import GymnasiumVectorEnv as GymnasiumVectorEnv, to_gymnasium as to_gymnasium
from pufferlib.machine.cpus import usable_cpus as usable_cpus
from pufferlib.replays.bundle import Bundle as Bundle
from pufferlib.replays.player import Replayed as Replayed, replay as replay
from pufferlib.vector.factory import make as make
from pufferlib.vector.multiprocessing import Multiprocessing as Multiprocessing
from pufferlib.vector.proxy import AnyVectorEnv as AnyVectorEnv
from pufferlib.vector.ray import Ray as Ray
from pufferlib.vector.serial import Serial as Serial
from pufferlib.vector.vector_env import VectorEnv as VectorEnv

from . import wrappers as wrappers
