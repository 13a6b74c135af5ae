"""MiniHack: small worlds made of NetHack, one skill at a time, such as ``minihack/MiniHack-Room-5x5-v0``.

``puffer install minihack`` brings minihack (Apache-2.0) and nle. Ids work without ``MiniHack-`` and
version, too: ``minihack/Room-5x5``.

* Observation: a Dict of what ``observation_keys`` names, by default ``glyphs`` (int16 ``(21, 79)``), ``blstats``
  (int64 ``(27,)``) and ``message`` (uint8 ``(256,)``), as in the binding nethack. Besides the other keys of nle there
  are the surroundings of the hero: ``glyphs_crop``, ``chars_crop``, ``colors_crop``, ``specials_crop``,
  ``tty_chars_crop``, ``tty_colors_crop`` of ``(crop, crop)``, and pictures: ``pixel``, uint8 ``(336, 1264, 3)``,
  and ``pixel_crop``, uint8 ``(16 * crop, 16 * crop, 3)``.
* Action: Discrete; 8 directions in worlds that are about finding a way, up to 85 keys in others.
* Reward: 1 for the goal, mostly the stairs down; minus 0.01 in each step in which no time passes; in some worlds
  others, too.
* Terminal: the goal is reached, or the hero died. Truncation: ``max_episode_steps``, which each world has its own of.
* Infos, when an episode ends: ``success``, and those of the binding nethack.

The options and their defaults are those of ``make_env``. The differences from nle that the binding nethack lists
hold here too, and besides:

* Worlds made with MiniGrid drew their levels without any seed; now from that of the game.
* A choice of level seeds (``seeds``) was drawn from Python's own generator; now from that of the game.
* minihack's crops are wrong where they are no squares, so there is one number for both sides.
* A warning about pkg_resources, which importing minihack raises, is not shown; it is why setuptools is held back.

Every world compiles its level with a program of NetHack's when it is made, which takes some 20 ms; those of MiniGrid
(MultiRoom) in every ``reset``.

Left out: LavaCrossing and SimpleCrossing, which fail with today's MiniGrid; Boxoban, whose levels would have to be
downloaded; and the two Custom ones, which are no worlds yet.

The network is ``GlyphNet`` of the binding nethack.

Source: Samvelyan et al. 2021, https://arxiv.org/abs/2109.13202.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Written down so that listing the worlds imports nothing: ids without "MiniHack-" and version.
_WORLDS = """
ClosedDoor Corridor-R2 Corridor-R3 Corridor-R5 CorridorBattle CorridorBattle-Dark Eat Eat-Distr Eat-Fixed
ExploreMaze-Easy ExploreMaze-Easy-Mapped ExploreMaze-Hard ExploreMaze-Hard-Mapped Freeze-Horn-Full
Freeze-Horn-Restricted Freeze-Lava-Full Freeze-Lava-Restricted Freeze-Random-Full Freeze-Random-Restricted
Freeze-Wand-Full Freeze-Wand-Restricted HideNSeek HideNSeek-Big HideNSeek-Lava HideNSeek-Mapped KeyRoom-Dark-S15
KeyRoom-Dark-S5 KeyRoom-Fixed-S5 KeyRoom-S15 KeyRoom-S5 Labyrinth-Big Labyrinth-Small LavaCross-Full
LavaCross-Levitate-Full LavaCross-Levitate-Potion-Inv-Full LavaCross-Levitate-Potion-Inv-Restricted
LavaCross-Levitate-Potion-Pickup-Full LavaCross-Levitate-Potion-Pickup-Restricted LavaCross-Levitate-Restricted
LavaCross-Levitate-Ring-Inv-Full LavaCross-Levitate-Ring-Inv-Restricted LavaCross-Levitate-Ring-Pickup-Full
LavaCross-Levitate-Ring-Pickup-Restricted LavaCross-Restricted Levitate-Boots-Fixed Levitate-Boots-Full
Levitate-Boots-Restricted Levitate-Potion-Fixed Levitate-Potion-Full Levitate-Potion-Restricted Levitate-Random-Full
Levitate-Ring-Fixed Levitate-Ring-Full Levitate-Ring-Restricted LockedDoor LockedDoor-Fixed MazeWalk-15x15
MazeWalk-45x19 MazeWalk-9x9 MazeWalk-Mapped-15x15 MazeWalk-Mapped-45x19 MazeWalk-Mapped-9x9 Memento-F2 Memento-F4
Memento-Short-F2 MultiRoom-N10 MultiRoom-N10-Lava MultiRoom-N10-Lava-OpenDoor MultiRoom-N10-OpenDoor MultiRoom-N2
MultiRoom-N2-Extreme MultiRoom-N2-Lava MultiRoom-N2-LavaMonsters MultiRoom-N2-Locked MultiRoom-N2-Monster MultiRoom-N4
MultiRoom-N4-Extreme MultiRoom-N4-Lava MultiRoom-N4-LavaMonsters MultiRoom-N4-Locked MultiRoom-N4-Monster MultiRoom-N6
MultiRoom-N6-Extreme MultiRoom-N6-Lava MultiRoom-N6-Lava-OpenDoor MultiRoom-N6-LavaMonsters MultiRoom-N6-Locked
MultiRoom-N6-Monster MultiRoom-N6-OpenDoor Pray Pray-Distr Pray-Fixed PutOn PutOn-Distr PutOn-Fixed Quest-Easy
Quest-Hard Quest-Medium Read Read-Distr Read-Fixed River River-Lava River-Monster River-MonsterLava River-Narrow
Room-15x15 Room-5x5 Room-Dark-15x15 Room-Dark-5x5 Room-Monster-15x15 Room-Monster-5x5 Room-Random-15x15
Room-Random-5x5 Room-Trap-15x15 Room-Trap-5x5 Room-Ultimate-15x15 Room-Ultimate-5x5 Sink Sink-Distr Sink-Fixed
Sokoban1a Sokoban1b Sokoban2a Sokoban2b Sokoban3a Sokoban3b Sokoban4a Sokoban4b Wear Wear-Distr Wear-Fixed Wield
Wield-Distr Wield-Fixed WoD-Easy-Full WoD-Easy-Restricted WoD-Hard-Full WoD-Hard-Restricted WoD-Medium-Full
WoD-Medium-Restricted WoD-Pro-Full WoD-Pro-Restricted Zap Zap-Distr Zap-Fixed
"""


def names() -> tuple[str, ...]:
    """The official ids, sorted."""
    return tuple(sorted(map(_id, _WORLDS.split())))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the world ``name``.

    Raises:
        UnknownNameError: No world has this name; the nearest ones are suggested.
    """
    return creator(__name__, _id(name) if name in _WORLDS.split() else name, names())


def _id(world: str) -> str:
    return f"MiniHack-{world}-v{int(world.startswith('Sokoban'))}"
