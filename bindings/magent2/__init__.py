"""The battles and hunts of MAgent2 (MIT), with tens to hundreds of agents each, as ``magent2/<id>``.

The ids are ``adversarial_pursuit_v4``, ``battle_v4`` (162 agents), ``battlefield_v5``, ``combined_arms_v6``,
``gather_v5`` and ``tiger_deer_v4``. You can omit the version: ``magent2/battle``.

* Observation: float32 ``(13, 13, 5)`` in battle: the squares around the agent, with channels for obstacles, and
  presence and health of each group, its own first. If groups have different spaces, the smaller ones are padded
  with zeros.
* Action: Discrete(21) in battle: stay, move to one of 12 squares, attack one of 8. An action that the agent's
  group does not have counts as its first action.
* Reward: kills, hits and food, with small penalties for time, useless attacks and death.
* Terminal: the agent died, or its game is decided. Truncation: ``max_cycles``.

Options: ``map_size`` (not in gather), ``max_cycles``, ``minimap_mode``, ``extra_features``, ``rewards``
(by name: ``{"dead_penalty": -1.0}``), ``render_mode`` (None or "rgb_array").

Source: Zheng et al., "MAgent" (2018), https://doi.org/10.48550/arXiv.1712.00600, maintained by the Farama Foundation.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_VERSIONS = (
    *("adversarial_pursuit_v4", "battle_v4", "battlefield_v5"),
    *("combined_arms_v6", "gather_v5", "tiger_deer_v4"),
)
_LATEST = {name.rpartition("_")[0]: name for name in _VERSIONS}


def names() -> tuple[str, ...]:
    """Return the MAgent2 ids of the games."""
    return _VERSIONS


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, _LATEST.get(name, name), names())
