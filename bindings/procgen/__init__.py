"""The 16 games of Procgen, as ``procgen/<game>``: platform games, mazes and shooters with generated levels.

They test whether an agent has learned the game or only the levels. Install procgen-mirror (MIT) with
``puffer install procgen``. It also works with NumPy 2, although its metadata does not allow it.

* Observation: uint8 ``(64, 64, 3)``, RGB.
* Action: Discrete(15): 8 directions, none (4), and 6 buttons, of which most games use few.
* Reward: the game's points. For example, a solved level of coinrun gives 10.
* Terminal: the level is over: solved, lost, or out of time (1,000 steps in most games). Truncation: never.
* Infos, one for each episode that ended: ``episode_return``, ``score`` (the same), ``episode_length``, and
  ``completed`` (1 if the level was completed).

See ``ProcgenGames`` for the options. The environment is a batch of ``num_envs`` games with one agent each, which write
directly into the arrays of the vector environment.

Differences from other environments:

* The library shows the next level immediately and keeps no last image. Therefore ``autoreset`` is "same_step", and
  ``final_observations`` is not written. The library does not distinguish between running out of time and losing. As in
  the papers, every end is a terminal, so the last image is not needed.
* ``reset`` without a seed abandons the current levels and starts the next ones.
* The first game in a process loads the images of all games, which takes some seconds. Later ones take a millisecond.
* Levels repeat if ``num_levels`` is small. ``num_levels=0`` means all levels.

Seeds: game i plays like a single game with the seed ``env_seed(seed, i)``, regardless of the number of games or
threads. The library accepts a seed only when it creates games, so ``reset(seed)`` creates a new game for each and
copies its state.

Networks: ``ResNet`` as in the paper (train it on a GPU), or ``--policy.name ProcgenCNN`` for a CPU.

Sources: Cobbe et al. 2020, https://arxiv.org/abs/1912.01588 (the games, and the settings of ``train.toml``).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

TAKES_NUM_ENVS = True  # one environment is a batch

# Listed here so that names() imports nothing.
_GAMES = """
bigfish bossfight caveflyer chaser climber coinrun dodgeball fruitbot heist jumper leaper maze miner ninja plunder
starpilot
"""


def names() -> tuple[str, ...]:
    """Return the names of the games, sorted."""
    return tuple(_GAMES.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes games of ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), adaptor="env:ProcgenGames")
