"""EnvPool's interface: ``import pufferlib.envpool as envpool``."""

from pufferlib.envpool.make import make, make_dm, make_gym, make_gymnasium, make_spec
from pufferlib.envpool.registry import list_all_envs, register

__all__ = ["list_all_envs", "make", "make_dm", "make_gym", "make_gymnasium", "make_spec", "register"]
