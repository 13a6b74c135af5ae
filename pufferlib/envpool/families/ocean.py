"""Ocean: every environment in C of this repository as ``Breakout-v0``, ``TripleTriad-v0``, ..., and those in Python."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pufferlib.envpool.tasks import Task

if TYPE_CHECKING:
    from pufferlib.ocean.types import EnvType

__all__ = ["game_task", "tasks"]

FAMILY = "ocean"

_PYTHON = {"PyMultiagent-v0": "pymultiagent", "Spaces-v0": "spaces"}


def tasks() -> list[Task]:
    """Return a task for each environment, but for those that are in the family classic_control."""
    from pufferlib import ocean
    from pufferlib.envpool.families.classic_control import GAMES
    from pufferlib.ocean.types import env_types

    elsewhere = {game.name for game in GAMES}
    in_c = [
        game_task(f"{kind.class_name}-v0", FAMILY, kind) for kind in env_types().values() if kind.name not in elsewhere
    ]
    return in_c + [_python_task(task_id, name) for task_id, name in _PYTHON.items() if name in ocean.python_names()]


def game_task(
    task_id: str, family: str, kind: "EnvType", keywords: Mapping[str, Any] | None = None, **facts: Any
) -> Task:
    """Return the task of an environment in C.

    Args:
        task_id: As ``make`` takes it.
        family: That it belongs to.
        kind: The environment.
        keywords: Those whose defaults are not the environment's own.
        **facts: Further fields of ``Task``.
    """
    from pufferlib.envpool.native import NativeBackend

    own = {parameter.name: parameter.default for parameter in kind.parameters}
    return Task(task_id, family, NativeBackend(kind.name), keywords={**own, **(keywords or {})}, **facts)


def _python_task(task_id: str, name: str) -> Task:
    from pufferlib.envpool.workers import WorkerBackend

    return Task(task_id, FAMILY, WorkerBackend(name), any_keyword=True)
