"""Games of many consoles on stable-retro (MIT, emulators under their own licences), as ``retro/<game>``.

Only ``retro/Airstriker-Genesis-v0`` includes its cartridge image (ROM). For other games, provide your own ROMs:
``python -m stable_retro.import FOLDER`` imports all known ones in a folder.

* Observation: uint8 ``(stack, size, size)``, by default ``(4, 84, 84)``, grayscale, oldest image first.
* Action: MultiBinary, one per button of the console. With ``actions="discrete"``, Discrete, one number for each
  useful combination of buttons.
* Reward: the scenario's reward, summed over the frames of a step.
* Terminal: defined by the scenario. Truncation: ``max_frames``.

See ``env.RetroGame`` for the options.

Differences from the package: stable-retro opens a window by default, and allows one emulator per process. Here there is
no window, and the games of a process take turns: the state of one is saved, and the state of the next is loaded. This
takes a third of a millisecond per step with one ROM, and seven milliseconds with several ROMs in one process. The games
have no seed. Randomness comes from ``wait_max``, the maximum number of frames before the first step, and from
``repeat_action_probability``.

Source: Nichol et al. 2018, https://arxiv.org/abs/1804.03720, and https://stable-retro.farama.org.
"""

import functools
from collections.abc import Callable
from importlib import resources
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


@functools.cache
def names() -> tuple[str, ...]:
    """Return the games that stable-retro knows, sorted."""
    return tuple(resources.files(__name__).joinpath("games.txt").read_text("utf-8").split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), options_of=("RetroGame",))
