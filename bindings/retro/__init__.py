"""Games of many consoles on stable-retro (MIT; its emulators under licences of their own), as ``retro/<game>``.

Only ``retro/Airstriker-Genesis-v0`` comes with its cartridge image (ROM). Those of the other games are
yours: ``python -m stable_retro.import FOLDER`` finds the known ones in a folder.

* Observation: uint8 ``(stack, size, size)``, by default ``(4, 84, 84)``; grey, oldest picture first.
* Action: MultiBinary, one per button of the console; with ``actions="discrete"`` Discrete, one number
  for each combination of buttons that makes sense.
* Reward: that of the scenario, summed over the frames of a step.
* Terminal: what the scenario says. Truncation: ``max_frames``.

The options and their defaults are those of ``env.RetroGame``.

Fixed here: stable-retro opens a window unless told not to, and allows one emulator per process. Here the
games of one process take turns: the state of one is saved, that of the next is loaded. With one ROM that
takes a third of a millisecond per step, with several ROMs in one process seven. The games draw no
seed: chance enters by ``wait_max``, up to which number of frames pass before the first step, and by
``repeat_action_probability``.

Source: Nichol et al. 2018, https://arxiv.org/abs/1804.03720; https://stable-retro.farama.org.
"""

import functools
from collections.abc import Callable
from importlib import resources
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


@functools.cache
def names() -> tuple[str, ...]:
    """The games that stable-retro knows, sorted."""
    return tuple(resources.files(__name__).joinpath("games.txt").read_text("utf-8").split())


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that starts the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names(), options_of=("RetroGame",))
