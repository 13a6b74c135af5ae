"""Descriptions of environments in C that have the results of a Python environment."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.env import type_of
from pufferlib.ocean.state import code_of
from pufferlib.ocean.types import spaces_of
from pufferlib.spaces import Space

__all__ = ["Games", "OceanTwin", "Twin", "box_in_c"]


class Games(Protocol):
    """Copies of an environment in C, stepped together. ``OceanBatch`` is documented, and the other kinds are alike."""

    @property
    def exact_rewards(self) -> Array:
        """Rewards of the last step in the precision of the environment, ``(num_games,)``."""

    def bind(
        self,
        observations: Array,
        final_observations: Array,
        actions: Array,
        rewards: Array,
        terminals: Array,
        truncations: Array,
        masks: Array,
    ) -> None:
        """Use these arrays without copying them."""

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start an episode in all games."""

    def reset_games(self, indices: Sequence[int], seeds: Sequence[int | None]) -> None:
        """Start an episode in some games."""

    def step(self, actions: Array) -> object:
        """Step every game once."""

    def last_infos(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of the episode that has just ended."""

    def picture(self, index: int) -> npt.NDArray[np.uint8]:
        """Return an image of a game, uint8 ``(height, width, 3)``."""

    def save_games(self, indices: Sequence[int]) -> bytes:
        """Return the concatenated states of some games."""

    def load_games(self, indices: Sequence[int], state: memoryview) -> None:
        """Load saved states into some games."""

    def close(self) -> None:
        """Free the games and release the arrays."""


class Twin(Protocol):
    """Environment in C with the results of a Python environment."""

    @property
    def name(self) -> str:
        """Name of the environment in C."""

    @property
    def params(self) -> Mapping[str, Any]:
        """Keyword arguments of the environment in C, as plain data."""

    @property
    def code(self) -> str:
        """Identifier of the code. A state is only valid for the code that saved it."""

    @property
    def observation_space(self) -> Space:
        """Observation space of the Python environment. The rows in C are those of emulation."""

    @property
    def action_space(self) -> Space:
        """Action space of the rows in C."""

    @property
    def frames_per_second(self) -> float:
        """Steps per second when a human watches."""

    @property
    def max_steps(self) -> int:
        """Number of steps after which an episode is truncated, or 0."""

    def games(self, num_games: int, autoreset: str, num_threads: int) -> Games:
        """Make copies.

        Raises:
            PufferError: A helper thread could not be started.
        """


@dataclass(frozen=True)
class OceanTwin:
    """Environment of Ocean with the results of a Python environment.

    Attributes:
        name: Name in Ocean.
        params: Keyword arguments in Ocean.
        observation_space: Observation space of the Python environment.
        infos: Names of the infos of its last steps. "episode_return" is the sum of rewards that are not float32.
    """

    name: str
    params: Mapping[str, Any]
    observation_space: Space
    infos: tuple[str, ...] = ()

    @functools.cached_property
    def _spec(self) -> dict[str, Any]:
        return self.games(1, "same_step", 1).spec

    @property
    def code(self) -> str:
        """See ``Twin``."""
        return code_of(self.name)

    @property
    def action_space(self) -> Space:
        """See ``Twin``."""
        return spaces_of(self._spec)[1]

    @property
    def frames_per_second(self) -> float:
        """See ``Twin``."""
        rate: float = self._spec["frames_per_second"]
        return rate

    @property
    def max_steps(self) -> int:
        """See ``Twin``."""
        steps: int = self._spec["max_steps"]
        return steps

    def games(self, num_games: int, autoreset: str, num_threads: int) -> OceanBatch:
        """See ``Twin``."""
        kind = type_of(self.name)
        # Reports over several episodes are not used, so they may be as rare as possible.
        return OceanBatch(
            kind.index,
            num_games,
            kind.in_c(dict(self.params)),
            2**31 - 1,
            autoreset,
            num_threads,
            infos=self.infos,
        )


def box_in_c(name: str, params: Mapping[str, Any]) -> Box | None:
    """Return the observation space of an environment in C, or None if it rejects its keyword arguments."""
    kind = type_of(name)
    try:
        box, *_ = spaces_of(OceanBatch(kind.index, 1, kind.in_c(dict(params)), 1).spec)
    except APIUsageError:
        return None
    return box
