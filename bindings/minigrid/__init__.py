"""MiniGrid's worlds and BabyAI's levels, as ``minigrid/MiniGrid-DoorKey-8x8-v0`` or ``minigrid/BabyAI-GoToLocal-v0``.

You can omit the version, which selects the newest, and ``MiniGrid-``: ``minigrid/DoorKey-8x8``. Install minigrid (MIT)
with ``puffer install minigrid``.

* Observation: a dict of ``image``, uint8 ``(7, 7, 3)``: object, color and state of each cell in front of the agent,
  at most 10, and ``direction``, Discrete(4). With ``direction=False`` it is only the image.
* Action: Discrete(7): turn left or right, go, pick up, drop, toggle, done. Some worlds have only the first 3.
* Reward: when the mission succeeds, 1 - 0.9 * steps / max_steps. -1 for a collision in Dynamic-Obstacles.
* Terminal: success, failure, lava. Truncation: ``max_steps``, which depends on the world.

Options:

* ``view``: "partial" (the default), "full" (all cells of the world, including the agent), "rgb" and "rgb_partial"
  (images of these, with ``tile_size`` pixels per cell).
* ``mission``: include the mission, a Text of at most 384 characters. Without it (the default), BabyAI's levels, Fetch,
  GoToDoor, GoToObject and PutNear cannot be solved.
* ``mission_bytes``: include the mission as this number of bytes, and the agent's position in the infos.
* ``direction``, ``max_steps``, ``render_mode`` (None or "rgb_array").
* ``native``: training, evaluations and batches of ``pufferlib.make`` run the worlds and levels in C, with the same
  results and without the package, if the other options are the defaults, ``max_steps``, ``agent_view_size`` or
  ``mission_bytes`` (96 for MiniGrid's worlds, 512 for BabyAI's levels). With False they run the package.

Differences from the package: the image space has the bounds of its small numbers (in the package, the bounds of a
byte), the mission space can be emulated, and BabyAI prints nothing.

The same seed always gives the same episodes. MiniGrid-WFC-* are left out, because minigrid 3.2.0 does not include
their patterns.

Sources: Chevalier-Boisvert et al. 2023, https://arxiv.org/abs/2306.13831 (MiniGrid). Chevalier-Boisvert
et al. 2019, https://arxiv.org/abs/1810.08272 (BabyAI).
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from pufferlib.registry.in_c import OceanTwin, box_in_c

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["LEVELS", "env_creator", "names", "twin"]

HIGHEST = 10  # number in a cell of an image
MISSION_BYTES = {"MiniGrid": 96, "BabyAI": 512}  # in C, by the first word of an id

# Listed here so that names() imports nothing.
_MINIGRID = """
BlockedUnlockPickup-v0 DistShift1-v0 DistShift2-v0 DoorKey-16x16-v0 DoorKey-5x5-v0 DoorKey-6x6-v0 DoorKey-8x8-v0
Dynamic-Obstacles-16x16-v0 Dynamic-Obstacles-5x5-v0 Dynamic-Obstacles-6x6-v0 Dynamic-Obstacles-8x8-v0
Dynamic-Obstacles-Random-5x5-v0 Dynamic-Obstacles-Random-6x6-v0 Empty-16x16-v0 Empty-5x5-v0 Empty-6x6-v0 Empty-8x8-v0
Empty-Random-5x5-v0 Empty-Random-6x6-v0 Fetch-5x5-N2-v0 Fetch-6x6-N2-v0 Fetch-8x8-N3-v0 FourRooms-v0 GoToDoor-5x5-v0
GoToDoor-6x6-v0 GoToDoor-8x8-v0 GoToObject-6x6-N2-v0 GoToObject-8x8-N2-v0 KeyCorridorS3R1-v0 KeyCorridorS3R2-v0
KeyCorridorS3R3-v0 KeyCorridorS4R3-v0 KeyCorridorS5R3-v0 KeyCorridorS6R3-v0 LavaCrossingS11N5-v0 LavaCrossingS9N1-v0
LavaCrossingS9N2-v0 LavaCrossingS9N3-v0 LavaGapS5-v0 LavaGapS6-v0 LavaGapS7-v0 LockedRoom-v0 MemoryS11-v0 MemoryS13-v0
MemoryS13Random-v0 MemoryS17Random-v0 MemoryS7-v0 MemoryS9-v0 MultiRoom-N2-S4-v0 MultiRoom-N4-S5-v0 MultiRoom-N4-S5-v1
MultiRoom-N6-v0 ObstructedMaze-1Dl-v0 ObstructedMaze-1Dlh-v0 ObstructedMaze-1Dlhb-v0 ObstructedMaze-1Q-v0
ObstructedMaze-1Q-v1 ObstructedMaze-2Dl-v0 ObstructedMaze-2Dlh-v0 ObstructedMaze-2Dlhb-v0 ObstructedMaze-2Dlhb-v1
ObstructedMaze-2Q-v0 ObstructedMaze-2Q-v1 ObstructedMaze-Full-v0 ObstructedMaze-Full-v1 Playground-v0
PutNear-6x6-N2-v0 PutNear-8x8-N3-v0 RedBlueDoors-6x6-v0 RedBlueDoors-8x8-v0 SimpleCrossingS11N5-v0
SimpleCrossingS9N1-v0 SimpleCrossingS9N2-v0 SimpleCrossingS9N3-v0 Unlock-v0 UnlockPickup-v0
"""

_BABYAI = """
ActionObjDoor-v0 BlockedUnlockPickup-v0 BossLevel-v0 BossLevelNoUnlock-v0 FindObjS5-v0 FindObjS6-v0 FindObjS7-v0
GoTo-v0 GoToDoor-v0 GoToImpUnlock-v0 GoToLocal-v0 GoToLocalS5N2-v0 GoToLocalS6N2-v0 GoToLocalS6N3-v0 GoToLocalS6N4-v0
GoToLocalS7N4-v0 GoToLocalS7N5-v0 GoToLocalS8N2-v0 GoToLocalS8N3-v0 GoToLocalS8N4-v0 GoToLocalS8N5-v0 GoToLocalS8N6-v0
GoToLocalS8N7-v0 GoToObj-v0 GoToObjDoor-v0 GoToObjMaze-v0 GoToObjMazeOpen-v0 GoToObjMazeS4-v0 GoToObjMazeS4R2-v0
GoToObjMazeS5-v0 GoToObjMazeS6-v0 GoToObjMazeS7-v0 GoToObjS4-v0 GoToObjS6-v1 GoToOpen-v0 GoToRedBall-v0
GoToRedBallGrey-v0 GoToRedBallNoDists-v0 GoToRedBlueBall-v0 GoToSeq-v0 GoToSeqS5R2-v0 KeyCorridor-v0
KeyCorridorS3R1-v0 KeyCorridorS3R2-v0 KeyCorridorS3R3-v0 KeyCorridorS4R3-v0 KeyCorridorS5R3-v0 KeyCorridorS6R3-v0
KeyInBox-v0 MiniBossLevel-v0 MoveTwoAcrossS5N2-v0 MoveTwoAcrossS8N9-v0 OneRoomS12-v0 OneRoomS16-v0 OneRoomS20-v0
OneRoomS8-v0 Open-v0 OpenDoor-v0 OpenDoorColor-v0 OpenDoorDebug-v0 OpenDoorLoc-v0 OpenDoorsOrderN2-v0
OpenDoorsOrderN2Debug-v0 OpenDoorsOrderN4-v0 OpenDoorsOrderN4Debug-v0 OpenRedBlueDoors-v0 OpenRedBlueDoorsDebug-v0
OpenRedDoor-v0 OpenTwoDoors-v0 Pickup-v0 PickupAbove-v0 PickupDist-v0 PickupDistDebug-v0 PickupLoc-v0 PutNextLocal-v0
PutNextLocalS5N3-v0 PutNextLocalS6N4-v0 PutNextS4N1-v0 PutNextS5N1-v0 PutNextS5N2-v0 PutNextS5N2Carrying-v0
PutNextS6N3-v0 PutNextS6N3Carrying-v0 PutNextS7N4-v0 PutNextS7N4Carrying-v0 Synth-v0 SynthLoc-v0 SynthS5R2-v0
SynthSeq-v0 UnblockPickup-v0 Unlock-v0 UnlockLocal-v0 UnlockLocalDist-v0 UnlockPickup-v0 UnlockPickupDist-v0
UnlockToUnlock-v0
"""


#: Ids in the order of their numbers in C.
LEVELS = (*(f"MiniGrid-{name}" for name in _MINIGRID.split()), *(f"BabyAI-{name}" for name in _BABYAI.split()))


def names() -> tuple[str, ...]:
    """Return the ids of the worlds and levels, sorted."""
    return tuple(sorted(LEVELS))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the world ``name``.

    Raises:
        UnknownNameError: No world has this name. The error suggests similar names.
    """
    return creator(__name__, full_id(name, names(), "MiniGrid-"), names())


