"""Families of tasks: each module has ``tasks()``, and imports nothing heavy before one of them is made."""

__all__ = ["FAMILIES"]

#: Modules of this package.
FAMILIES: tuple[str, ...] = (
    "box2d",
    "dm_control",
    "minigrid",
    "mujoco",
    "procgen",
    "toy_text",
    "vizdoom",
)
