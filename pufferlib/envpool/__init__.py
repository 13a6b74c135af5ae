"""EnvPool's interface: ``import pufferlib.envpool as envpool``."""

from typing import TYPE_CHECKING, Any

from pufferlib.envpool.make import list_all_envs, make, make_dm, make_gym, make_gymnasium, make_spec, register
from pufferlib.envpool.pool_env import PoolEnv as EnvPool
from pufferlib.envpool.spec import TaskSpec as EnvSpec

if TYPE_CHECKING:
    from pufferlib.envpool.dm_env import DMPoolEnv as DMEnvPool
    from pufferlib.envpool.gymnasium_env import PoolVectorEnv as GymnasiumEnvPool

__all__ = [
    "DMEnvPool",
    "EnvPool",
    "EnvSpec",
    "GymnasiumEnvPool",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "register",
]

__version__ = "1.2.5"  # version of EnvPool whose interface this is


def __getattr__(name: str) -> Any:
    """Import an environment class when it is first used, because dm_env may not be installed."""
    if name == "DMEnvPool":
        from pufferlib.envpool.dm_env import DMPoolEnv

        return DMPoolEnv
    if name == "GymnasiumEnvPool":
        from pufferlib.envpool.gymnasium_env import PoolVectorEnv

        return PoolVectorEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
