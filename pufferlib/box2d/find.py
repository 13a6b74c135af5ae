"""Lookup of Box2D tasks that are stepped in C, which imports Box2D only if it is installed."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pufferlib.box2d.twin import Box2DTwin

__all__ = ["find_box2d"]


def find_box2d(name: str, keywords: Mapping[str, Any], create: Callable[[], Any]) -> "Box2DTwin | None":
    """Return the task in C that equals an environment, or None if there is none or Box2D cannot be imported.

    Args:
        name: Name of the environment.
        keywords: Its keyword arguments.
        create: Function that makes the emulated environment of Gymnasium with these keyword arguments.
    """
    from pufferlib.box2d.engine import box2d
    from pufferlib.box2d.twin import box2d_twin

    try:
        box2d()
    except (ImportError, OSError):  # the original environment reports what is missing
        return None
    return box2d_twin(name, keywords, create)
