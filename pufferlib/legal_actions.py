"""Random actions that respect the action masks in observations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, MultiDiscrete

from pufferlib.spaces import MixedBox, Space, joint_space

__all__ = ["FIELD", "LegalActions", "mask_reader", "num_choices", "unread_mask"]

Array = npt.NDArray[Any]
Masks = npt.NDArray[np.bool_]

FIELD = "action_mask"  # of an emulated observation


def mask_reader(env: Any) -> Callable[[Array], Masks] | None:
    """Return a function that reads the legal actions from a batch of observations, or None without action masks.

    The function takes observations ``(rows, *shape)`` and returns bool ``(rows, choices)``, with one element for each
    value of each part of an action. The mask is in the elements ``env.action_mask`` of an observation, or in the field
    ``action_mask`` of an emulated observation if that has as many elements.

    Args:
        env: Environment, or vector environment with ``driver_env``.
    """
    choices = num_choices(env.single_action_space)
    if not choices:
        return None
    if not env.emulated:
        elements = getattr(getattr(env, "driver_env", env), FIELD, None)
        if elements is None:
            return None
        return lambda observations: observations.reshape(len(observations), -1)[:, elements] != 0
    dtype = env.emulated["emulated_observation_dtype"]
    if FIELD not in (dtype.names or ()) or int(np.prod(dtype[FIELD].shape, dtype=np.int64)) != choices:
        return None
    return lambda observations: (
        np.ascontiguousarray(observations).view(dtype)[:, 0][FIELD].reshape(len(observations), -1) != 0
    )


def unread_mask(env: Any) -> str:
    """Return why a field ``action_mask`` of an emulated observation is no mask for ``mask_reader``, or "" without one.

    Args:
        env: Vector environment for which ``mask_reader`` returns None.
    """
    choices = num_choices(env.single_action_space)
    path = _find_field(env.emulated["emulated_observation_dtype"])
    if not choices or not path:
        return ""
    place, size = "observation" + "".join(f"[{name!r}]" for name, _ in path), path[-1][1]
    if len(path) > 1:
        return f"{place} must be at the top of the observation, as observation[{FIELD!r}]"
    return f"{place} must have {choices} elements, one for each value of each part of an action, got {size}"


def num_choices(space: Space) -> int:
    """Return the number of values of all discrete parts of an action, which is the number of elements of a mask."""
    return int(np.sum(_sizes(space)))


def _find_field(dtype: np.dtype[Any]) -> list[tuple[str, int]]:
    """Return names and sizes of the fields on the way to the first field ``action_mask``, or an empty list."""
    for name in sorted(dtype.names or (), key=FIELD.__ne__):
        size = int(np.prod(dtype[name].shape, dtype=np.int64))
        if name == FIELD:
            return [(name, size)]
        if found := _find_field(dtype[name].base):
            return [(name, size), *found]
    return []


class LegalActions:
    """Sampler of uniformly random actions that the agents' observations allow, or of all actions without masks.

    Args:
        env: Environment, or vector environment with ``driver_env``.
        num_agents: Number of agents of each sample.
        seed: Seed of the sampler.

    Attributes:
        has_masks: Whether observations of ``env`` have masks. If not, actions are samples of the joint action space.
    """

    def __init__(self, env: Any, num_agents: int, seed: int) -> None:
        self._space: Space = joint_space(env.single_action_space, num_agents)
        self._space.seed(seed)
        space = env.single_action_space
        self._sizes, self._shape = _sizes(space), space.shape
        self._is_integer = space.is_integer if isinstance(space, MixedBox) else None
        self._start = getattr(space, "start", 0) if self._is_integer is None else space.low[self._is_integer]
        self._read = mask_reader(env)
        self.has_masks = self._read is not None

    def sample(self, observations: Array | None) -> Array:
        """Return an action for each agent.

        Args:
            observations: Observations of the agents, ``(num_agents, *shape)``. May be None without masks. An agent
                without any legal action gets an arbitrary one.
        """
        if self._read is None or observations is None:
            return self._any()
        legal = self._read(observations)
        keys = np.where(legal, 1.0, 0.0) + self._space.np_random.random(legal.shape)
        ends = np.cumsum(self._sizes)
        parts = [keys[:, end - size : end].argmax(1) for size, end in zip(self._sizes, ends, strict=True)]
        chosen = np.stack(parts, 1)
        if self._is_integer is None:
            actions: Array = chosen.reshape(len(legal), *self._shape) + self._start
            return actions.astype(self._space.dtype)
        actions = self._any()
        actions[:, self._is_integer] = chosen + self._start
        return actions

    def without_illegal(self, action: Any, observation: Array) -> Array:
        """Return the action of one agent, with the first legal value in place of each illegal one.

        Args:
            action: Action of the agent, of the shape of its action space.
            observation: Observation of the agent, ``shape``.
        """
        given = np.array(action)
        if self._read is None:
            return given
        integers = given.ravel() if self._is_integer is None else given[self._is_integer]
        legal = np.split(self._read(observation[None])[0], np.cumsum(self._sizes)[:-1])
        values = (integers - self._start).astype(np.int64)
        kept = [value if mask[value] else mask.argmax() for value, mask in zip(values, legal, strict=True)]
        given[... if self._is_integer is None else self._is_integer] = (
            np.reshape(kept, given.shape if self._is_integer is None else -1) + self._start
        )
        return given

    def _any(self) -> Array:
        drawn: Array = self._space.sample()
        return drawn


def _sizes(space: Space) -> npt.NDArray[np.int64]:
    """Return the number of values of each discrete part of an action."""
    if isinstance(space, MixedBox):
        return space.sizes
    if isinstance(space, Box):
        return np.empty(0, np.int64)
    return np.asarray(space.nvec if isinstance(space, MultiDiscrete) else [space.n], np.int64).ravel()  # type: ignore[attr-defined]
