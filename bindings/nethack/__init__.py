"""NetHack of the NetHack Learning Environment, as ``nethack/<id>``, for example ``nethack/NetHackScore-v0``.

A procedurally generated dungeon with hundreds of monsters and objects, and one life. Install nle (NetHack General
Public License) with ``puffer install nethack``. Ids can also be written without ``-v0``, or in snake_case without
``NetHack``: ``nethack/score``, ``nethack/staircase_pet``.

* Observation: a Dict with the keys in ``observation_keys``, by default ``glyphs`` (int16 ``(21, 79)``, the glyph on
  each square, 0 to 5976), ``blstats`` (int64 ``(27,)``, the numbers of the bottom line, of which the first two are the
  hero's column and row) and ``message`` (uint8 ``(256,)``, characters). The other keys of nle are: ``chars``,
  ``colors``, ``specials``, ``inv_glyphs``, ``inv_strs``, ``inv_letters``, ``inv_oclasses``, ``screen_descriptions``,
  ``tty_chars``, ``tty_colors``, ``tty_cursor``, ``misc``. Each costs a little time.
* Action: Discrete, keys of NetHack: 23 in the tasks, 86 in ``NetHack-v0``, 121 in ``NetHackChallenge-v0``.
* Reward: depends on the task: score gained (NetHack, Score, Challenge), gold gained (Gold), food eaten (Eat), squares
  seen (Scout), or 1 for reaching the stairs down (Staircase), the same with the pet beside (StaircasePet), or the
  Oracle. Minus 0.01 for each step in which no game time passes (except in ``NetHack-v0`` and the Challenge).
* Terminal: the hero died or left, or the task is done. Truncation: ``max_episode_steps``.
* Infos at the end of an episode: ``points`` (the game's score), ``depth``, ``level`` (of experience), ``turns``,
  ``ascended``, ``success`` in tasks that have a goal, and the infos of ``EpisodeStats``.

See ``make_env`` for the options.

Differences from the package:

* Seeds: ``reset(seed)`` of nle does not seed NetHack. Here NetHack's seeds for every episode come from the random
  stream that ``reset(seed)`` starts, and its own reseeding is off. The phase of the moon, which changes the rules at
  midnight and on Friday the 13th, depends on the seed and not on the clock.
* The Challenge forbids setting seeds, so that no game of its contest is played twice. Here it is seeded like the
  others. For an official run, use nle itself. Its time limit of a million steps is 50,000 here. The limit of 10,000
  steps without progress counts steps here, while nle counts each step twice.
* nle marks a game that reaches its time limit as terminated, and shows the screens of quitting it. Here it is
  truncated, and shows the last real observation.
* nle copies all observations in every step to compare two numbers. Here only these are copied.
* The arrays are the same in every step and overwritten by the next. Emulation copies them immediately.
* nle's option to write recordings is not offered. Its folder in /tmp is removed by ``close``.

Several games in one process are possible. Each loads its own copy of the game's library.

``policy.py`` contains ``GlyphNet``, an embedding of the glyphs with two small convolutional networks.

Sources: Küttler et al. 2020, https://arxiv.org/abs/2006.13760 (the environment and its tasks). Hambro et al. 2022,
https://arxiv.org/abs/2203.11889 (the Challenge).
"""

import re
from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Listed here so that names() imports nothing.
_TASKS = (
    *("NetHack", "NetHackChallenge", "NetHackEat", "NetHackGold", "NetHackOracle", "NetHackScore"),
    *("NetHackScout", "NetHackStaircase", "NetHackStaircasePet"),
)


def names() -> tuple[str, ...]:
    """Return the official ids, sorted."""
    return tuple(sorted(f"{task}-v0" for task in _TASKS))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the task ``name``.

    Raises:
        UnknownNameError: No task has this name. The error suggests similar names.
    """
    short = {word: id_ for id_ in names() for word in (_short(id_), id_.removesuffix("-v0"))}
    return creator(__name__, short.get(name, name), names())


def _short(id_: str) -> str:
    """Return the short id in snake_case, for example "staircase_pet" for "NetHackStaircasePet-v0"."""
    words = id_.removesuffix("-v0").removeprefix("NetHack") or "nethack"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower()
