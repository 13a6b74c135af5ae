"""NetHack of the NetHack Learning Environment, as ``nethack/<id>``, such as ``nethack/NetHackScore-v0``.

A dungeon that no level of which was drawn by hand, hundreds of monsters and objects with their own rules,
one life. ``puffer install nethack`` brings nle (NetHack General Public License). Ids work
without ``-v0``, and without ``NetHack`` too, in snake_case: ``nethack/score``, ``nethack/staircase_pet``.

* Observation: a Dict of what ``observation_keys`` names, by default ``glyphs`` (int16 ``(21, 79)``, what is seen
  where, 0 to 5976), ``blstats`` (int64 ``(27,)``, the numbers of the bottom line; the first two are the hero's
  column and row) and ``message`` (uint8 ``(256,)``, characters). The other keys are those of nle: ``chars``,
  ``colors``, ``specials``, ``inv_glyphs``, ``inv_strs``, ``inv_letters``, ``inv_oclasses``,
  ``screen_descriptions``, ``tty_chars``, ``tty_colors``, ``tty_cursor``, ``misc``. Each costs a little time.
* Action: Discrete, keys of NetHack: 23 in the tasks, 86 in ``NetHack-v0``, 121 in ``NetHackChallenge-v0``.
* Reward: by task, minus 0.01 in each step in which no time passes in the game (not in ``NetHack-v0`` and the
  Challenge): the score gained (NetHack, Score, Challenge), gold gained (Gold), food eaten (Eat), squares seen
  (Scout), or 1 for reaching the stairs down (Staircase), also with the pet beside (StaircasePet), or the Oracle.
* Terminal: the hero died or left, or the task is done. Truncation: ``max_episode_steps``.
* Infos, when an episode ends: ``points`` (the game's score), ``depth``, ``level`` (of experience), ``turns``,
  ``ascended``, ``success`` in tasks that have a goal, and those of ``EpisodeStats``.

The options and their defaults are those of ``make_env``.

Differences from the package, and why:

* Seeds: ``reset(seed)`` of nle does not seed NetHack. Here every episode's seeds of NetHack come from the stream
  that ``reset(seed)`` starts, its own habit of reseeding itself is off, and the moon, which at midnight and on
  Friday the 13th changes the rules, is decided by the seed instead of the clock.
* The Challenge forbids to set seeds, so that nobody plays a game twice in its contest. This one is seeded like the
  others: for a run that counts there, use nle itself. Its time limit of a million steps is 50,000 here, and the 10,000
  steps without progress that end a game are steps; nle counts each twice.
* nle calls a game that its time limit cut off terminated as well, and shows the screens of quitting it. Here
  it is truncated, and shows the last real moment.
* nle copies all observations in every step, to compare two numbers. Here only these are copied.
* Arrays are the same in every step and overwritten by the next: emulation copies them at once.
* nle writes recordings if it is asked to; that option is not offered. Its folder in /tmp goes with ``close``.

Several games in one process are fine: each loads a copy of the game's library.

``policy.py`` has ``GlyphNet``, an embedding of the glyphs under two small convolutional networks.

Sources: Küttler et al. 2020, https://arxiv.org/abs/2006.13760 (the environment and its tasks); Hambro et al. 2022,
https://arxiv.org/abs/2203.11889 (the Challenge).
"""

import re
from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Written down so that listing them imports nothing.
_TASKS = (
    *("NetHack", "NetHackChallenge", "NetHackEat", "NetHackGold", "NetHackOracle", "NetHackScore"),
    *("NetHackScout", "NetHackStaircase", "NetHackStaircasePet"),
)


def names() -> tuple[str, ...]:
    """The official ids, sorted."""
    return tuple(sorted(f"{task}-v0" for task in _TASKS))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the task ``name``.

    Raises:
        UnknownNameError: No task has this name; the nearest ones are suggested.
    """
    short = {word: id_ for id_ in names() for word in (_short(id_), id_.removesuffix("-v0"))}
    return creator(__name__, short.get(name, name), names())


def _short(id_: str) -> str:
    """The id without what all ids have, in snake_case: "NetHackStaircasePet-v0" as "staircase_pet"."""
    words = id_.removesuffix("-v0").removeprefix("NetHack") or "nethack"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower()
