"""Ocean: every environment in C of this repository as ``Breakout-v0``, ``TripleTriad-v0``, ..., and those in Python."""

from typing import TYPE_CHECKING

from pufferlib.envpool.tasks import PoolTask

if TYPE_CHECKING:
    from pufferlib.ocean.types import EnvType

__all__ = ["game_task", "tasks"]

FAMILY = "ocean"
LIMIT = "max_steps"  # the parameter of games that cut off their episodes; here the pool does

_PYTHON = {"PyMultiagent-v0": "pymultiagent", "Spaces-v0": "spaces"}


def tasks() -> list[PoolTask]:
    """Return a task for each environment, but for those that are in the family classic_control."""
    from pufferlib.envpool.families.classic_control import GAMES
    from pufferlib.envpool.workers import WorkerBackend
    from pufferlib.ocean.types import env_types

    elsewhere = {game.name for game in GAMES}
    kinds = [kind for name, kind in env_types().items() if name not in elsewhere]
    in_c = [game_task(f"{kind.class_name}-v0", FAMILY, kind) for kind in kinds]
    return in_c + [
        PoolTask(task_id, FAMILY, WorkerBackend(f"pufferlib.ocean.{name}:make"), any_keyword=True)
        for task_id, name in _PYTHON.items()
    ]


def game_task(
    task_id: str, family: str, kind: "EnvType", max_episode_steps: int = 0, reward_threshold: float | None = None
) -> PoolTask:
    """Return the task of an environment in C.

    Args:
        task_id: As ``make`` takes it.
        family: That it belongs to.
        kind: The environment.
        max_episode_steps: Steps after which an episode is cut off; 0: the environment's own, if it has a limit.
        reward_threshold: Return from which it counts as solved; None where nobody has named one.
    """
    from pufferlib.envpool.native import NativeBackend

    own = {parameter.name: parameter for parameter in kind.parameters}
    limit = own.pop(LIMIT, None)
    return PoolTask(
        task_id,
        family,
        NativeBackend(kind.name, **({LIMIT: int(limit.high)} if limit else {})),
        max_episode_steps=max_episode_steps or int(limit.default if limit else 0),
        reward_threshold=reward_threshold,
        keywords={name: parameter.default for name, parameter in own.items()},
    )