def twin(name: str, options: Mapping[str, Any]) -> OceanTwin | None:
    """Return the environment in C that equals a world, or None if there is none with these options."""
    world = full_id(name, names(), "MiniGrid-")
    usual = {"view": "partial", "tile_size": 8, "direction": True, "mission": False, "render_mode": None}
    own = {key: value for key, value in options.items() if key not in usual and value is not None}
    kind = world.partition("-")[0]
    given = {key: options.get(key, value) for key, value in usual.items()}
    # Compared with their types, because the package explains that direction=1 is wrong.
    is_usual = all(type(given[key]) is type(value) and given[key] == value for key, value in usual.items())
    if world not in LEVELS or not is_usual:
        return None
    if kind == "BabyAI" and os.environ.get("BABYAI_DONE_ACTIONS"):  # the package then waits for the action "done"
        return None
    side, length = own.get("agent_view_size", 7), own.pop("mission_bytes", None)
    if (
        own.keys() - {"max_steps", "agent_view_size"}
        or own.get("max_steps") == 0
        or isinstance(length, float)
        or length not in (None, MISSION_BYTES[kind])
    ):
        return None
    params = {"level": LEVELS.index(world), "mission": length is not None, **own}
    if box_in_c("minigrid", params) is None:
        return None
    fields: dict[str, Any] = {"direction": Discrete(4), "image": Box(0, HIGHEST, (side, side, 3), np.uint8)}
    if length is not None:
        fields["mission"] = Box(0, 255, (MISSION_BYTES[kind],), np.uint8)
    infos = ("episode_return",) if length is None else ("episode_return", "agent_pos")
    return OceanTwin("minigrid", params, Dict(fields), infos)
