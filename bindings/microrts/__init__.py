"""MicroRTS, a small real-time strategy game in Java (GPL-3.0), as ``microrts/<map>``.

``basesWorkers8x8``, ``basesWorkers16x16`` and the other maps of gym-microrts (MIT), but for the large ones of
BroodWar. A step moves ``num_games`` games, one agent each; all of them live in one Java virtual machine
per process. Needs a Java runtime: Debian's openjdk-17-jre-headless.

* Observation: uint8 ``(height, width, 105)``, all 0 or 1. Of each cell the first 27 planes tell its health,
  resources, owner, unit and what that unit is doing, each as one of several; the last 78 are the action mask
  of the unit there, zeros where the agent has none that is free.
* Action: MultiDiscrete, ``[6, 4, 4, 4, 4, 7, 49]`` for every cell: what to do (nothing, move, harvest, return,
  produce, attack), the direction of each of the first four, what to produce, where to attack. Those of
  cells that the mask leaves empty mean nothing; one that the mask forbids counts as the first it allows.
* Reward: the sum of winning (1, -1), resources gathered, workers, buildings and soldiers made and
  attacks, with the weights of Huang et al. (``reward_weights``).
* Terminal: one side has won. Truncation: ``max_steps``.

Options:

* ``num_games``: Games of a step.
* ``opponents``: Names of gym-microrts' scripted players (``coacAI``, ``workerRushAI``, ``randomBiasedAI``,
  ...), which the games take in turn.
* ``max_steps``, ``partial_obs`` (units see no farther than their sight), ``reward_weights``.
* ``render_mode``: None or "rgb_array", the first game: own units blue, the other's red, resources green.

Infos: when a game ends, ``score`` (1 won, -1 lost, 0 otherwise), ``won``, ``episode_return`` and
``episode_length``.

How it is used here: our own adaptor talks to the Java side directly, so that none of the old Python packages
that gym-microrts wants is needed. The virtual machine leaves signals to Python, writes no files and, as Java
cannot be started twice, ends with its process. It does not survive a fork. Seeds set the chance of the
opponents, also that of ``coacAI``, one of whose classes is loaded with another generator in it, because its own is
seeded by the clock. Only ``naiveMCTSAI`` never plays twice the same: it thinks as long as the clock lets it.

Sources: Ontanon, "The Combinatorial Multi-Armed Bandit Problem and its Application to Real-Time Strategy
Games" (2013); Huang et al., "Gym-µRTS" (2021), https://doi.org/10.48550/arXiv.2105.13807.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_MAPS = """
BWDistantResources32x32 DoubleGame24x24 EightBasesWorkers16x12 EightBasesWorkers16x16 FourBasesWorkers12x12
FourBasesWorkers8x8 NoWhereToRun9x8 OneBaseWorker12x12 OneBaseWorker8x8 SixBasesWorkers12x12 ThreeBasesWorkers12x12
ThreeBasesWorkers8x8 TwoBasesBarracks16x16 TwoBasesWorkers12x12 TwoBasesWorkers8x8 base4x4 base4x5
baseOneWorkerMaxResources4x4 baseOneWorkerMaxResources8x8 baseTwoWorkers4x4 baseTwoWorkers8x8
baseTwoWorkersMaxResources4x4 baseTwoWorkersMaxResources6x6 baseTwoWorkersMaxResources8x8 bases8x8
basesTwoWorkers10x10 basesWorkers10x10 basesWorkers12x12 basesWorkers12x12A basesWorkers12x12B basesWorkers12x12C
basesWorkers12x12D basesWorkers12x12E basesWorkers12x12F basesWorkers12x12G basesWorkers12x12H basesWorkers12x12I
basesWorkers12x12J basesWorkers12x12K basesWorkers12x12L basesWorkers16x16 basesWorkers16x16A basesWorkers16x16B
basesWorkers16x16C basesWorkers16x16D basesWorkers16x16E basesWorkers16x16F basesWorkers16x16G basesWorkers16x16H
basesWorkers16x16I basesWorkers16x16J basesWorkers16x16K basesWorkers16x16L basesWorkers16x16R20
basesWorkers16x16noResources basesWorkers24x24 basesWorkers24x24A basesWorkers24x24B basesWorkers24x24C
basesWorkers24x24D basesWorkers24x24E basesWorkers24x24F basesWorkers24x24G basesWorkers24x24H basesWorkers24x24I
basesWorkers24x24J basesWorkers24x24K basesWorkers24x24L basesWorkers24x24M basesWorkers24x24R20 basesWorkers4x4
basesWorkers8x8 basesWorkers8x8A basesWorkers8x8B basesWorkers8x8C basesWorkers8x8D basesWorkers8x8E
basesWorkers8x8F basesWorkers8x8G basesWorkers8x8H basesWorkers8x8I basesWorkers8x8J basesWorkers8x8K
basesWorkers8x8L basesWorkers8x8Obstacle basesWorkersBarracks8x8 chambers32x32 complexBasesWorkers12x12 itsNotSafe
letMeOut melee12x12Mixed12 melee14x12Mixed18 melee16x16Mixed12 melee16x16Mixed8 melee4x4Mixed2 melee4x4light2
melee8x8Mixed4 melee8x8Mixed6 melee8x8light4
"""


def names() -> tuple[str, ...]:
    """The maps, sorted."""
    return tuple(_MAPS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that starts games on the map ``name``.

    Raises:
        UnknownNameError: No map has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names(), "env:MicrortsGames")
