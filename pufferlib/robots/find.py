"""Lookup of robots that are stepped in C, which imports MuJoCo only if it is installed."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pufferlib.robots.twin import RobotTwin

__all__ = ["find_robot"]


def find_robot(name: str, keywords: Mapping[str, Any], create: Callable[..., Any]) -> "RobotTwin | None":
    """Return the robot in C that equals an environment, or None if there is none or MuJoCo cannot be imported.

    Args:
        name: Name of the environment.
        keywords: Keyword arguments of the environment.
        create: Function that makes the emulated environment of Gymnasium or dm_control with these keyword arguments.
    """
    try:
        import mujoco  # noqa: F401
    except (ImportError, OSError):  # the original environment reports what is missing
        return None
    from pufferlib.robots.twin import robot_twin

    return robot_twin(name, keywords, create)
