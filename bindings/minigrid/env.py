"""MiniGrid's worlds with configurable observations."""

import string
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Text
from gymnasium.utils import RecordConstructorArgs

from pufferlib.errors import APIUsageError

from .._shared.gymnasium import quiet_pygame, registered
from .._shared.options import check_counts, check_switches

with quiet_pygame():
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
    from minigrid.envs.babyai.core import roomgrid_level
    from minigrid.wrappers import FullyObsWrapper, RGBImgObsWrapper, RGBImgPartialObsWrapper

vars(roomgrid_level).update(print=lambda *_: None)  # BabyAI prints a line for every rejected world

__all__ = ["MissionBytes", "SelectObservation", "make_env"]

Env = gymnasium.Env[Any, Any]

VIEWS = ("partial", "full", "rgb", "rgb_partial")
HIGHEST = max(*OBJECT_TO_IDX.values(), *COLOR_TO_IDX.values(), *STATE_TO_IDX.values())
MISSION = Text(384, min_length=0, charset=string.ascii_letters + string.digits + " ,.'-")


def make_env(
    name: str,
    *,
    view: str = "partial",
    tile_size: int = 8,
    direction: bool = True,
    mission: bool = False,
    mission_bytes: int | None = None,
    max_steps: int | None = None,
    render_mode: str | None = None,
    native: bool = True,
    **options: Any,
) -> Env:
    """Make the world ``name``. ``options`` are arguments of its class.

    Args:
        name: Id of the world, see ``pufferlib.bindings.minigrid.names()``.
        view: Content of the image: "partial", the cells in front of the agent, "full", all cells, "rgb_partial" and
            "rgb", images of these.
        tile_size: Pixels per cell in such an image.
        direction: Whether to include the agent's direction.
        mission: Whether to include the mission as text.
        mission_bytes: Number of bytes for the mission, if it is included as bytes. The infos then have the agent's
            position.
        max_steps: Length at which an episode is truncated. None is the world's own.
        render_mode: None or "rgb_array".
        native: Whether batches may run in C. It changes nothing here.
        options: ``agent_view_size``, ``see_through_walls`` and other options of the world's class.

    Raises:
        UnknownKeywordError: The world has no such option.
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"minigrid/{name}"
    if view not in VIEWS:
        raise APIUsageError(f"{where}: view must be one of {', '.join(VIEWS)}, got {view!r}")
    check_switches(where, direction=direction, mission=mission, native=native)
    check_counts(where, tile_size=tile_size)
    if max_steps is not None:
        check_counts(where, max_steps=max_steps)
        options["max_steps"] = int(max_steps)  # the package accepts only Python's
    side = options.get("agent_view_size", 7)
    if not isinstance(side, int | np.integer) or side < 3 or side % 2 == 0:
        raise APIUsageError(f"{where}: agent_view_size must be an odd int >= 3, got {side!r}")
    env = registered(where, name, options, render_mode)
    is_picture = view.startswith("rgb")
    if view == "full":
        env = AllCells(env)
    elif is_picture:
        env = (FullPicture if view == "rgb" else PartialPicture)(env, tile_size)
    if mission_bytes is None:
        return SelectObservation(env, direction, mission, is_picture)
    check_counts(where, mission_bytes=mission_bytes)
    return MissionBytes(SelectObservation(env, direction, True, is_picture), mission_bytes)


class AllCells(FullyObsWrapper, RecordConstructorArgs):  # type: ignore[misc]  # minigrid has no types
    """MiniGrid's view of all cells, with recorded constructor arguments."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        FullyObsWrapper.__init__(self, env)


class FullPicture(RGBImgObsWrapper, RecordConstructorArgs):  # type: ignore[misc]
    """MiniGrid's image of all cells, with recorded constructor arguments."""

    def __init__(self, env: Env, tile_size: int) -> None:
        RecordConstructorArgs.__init__(self, tile_size=tile_size)
        RGBImgObsWrapper.__init__(self, env, tile_size)


class PartialPicture(RGBImgPartialObsWrapper, RecordConstructorArgs):  # type: ignore[misc]
    """MiniGrid's image of the agent's view, with recorded constructor arguments."""

    def __init__(self, env: Env, tile_size: int) -> None:
        RecordConstructorArgs.__init__(self, tile_size=tile_size)
        RGBImgPartialObsWrapper.__init__(self, env, tile_size)


class SelectObservation(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Selects the image, and optionally the direction and the mission.

    The space has the actual bounds: a cell is three small numbers, not bytes of an image, and the mission is a Text.
    """

    def __init__(self, env: Env, direction: bool, mission: bool, is_picture: bool) -> None:
        RecordConstructorArgs.__init__(self, direction=direction, mission=mission, is_picture=is_picture)
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Dict)
        image = space["image"]
        assert isinstance(image, Box)
        if not is_picture:
            image = Box(0, HIGHEST, image.shape, np.uint8)
        fields: dict[str, Any] = {"direction": space["direction"], "image": image, "mission": MISSION}
        shown = {"direction": direction, "image": True, "mission": mission}
        self._hidden = tuple(field for field in fields if not shown[field])
        self._is_image = not direction and not mission
        self.observation_space = Dict({field: fields[field] for field in fields if shown[field]})
        if self._is_image:
            self.observation_space = image

    def get_action_meanings(self) -> list[str]:
        """Return the name of each action, for example "left", "forward", "pickup"."""
        world: Any = self.unwrapped
        return [action.name for action in world.actions]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._select(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Run one step."""
        outcome = self.env.step(action)
        return self._select(outcome[0]), *outcome[1:]

    def _select(self, observation: dict[str, Any]) -> Any:
        """Select the fields from MiniGrid's dict, which is a new one in every step."""
        if self._is_image:
            return observation["image"]
        for field in self._hidden:
            del observation[field]
        return observation


class MissionBytes(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Replaces the mission by bytes, padded with 0, and adds the agent's position to the infos as ``agent_pos``.

    Raises:
        APIUsageError: In ``reset``, the mission is longer than ``size``.
    """

    def __init__(self, env: Env, size: int) -> None:
        RecordConstructorArgs.__init__(self, size=size)
        super().__init__(env)
        space: Any = env.observation_space
        self._size = size
        self.observation_space = Dict({**space.spaces, "mission": Box(0, 255, (size,), np.uint8)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        text = observation["mission"].encode()
        if len(text) > self._size:
            raise APIUsageError(
                f"minigrid: mission_bytes must be at least {len(text)} for the mission {observation['mission']!r}, got "
                f"{self._size}"
            )
        self._bytes = np.zeros(self._size, np.uint8)
        self._bytes[: len(text)] = list(text)
        return self._shown(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Run one step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._shown(observation, info)
        return observation, reward, terminated, truncated, info

    def _shown(self, observation: dict[str, Any], info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        world: Any = self.env.unwrapped
        position = np.array(world.agent_pos)  # a tuple until the agent moves
        return {**observation, "mission": self._bytes}, {**info, "agent_pos": position}
