"""MineRL's Minecraft, as ``minerl/MineRLTreechop-v0``, for those who have the package minerl.

No package index has it in a form that installs, so this has been tried against a stand-in only.

* Observation: Dict with ``pov``, uint8 ``(64, 64, 3)``, and what the task adds: compass, inventory, equipment.
* Action: Dict of keys, camera angles and, by task, what to craft, place, smelt and equip.
* Reward: that of the task. Terminal: the task is done, or the player died. Truncation: the task's time is up.

Options: ``render_mode``, which is "rgb_array" or None. A seed goes to the old ``env.seed``.

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
    """The tasks of the competitions, by their ids."""
    return tuple(sorted(f"MineRL{task}-v0" for task in _TASKS.split()))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that starts the task ``name``.

    Raises:
        UnknownNameError: No task has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names())
