"""Pokemon Red of the Game Boy on the emulator PyBoy (LGPL-3.0), and a free practice cartridge.

* ``pokemon_red/red`` is the game. Its cartridge image (ROM) is not free and comes from you: the
  option ``rom``, the variable ``PUFFER_POKEMON_RED_ROM`` or the file
  ``~/.local/share/pufferlib/pokemon_red.gb`` (``$XDG_DATA_HOME`` instead of ``~/.local/share``
  where that is set). It must be the version for the USA and Europe, ``Pokemon Red (UE) [S][!].gb``:
  1,048,576 bytes, SHA-1 ``ea9bcae617fdf159b045185467ae58b2e4a48b9a``.
* ``pokemon_red/practice`` is a cartridge of our own that needs no file. It keeps its state at the
  same addresses, so that policies, rewards and this binding can be tried.

What the agent sees, does and gets:

* Observation: a Dict. ``screen``: uint8 ``(stack, 72, 80)``, by default 3 pictures of half the
  size, grey, oldest first. ``numbers``: float32 ``(20,)`` in [0, 1]: map, x, y; x and y on the map
  of all Kanto; badges, events, in battle or not; the levels of six Pokemon, and their health.
* Action: Discrete(7): down, left, right, up, A, B, START, held for 8 frames of a step's 24.
* Reward: what the episode had not seen yet: squares, events of the story, badges, levels, each
  times its option ``reward_square``, ``reward_event``, ``reward_badge``, ``reward_level``. Levels
  and events count by their highest sum so far, so that nothing can be earned twice.
* Terminal: never. Truncation: after ``max_steps``.
* Infos at the end: squares, maps, events, badges, levels; ``perf`` is the share of the eight badges.

The game starts when the console is switched on, or at ``state``, a file that PyBoy's
``save_state`` wrote. The options and their defaults are those of ``env.PokemonRed``.

The map of Kanto is the one of https://github.com/PWhiddy/PokemonRedExperiments, 436 squares wide
and 444 high: towns and routes lie as the game itself joins them, Pallet Town at (64, 318). Inside
houses and caves, which the game puts nowhere, it is the last square outdoors.

Fixed here: PyBoy writes ``.ram`` files beside a ROM (it gets the bytes instead, not the path), opens
a window unless told not to, and warns when it is imported. The game itself draws no seed: chance
enters by ``wait_max``, up to which number of frames pass before the first step.

Sources: the game's memory as documented in https://github.com/pret/pokered and
https://datacrystal.tcrf.net/wiki/Pokemon_Red_and_Blue/RAM_map.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The practice cartridge, and the game."""
    return ("practice", "red")


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that switches the console on.

    Raises:
        UnknownNameError: No cartridge has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names(), options_of=("PokemonRed",))
