"""Griddly: grid worlds written in YAML, played by a C++ engine; ``griddly/<id>``, such as ``griddly/GDY-Sokoban-v0``.

Needs griddly (MIT), whose metadata pip cannot follow: ``puffer install griddly``. Ids work without ``GDY-`` and
``-v0`` in small letters, too: ``griddly/sokoban``.

* Observation: uint8 ``(kinds of things, columns, rows)``, 1 where a thing is, with ``observer="vector"``, the
  default; in Partially-Observable worlds the agent's surroundings. Other observers give pictures, ``(3, width,
  height)``.
* Action: Discrete or MultiDiscrete: directions, or kinds of actions and directions.
* Reward, terminal: by world, also its own limit of steps if it has one. Truncation: ``max_steps``.

Worlds of several players (Foragers, Robot-Tag and those of strategy) have one agent each. In those of strategy an
action begins with the column and row of who is to act.

The options and their defaults are those of ``make_env``.

Differences from the package, and why:

* The old interface of gym, which is not needed; spaces, which exist only after a reset, are there from the start.
* Seeds: every ``reset`` seeds the engine from the stream that ``reset(seed)`` starts. Worlds in which nothing happens
  by chance, such as Sokoban, play the same with every seed.
* The observers ``sprite_2d``, ``block_2d`` and ``isometric`` draw with Vulkan, without which the engine ends the whole
  process with a segmentation fault. Here Vulkan is asked for a device first, and an error says what to install.
* ``render_mode="rgb_array"`` draws coloured squares, ten pixels each, and needs no Vulkan.

Source: Bamford et al. 2020, https://arxiv.org/abs/2011.06363.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Written down so that listing the worlds imports nothing: ids without "GDY-" and "-v0".
_WORLDS = """
Bait Bait-With-Keys Butterflies-and-Spiders Clusters Cook-Me-Pasta Doggo Drunk-Dwarf Eyeball Foragers GriddlyRTS
Heal-Or-Die Kill-The-King Labyrinth Partially-Observable-Bait Partially-Observable-Clusters
Partially-Observable-Cook-Me-Pasta Partially-Observable-Labyrinth Partially-Observable-Sokoban---2
Partially-Observable-Zelda Partially-Observable-Zen-Puzzle Push-Mania Random-butterflies Robot-Tag-12v12
Robot-Tag-4v4 Robot-Tag-8v8 Sokoban Sokoban---2 Spider-Nest Spiders Zelda Zelda-Sequential Zen-Puzzle
"""


def names() -> tuple[str, ...]:
    """The official ids, sorted."""
    return tuple(sorted(f"GDY-{world}-v0" for world in _WORLDS.split()))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the world ``name``.

    Raises:
        UnknownNameError: No world has this name; the nearest ones are suggested.
    """
    short = {world.lower(): f"GDY-{world}-v0" for world in _WORLDS.split()}
    return creator(__name__, short.get(name, name), names())
