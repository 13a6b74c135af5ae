"""MicroRTS, a small real-time strategy game in Java (GPL-3.0), as ``microrts/<map>``.

Maps are ``basesWorkers8x8``, ``basesWorkers16x16`` and the others of gym-microrts (MIT), except the large ones of
BroodWar. A step advances ``num_games`` games, with one agent each. They all run in one Java virtual machine per
process. Needs a Java runtime: Debian's openjdk-17-jre-headless.

* Observation: uint8 ``(height, width, 105)``, all 0 or 1. For each cell, the first 27 planes one-hot encode its health,
  resources, owner, unit and the unit's current action. The last 78 are the action mask of the unit there, all zeros if
  the agent has no idle unit in the cell.
* Action: MultiDiscrete, ``[6, 4, 4, 4, 4, 7, 49]`` for every cell: the action type (nothing, move, harvest, return,
  produce, attack), the direction of each of the first four, the unit to produce, and the cell to attack. Actions of
  cells without a mask are ignored. An illegal action counts as the first legal one.
* Reward: the weighted sum of winning (1, -1), resources gathered, workers, buildings and soldiers produced, and
  attacks, with the weights of Huang et al. (``reward_weights``).
* Terminal: one side has won. Truncation: ``max_steps``.

Options:

* ``num_games``: number of games per step.
* ``opponents``: names of gym-microrts' scripted players (``coacAI``, ``workerRushAI``, ``randomBiasedAI``, ...),
  assigned to the games in turn.
* ``max_steps``, ``partial_obs`` (units only see within their sight radius), ``reward_weights``.
* ``render_mode``: None, or "rgb_array" for the first game: own units blue, the opponent's red, resources green.

Infos at the end of a game: ``score`` (1 won, -1 lost, 0 otherwise), ``won``, ``episode_return`` and
``episode_length``.

Implementation: an adaptor communicates with the Java side directly, so that the old Python dependencies of gym-microrts
are not needed. The virtual machine leaves signals to Python and writes no files. Java cannot be started twice, so it
runs until the process exits. It does not survive a fork. Seeds also cover the opponents. For ``coacAI``, one class is
loaded with another random generator, because its own is seeded by the clock. Only ``naiveMCTSAI`` is not reproducible,
because its computing time depends on the clock.

Sources: Ontanon, "The Combinatorial Multi-Armed Bandit Problem and its Application to Real-Time Strategy
Games" (2013). Huang et al., "Gym-µRTS" (2021), https://doi.org/10.48550/arXiv.2105.13807.
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
    """Return the names of the maps, sorted."""
    return tuple(_MAPS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes games on the map ``name``.

    Raises:
        UnknownNameError: No map has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), "env:MicrortsGames")
