"""Text games of Microsoft's TextWorld (MIT), played by choosing one of the available commands.

* ``textworld/tw-coin_collector-level1`` to ``-level100``: walk through this number of rooms to the coin.
* ``textworld/tw-treasure_hunter-level1`` to ``-level30``: find the right one of two objects, from level 11 on behind
  doors and in boxes, from 21 on with keys.
* ``textworld/tw-simple-dense-detailed`` and so on: a small house and a recipe. Rewards are dense, balanced or sparse,
  and the description of the goal is detailed, brief or none.
* ``textworld/file``: the game in the option ``path``, a ``.z8`` file made by TextWorld with its ``.json`` beside it.

Environment:

* Observation: a Dict of int32. ``text`` ``(max_words,)``: the output of the game, followed by the room and the
  inventory with ``look_around``. ``commands`` ``(max_commands, 8)``: the words of each available command. Unused rows
  are zeros. A word is a number from 1 to 2,047, or 0 for none. Numbers are computed from the word's CRC-32, so no
  vocabulary is needed, and few words share a number.
* Action: Discrete(max_commands): the command in that row. A row of zeros looks around, which changes nothing. If there
  are too many commands, those that only look at something are dropped first.
* Reward: points of the game. Terminal: won or lost. Truncation: after ``max_steps``.
* Infos at the end: ``won``, and ``perf``, the share of the maximum points.

See ``env.TextGame`` for the options. The network ``TextPolicy`` reads the words and chooses a command.

TextWorld generates a game from ``game_seed`` and compiles it on first use (a few seconds). Games are cached in
``~/.cache/pufferlib/textworld`` (``$XDG_CACHE_HOME`` instead of ``~/.cache`` if it is set). Games have no randomness,
so the seed of the batch has no effect.

Source: Cote et al. 2018, https://arxiv.org/abs/1806.11532.
"""

import itertools
from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """Return the names of the games, sorted."""
    coins = (f"tw-coin_collector-level{level}" for level in range(1, 101))
    treasures = (f"tw-treasure_hunter-level{level}" for level in range(1, 31))
    rewards, goals = ("balanced", "dense", "sparse"), ("brief", "detailed", "none")
    simple = (f"tw-simple-{reward}-{goal}" for reward, goal in itertools.product(rewards, goals))
    return tuple(sorted(("file", *coins, *treasures, *simple)))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that starts the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), options_of=("TextGame",))
