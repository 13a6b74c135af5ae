"""MiniHack: small worlds made of NetHack, one skill at a time, for example ``minihack/MiniHack-Room-5x5-v0``.

Install minihack (Apache-2.0) and nle with ``puffer install minihack``. Ids can also be written without ``MiniHack-``
and version: ``minihack/Room-5x5``.

* Observation: a Dict with the keys in ``observation_keys``, by default ``glyphs`` (int16 ``(21, 79)``), ``blstats``
  (int64 ``(27,)``) and ``message`` (uint8 ``(256,)``), as in the binding nethack. Besides the other keys of nle there
  are the hero's surroundings: ``glyphs_crop``, ``chars_crop``, ``colors_crop``, ``specials_crop``,
  ``tty_chars_crop``, ``tty_colors_crop`` with shape ``(crop, crop)``, and images: ``pixel``, uint8 ``(336, 1264, 3)``,
  and ``pixel_crop``, uint8 ``(16 * crop, 16 * crop, 3)``.
* Action: Discrete. 8 directions in navigation worlds, up to 85 keys in others.
* Reward: 1 for the goal, usually the stairs down. -0.01 for each step in which no game time passes. Some worlds have
  additional rewards.
* Terminal: the goal is reached, or the hero died. Truncation: ``max_episode_steps``, which depends on the world.
* Infos at the end of an episode: ``success``, and the infos of the binding nethack.

See ``make_env`` for the options. The differences from nle listed in the binding nethack also apply here, and:

* Worlds made with MiniGrid generated their levels without a seed. Here they use the seed of the game.
* Level seeds (``seeds``) were chosen with Python's global generator. Here they use the seed of the game.
* minihack's crops are wrong if they are not square, so one number sets both sides.
* The warning about pkg_resources on importing minihack is not shown. It is the reason why setuptools is pinned.

Every world compiles its level with a NetHack program when it is made, which takes about 20 ms. MiniGrid worlds
(MultiRoom) do so in every ``reset``.

Left out: LavaCrossing and SimpleCrossing, which fail with the current MiniGrid. Boxoban, whose levels would have to be
downloaded. The two Custom worlds, which are only templates.

The network is ``GlyphNet`` of the binding nethack.

Source: Samvelyan et al. 2021, https://arxiv.org/abs/2109.13202.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Listed here so that names() imports nothing. Ids without "MiniHack-" and version.
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
    """Return the official ids, sorted."""
    return tuple(sorted(map(_id, _WORLDS.split())))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the world ``name``.

    Raises:
        UnknownNameError: No world has this name. The error suggests similar names.
    """
    return creator(__name__, _id(name) if name in _WORLDS.split() else name, names())


def _id(world: str) -> str:
    return f"MiniHack-{world}-v{int(world.startswith('Sokoban'))}"
