"""Griddly: grid worlds defined in YAML and run by a C++ engine, for example ``griddly/GDY-Sokoban-v0``.

Install griddly (MIT) with ``puffer install griddly``. Plain pip cannot resolve its metadata. Ids can also be written in
lower case, without ``GDY-`` and ``-v0``: ``griddly/sokoban``.

* Observation: with ``observer="vector"``, the default, uint8 ``(kinds of objects, columns, rows)``, 1 where an object
  is. In Partially-Observable worlds it shows the agent's surroundings. Other observers give images, ``(3, width,
  height)``.
* Action: Discrete or MultiDiscrete: directions, or kinds of actions and directions.
* Reward, terminal: defined by the world, including its own step limit if it has one. Truncation: ``max_steps``.

Multi-player worlds (Foragers, Robot-Tag and strategy games) have one agent per player. In strategy games, an action
starts with the column and row of the unit that acts.

See ``make_env`` for the options.

Differences from the package:

* The old gym interface is not needed. Spaces are available immediately, not only after a reset.
* Seeds: every ``reset`` seeds the engine from the random stream that ``reset(seed)`` starts. Worlds without randomness,
  such as Sokoban, are the same for every seed.
* The observers ``sprite_2d``, ``block_2d`` and ``isometric`` draw with Vulkan. Without it, the engine crashes the
  process with a segmentation fault. Here the Vulkan device is checked first, and an error names what to install.
* ``render_mode="rgb_array"`` draws colored squares of ten pixels and does not need Vulkan.

Source: Bamford et al. 2020, https://arxiv.org/abs/2011.06363.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Listed here so that names() imports nothing. Ids without "GDY-" and "-v0".
_WORLDS = """
Bait Bait-With-Keys Butterflies-and-Spiders Clusters Cook-Me-Pasta Doggo Drunk-Dwarf Eyeball Foragers GriddlyRTS
Heal-Or-Die Kill-The-King Labyrinth Partially-Observable-Bait Partially-Observable-Clusters
Partially-Observable-Cook-Me-Pasta Partially-Observable-Labyrinth Partially-Observable-Sokoban---2
Partially-Observable-Zelda Partially-Observable-Zen-Puzzle Push-Mania Random-butterflies Robot-Tag-12v12
Robot-Tag-4v4 Robot-Tag-8v8 Sokoban Sokoban---2 Spider-Nest Spiders Zelda Zelda-Sequential Zen-Puzzle
"""


def names() -> tuple[str, ...]:
    """Return the official ids, sorted."""
    return tuple(sorted(f"GDY-{world}-v0" for world in _WORLDS.split()))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the world ``name``.

    Raises:
        UnknownNameError: No world has this name. The error suggests similar names.
    """
    short = {world.lower(): f"GDY-{world}-v0" for world in _WORLDS.split()}
    return creator(__name__, short.get(name, name), names())
