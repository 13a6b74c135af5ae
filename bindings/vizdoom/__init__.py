"""Doom, seen from the front: the scenarios of ViZDoom and the free game Freedoom (``vizdoom/VizdoomBasic-v1``).

Names are the ids of ViZDoom. ``vizdoom/Basic`` is short for ``vizdoom/VizdoomBasic-v1``; so it goes
for all: without "Vizdoom" and the version. ``-MultiBinary`` allows several buttons at once. The maps of
Freedoom come in five skills, S1 (easiest) to S5. Those of Doom itself need files that are not free
and are left out, and so are the two scenarios about sound and text.

* Observation: a Dict. ``screen``: uint8 ``(3 * stack, height, width)``, by default ``(3, 72, 128)``,
  red, green and blue of each picture, oldest picture first. ``gamevariables``, where the scenario has
  any (health, ammunition): float32, divided by 100.
* Action: Discrete, no button or one; MultiBinary with ``-MultiBinary`` and in Freedoom. Where
  buttons have an amount (Deathmatch), a MultiDiscrete: the buttons, then for each amount -10, 0 or 10.
* Reward: that of the scenario, summed over the frames of a step.
* Terminal: the scenario ends (dead, done). Truncation: its time is up.

The options and their defaults are those of ``env.Doom``. ``env_creator("scenario")`` makes a scenario of any files,
with the buttons, rewards and pictures that EnvPool has; its options are those of ``scenario.Scenario``.

Fixed here: the engine, a process of its own, writes ``_vizdoom.ini`` and ``_vizdoom`` into the folder
where it starts; it starts in a temporary folder, which ``close`` removes. It would play on when our process is
killed; here it ends too, though its shared memory stays (``/dev/shm/ViZDoom*``, 10 MB). The last observation of an
episode is the last picture seen, where ViZDoom gives zeros, from which a cut-off episode could not be
continued in the value function. An episode whose time is up is truncated and not terminated too.

Source: Wydmuch et al. 2018, https://arxiv.org/abs/1809.03470.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_SCENARIOS = """
Basic DeadlyCorridor Deathmatch DefendCenter DefendLine HealthGathering HealthGatheringSupreme MyWayHome
PredictPosition TakeCover
"""
_MAPS = (
    *(f"Freedoom1E{episode}M{map_}" for episode in range(1, 5) for map_ in range(1, 10)),
    *(f"Freedoom2MAP{map_:02}" for map_ in range(1, 33)),
)
_SKILLS = range(1, 6)


def names() -> tuple[str, ...]:
    """The scenarios, with one button or several, and the maps of Freedoom, sorted."""
    scenarios = (f"Vizdoom{name}{buttons}-v1" for name in _SCENARIOS.split() for buttons in ("", "-MultiBinary"))
    maps = (f"Vizdoom{map_}-S{skill}-v0" for map_ in _MAPS for skill in _SKILLS)
    return tuple(sorted((*scenarios, *maps)))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that starts the scenario ``name``.

    Raises:
        UnknownNameError: No scenario has this name; the nearest ones are suggested.
    """
    if name == "scenario":  # by its files: see scenario.py
        return creator(__name__, name, (name,), adaptor="scenario:make_env", options_of=("Scenario",))
    known = names()
    full = next((id_ for id_ in (f"Vizdoom{name}-v1", f"Vizdoom{name}-v0") if id_ in known), name)
    return creator(__name__, full, known, options_of=("Doom",))
