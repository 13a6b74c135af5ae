"""The StarCraft Multi-Agent Challenge, as ``smac/3m``, if you have StarCraft II and the package smac.

The package is not on any package index, so this binding has only been tested against a mock.

* Agents: the units of one side, 2 to 27. All stay until the battle ends. Dead units observe zeros.
* Observation: Dict of ``observation``, float32, the unit's view, and ``action_mask``, int8, its legal actions.
* Action: Discrete. An illegal action is replaced by the first legal one.
* Reward: damage, kills and victory, at most 20 per battle, the same for all agents.
* Terminal: the battle is won or lost. Truncation: its time is up.

Options: ``difficulty`` of the opponent, "1" to "A" as defined by SMAC. ``reset`` with a seed restarts StarCraft, which
accepts a seed only at startup. Some randomness remains.

Source: Samvelyan et al. 2019, https://arxiv.org/abs/1902.04043.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_MAPS = """
10m_vs_11m 1c3s5z 25m 27m_vs_30m 2c_vs_64zg 2m_vs_1z 2s3z 2s_vs_1sc 3m 3s5z 3s5z_vs_3s6z 3s_vs_3z 3s_vs_4z 3s_vs_5z
5m_vs_6m 6h_vs_8z 8m 8m_vs_9m MMM MMM2 bane_vs_bane corridor so_many_baneling
"""


def names() -> tuple[str, ...]:
    """Return the names of the maps, sorted."""
    return tuple(_MAPS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the map ``name``.

    Raises:
        UnknownNameError: No map has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), adaptor="env:Battle")
