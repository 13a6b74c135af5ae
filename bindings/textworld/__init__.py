"""Text games of Microsoft's TextWorld (MIT), played by choosing among the commands that make sense.

* ``textworld/tw-coin_collector-level1`` to ``-level100``: walk through that many rooms to the coin.
* ``textworld/tw-treasure_hunter-level1`` to ``-level30``: find the right one of two things; from level
  11 on behind doors and in boxes, from 21 on with keys.
* ``textworld/tw-simple-dense-detailed`` and so on: a small house and a recipe; rewards dense, balanced
  or sparse, the goal told detailed, brief or none.
* ``textworld/file`` is the game of the option ``path``: a ``.z8`` that TextWorld made, its ``.json``
  beside it.

What the agent sees, does and gets:

* Observation: a Dict of int32. ``text`` ``(max_words,)``: what the game said; with ``look_around`` then the
  room, and what one carries. ``commands`` ``(max_commands, 8)``: the words of each command that makes sense now; rows
  of zeros are no commands. A word is a number from 1 to 2,047 (its CRC-32, so no list of words is
  needed, and few words share a number), 0 is none.
* Action: Discrete(max_commands): the command in that row. A row of zeros looks around, which changes
  nothing. Where there are too many commands, those that only look at something are left out first.
* Reward: points of the game. Terminal: won or lost. Truncation: after ``max_steps``.
* Infos at the end: ``won``; ``perf`` is the share of the points that there are.

The options and their defaults are those of ``game.TextGame``. The network ``TextPolicy`` reads the words
and chooses among the commands.

A game is made by TextWorld's generator from ``game_seed`` and compiled when it is first played (a few
seconds), and kept in ``~/.cache/pufferlib/textworld`` (``$XDG_CACHE_HOME`` instead of ``~/.cache`` where
that is set). Play itself has no chance: the seed of the batch decides nothing.

Source: Cote et al. 2018, https://arxiv.org/abs/1806.11532.
"""

import itertools
from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The games, sorted."""
    coins = (f"tw-coin_collector-level{level}" for level in range(1, 101))
    treasures = (f"tw-treasure_hunter-level{level}" for level in range(1, 31))
    rewards, goals = ("balanced", "dense", "sparse"), ("brief", "detailed", "none")
    simple = (f"tw-simple-{reward}-{goal}" for reward, goal in itertools.product(rewards, goals))
    return tuple(sorted(("file", *coins, *treasures, *simple)))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that starts the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names(), options_of=("TextGame",))
