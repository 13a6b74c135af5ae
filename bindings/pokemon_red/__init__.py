"""Pokemon Red of the Game Boy on the emulator PyBoy (LGPL-3.0), and a free practice cartridge.

* ``pokemon_red/red`` is the game. Its cartridge image (ROM) is not free, so you must provide it: with the
  option ``rom``, the variable ``PUFFER_POKEMON_RED_ROM`` or the file
  ``~/.local/share/pufferlib/pokemon_red.gb`` (``$XDG_DATA_HOME`` instead of ``~/.local/share`` if it is
  set). It must be the version for the USA and Europe, ``Pokemon Red (UE) [S][!].gb``: 1,048,576 bytes,
  SHA-1 ``ea9bcae617fdf159b045185467ae58b2e4a48b9a``.
* ``pokemon_red/practice`` is a cartridge written for this binding that needs no file. It keeps its state at the
  same addresses, so that you can test policies, rewards and this binding.

Environment:

* Observation: a Dict. ``screen``: uint8 ``(stack, 72, 80)``, by default 3 images at half size, grayscale, oldest
  first. ``numbers``: float32 ``(20,)`` in [0, 1]: map, x, y, x and y on the map of all Kanto, badges, events, in
  battle or not, the levels of six Pokemon, and their health.
* Action: Discrete(7): down, left, right, up, A, B, START, held for 8 frames of a step's 24.
* Reward: everything new in the episode: squares, events of the story, badges, levels, each times its option
  ``reward_square``, ``reward_event``, ``reward_badge``, ``reward_level``. Levels and events count by their highest
  sum so far, so that nothing is rewarded twice.
* Terminal: never. Truncation: after ``max_steps``.
* Infos at the end: squares, maps, events, badges, levels, and ``perf``, the share of the eight badges.

The game starts when the console is switched on, or from ``state``, a file written by PyBoy's ``save_state``. See
``env.PokemonRed`` for the options.

The map of Kanto comes from https://github.com/PWhiddy/PokemonRedExperiments, 436 squares wide and 444 high. Towns and
routes are placed as the game connects them, with Pallet Town at (64, 318). Inside houses and caves, which have no place
on it, the position is the last square outdoors.

Differences from the package: PyBoy writes ``.ram`` files beside a ROM, so it gets the bytes and not the path. It opens
no window, and its warning on import is not shown. The game has no seed. Randomness comes from ``wait_max``, the maximum
number of frames before the first step.

Sources: the game's memory as documented in https://github.com/pret/pokered and
https://datacrystal.tcrf.net/wiki/Pokemon_Red_and_Blue/RAM_map.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the names of the practice cartridge and the game."""
    return ("practice", "red")


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the environment ``name``.

    Raises:
        UnknownNameError: No cartridge has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), options_of=("PokemonRed",))
