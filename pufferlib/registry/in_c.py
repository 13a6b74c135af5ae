"""Description of an environment in C that has the results of a Python environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gymnasium.spaces import Box

from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.env import type_of
from pufferlib.ocean.types import spaces_of
from pufferlib.spaces import Space

__all__ = ["Twin", "box_in_c"]


@dataclass(frozen=True)
class Twin:
    """Environment in C with the results of a Python environment.

    Attributes:
        name: Name in Ocean.
        params: Its keyword arguments.
        observation_space: Observation space of the Python environment. The rows in C are those of emulation.
    """

    name: str
    params: Mapping[str, Any]
    observation_space: Space


def box_in_c(name: str, params: Mapping[str, Any]) -> Box | None:
    """Return the observation space of an environment in C, or None if it rejects its keyword arguments."""
    kind = type_of(name)
    try:
        box, *_ = spaces_of(OceanBatch(kind.index, 1, kind.in_c(dict(params)), 1).spec)
    except APIUsageError:
        return None
    return box
