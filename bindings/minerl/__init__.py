"""MineRL's Minecraft, as ``minerl/MineRLTreechop-v0``, if you have the package minerl.

No package index has a version that can be installed, so this binding has only been tested against a mock.

* Observation: Dict with ``pov``, uint8 ``(64, 64, 3)``, and further fields by task: compass, inventory, equipment.
* Action: Dict of keys, camera angles and, by task, items to craft, place, smelt and equip.
* Reward: the task's reward. Terminal: the task is done, or the player died. Truncation: the task's time is up.

Options: ``render_mode``, which is "rgb_array" or None. A seed is passed to the old ``env.seed``.

Source: Guss et al. 2019, https://arxiv.org/abs/1907.13440.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_TASKS = """
Navigate NavigateDense NavigateExtreme NavigateExtremeDense ObtainDiamond ObtainDiamondDense ObtainIronPickaxe
ObtainIronPickaxeDense Treechop
"""


def names() -> tuple[str, ...]:
    """Return the ids of the competitions' tasks."""
    return tuple(sorted(f"MineRL{task}-v0" for task in _TASKS.split()))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the task ``name``.

    Raises:
        UnknownNameError: No task has this name. The error suggests similar names.
    """
    return creator(__name__, name, names())
