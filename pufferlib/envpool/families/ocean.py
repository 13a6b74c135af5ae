"""Tasks of Ocean: the C environments of this repository, classic control among them, and two Python environments."""

from typing import NamedTuple

from pufferlib.envpool.native import NativeBackend
from pufferlib.envpool.pool import PoolTask
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.ocean.types import EnvType, env_types

__all__ = ["tasks"]

LIMIT = "max_steps"  # parameter that truncates episodes in C. Here the pool truncates them.


class ClassicTask(NamedTuple):
    """Task with an id of Gymnasium, and the C environment that runs it.

    Attributes:
        task_id: Id of the task.
        name: Name of the environment in Ocean.
        max_episode_steps: Number of steps after which an episode is truncated.
        reward_threshold: Return at which the task counts as solved, or None.
    """

    task_id: str
    name: str
    max_episode_steps: int
    reward_threshold: float | None


CLASSIC_CONTROL = (
    ClassicTask("Acrobot-v1", "acrobot", 500, -100.0),
    ClassicTask("CartPole-v0", "cartpole", 200, 195.0),
    ClassicTask("CartPole-v1", "cartpole", 500, 475.0),
    ClassicTask("MountainCar-v0", "mountain_car", 200, -110.0),
    ClassicTask("MountainCarContinuous-v0", "mountain_car_continuous", 999, 90.0),
    ClassicTask("Pendulum-v0", "pendulum", 200, None),
    ClassicTask("Pendulum-v1", "pendulum", 200, None),
    ClassicTask("phys2d/CartPole-v0", "cartpole", 200, 195.0),
    ClassicTask("phys2d/CartPole-v1", "cartpole", 500, 475.0),
    ClassicTask("phys2d/Pendulum-v0", "pendulum", 200, None),
)

# EnvPool's ids of these belong to Gymnasium's environments, which have more keyword arguments and infos.
TOY_TEXT = ("blackjack", "cliff_walking", "frozen_lake", "taxi")

PYTHON = {"PyMultiagent-v0": "pymultiagent", "Spaces-v0": "spaces"}


def tasks() -> list[PoolTask]:
    """Return the tasks of the families ``classic_control`` and ``ocean``."""
    env_type_of = env_types()
    classic = [
        _native_task(task.task_id, "classic_control", env_type_of[task.name], *task[2:]) for task in CLASSIC_CONTROL
    ]
    others = env_type_of.keys() - {task.name for task in CLASSIC_CONTROL}
    native = [_native_task(_task_id(env_type_of[name]), "ocean", env_type_of[name]) for name in sorted(others)]
    python = [
        PoolTask(task_id, "ocean", WorkerBackend(f"pufferlib.ocean.{name}:make"), any_keyword=True)
        for task_id, name in PYTHON.items()
    ]
    return classic + native + python


def _task_id(env_type: EnvType) -> str:
    return f"{'ocean/' if env_type.name in TOY_TEXT else ''}{env_type.class_name}-v0"


def _native_task(
    task_id: str, family: str, env_type: EnvType, max_episode_steps: int = 0, reward_threshold: float | None = None
) -> PoolTask:
    """Return the task of a C environment. A step limit of 0 means the environment's default limit, if it has one."""
    own = {parameter.name: parameter for parameter in env_type.parameters}
    limit = own.pop(LIMIT, None)
    return PoolTask(
        task_id,
        family,
        NativeBackend(env_type.name, None, **({LIMIT: int(limit.high)} if limit else {})),
        max_episode_steps=max_episode_steps or int(limit.default if limit else 0),
        reward_threshold=reward_threshold,
        keywords={name: parameter.default for name, parameter in own.items()},
    )
