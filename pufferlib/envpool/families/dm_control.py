"""The DeepMind Control Suite, under EnvPool's ids: "WalkerWalk-v1" for the task "walk" of the domain "walker"."""

from collections.abc import Mapping
from typing import Any

from pufferlib.envpool.tasks import PoolTask
from pufferlib.errors import APIUsageError

__all__ = ["task_id", "tasks"]

FAMILY = "dm_control"
STEPS = 1000
PICTURE_PX = 480

# Words that EnvPool writes in another way than with one capital letter.
_WORDS = {"CMU": "CMU"}


def task_id(name: str) -> str:
    """Id of the task ``name`` of the binding: "ball_in_cup-catch" is "BallInCupCatch-v1"."""
    words = name.replace("-", "_").split("_")
    return "".join(_WORDS.get(word, word[:1].upper() + word[1:]) for word in words) + "-v1"


def tasks() -> list[PoolTask]:
    """Return a task for each of the suite."""
    from pufferlib.envpool.workers import WorkerBackend
    from pufferlib.registry import names

    return [
        PoolTask(
            task_id(name),
            FAMILY,
            WorkerBackend(f"dmcontrol/{name}", _settings, draw=draw_task, declared_only=True),
            STEPS,
            extra="dmcontrol",
        )
        for name in names("dmcontrol")
    ]


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"flat": False, "time_limit": False}


def draw_task(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Draw a task with one of its cameras; -1 is the first.

    Raises:
        APIUsageError: It has no such camera.
    """
    task = env.env.unwrapped
    cameras = task.dm_env.physics.model.ncam
    if camera_id >= cameras:
        raise APIUsageError(f"envpool.render: camera_id must be from -1 to {cameras - 1}, got {camera_id}")
    return task.picture(height or PICTURE_PX, width or PICTURE_PX, max(camera_id, 0))
