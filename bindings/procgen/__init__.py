"""The 16 games of Procgen, as ``procgen/<game>``: platforms, mazes, shooters whose every level is generated.

They measure whether an agent has learned the game or the levels. ``puffer install procgen`` brings
procgen-mirror (MIT), which plays under numpy 2 too, whatever it says itself.

* Observation: uint8 ``(64, 64, 3)``, red green blue.
* Action: Discrete(15): 8 directions, none (4), and 6 buttons, of which most games use few.
* Reward: the game's points; a solved level of coinrun, for example, is worth 10.
* Terminal: the level is over: solved, lost, or out of time (1,000 steps in most games). Truncation: never.
* Infos, one for each episode that ended: ``episode_return``, ``score`` (the same), ``episode_length``, and
  ``completed`` (1 if the level was).

The options and their defaults are those of ``ProcgenGames``. The environment is a batch of ``num_envs`` games, one
agent each, which write straight into the arrays of the vector environment.

What differs from other environments, and why:

* The library shows the next level at once and keeps no last picture. So ``autoreset`` is "same_step", and
  ``final_observations`` is not written. It does not tell running out of time from losing either. Therefore every end is
  a terminal, as in the papers, and nothing needs the picture.
* ``reset`` without a seed leaves the levels that are played and starts the next ones.
* The first game in a process loads the pictures of all games, which takes some seconds; others take a millisecond.
* A level is played again if ``num_levels`` is small; ``num_levels=0`` means all.

Seeds: game i plays as a single game with the seed ``env_seed(seed, i)`` does, whatever the number of games or threads.
The library takes a seed only when it makes games, so ``reset(seed)`` makes one for each and takes over its state.

Networks: ``ResNet`` as in the paper (a GPU should train it), or ``--policy.name ProcgenCNN`` for a CPU.

Sources: Cobbe et al. 2020, https://arxiv.org/abs/1912.01588 (the games, and the settings of ``train.toml``).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

TAKES_NUM_ENVS = True  # one environment is a batch

# Written down so that listing them imports nothing.
_GAMES = """
bigfish bossfight caveflyer chaser climber coinrun dodgeball fruitbot heist jumper leaper maze miner ninja plunder
starpilot
"""


def names() -> tuple[str, ...]:
    """The games, sorted."""
    return tuple(_GAMES.split())


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes games of ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names(), adaptor="env:ProcgenGames")
