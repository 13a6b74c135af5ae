"""Families of tasks: each module has ``tasks()``, and imports nothing heavy before one of them is made."""

__all__ = ["FAMILIES"]

#: Modules of this package.
FAMILIES = (
    "box2d",
    "classic_control",
    "dm_control",
    "minigrid",
    "mujoco",
    "ocean",
    "procgen",
    "toy_text",
    "vizdoom",
)
