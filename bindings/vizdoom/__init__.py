"""Doom in the first person: the scenarios of ViZDoom and the free game Freedoom (``vizdoom/VizdoomBasic-v1``).

Names are the ids of ViZDoom. You can omit "Vizdoom" and the version: ``vizdoom/Basic`` is short for
``vizdoom/VizdoomBasic-v1``. ``-MultiBinary`` allows several buttons at once. The maps of Freedoom have five skill
levels, S1 (easiest) to S5. Maps of Doom itself, which need files that are not free, and the two scenarios about sound
and text are left out.

* Observation: a Dict. ``screen``: uint8 ``(3 * stack, height, width)``, by default ``(3, 72, 128)``, the RGB channels
  of each image, oldest image first. ``gamevariables``, if the scenario has any (health, ammunition): float32, divided
  by 100.
* Action: Discrete, no button or one. MultiBinary with ``-MultiBinary`` and in Freedoom. If buttons have an amount
  (Deathmatch), a MultiDiscrete: the buttons, then -10, 0 or 10 for each amount.
* Reward: the scenario's reward, summed over the frames of a step.
* Terminal: the scenario ends (dead, done). Truncation: its time is up.

See ``env.Doom`` for the options. ``env_creator("scenario")`` makes a scenario from any files, with the buttons, rewards
and images of EnvPool. See ``scenario.Scenario`` for its options.

Differences from the package:

* The engine, a separate process, writes ``_vizdoom.ini`` and ``_vizdoom`` into its working folder. Here this is a
  temporary folder, which ``close`` removes.
* The engine would keep running after this process is killed. Here it exits too, although its shared memory remains
  (``/dev/shm/ViZDoom*``, 10 MB).
* The last observation of an episode is the last image. ViZDoom returns zeros, with which the value of a truncated
  episode could not be estimated.
* An episode whose time is up is truncated, but not also terminated.

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
    """Return the scenarios, with one button or several, and the maps of Freedoom, sorted."""
    scenarios = (f"Vizdoom{name}{buttons}-v1" for name in _SCENARIOS.split() for buttons in ("", "-MultiBinary"))
    maps = (f"Vizdoom{map_}-S{skill}-v0" for map_ in _MAPS for skill in _SKILLS)
    return tuple(sorted((*scenarios, *maps)))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the scenario ``name``.

    Raises:
        UnknownNameError: No scenario has this name. The error suggests similar names.
    """
    if name == "scenario":  # a scenario from files, see scenario.py
        return creator(__name__, name, (name,), adaptor="scenario:make_env", options_of=("Scenario",))
    known = names()
    full = next((id_ for id_ in (f"Vizdoom{name}-v1", f"Vizdoom{name}-v0") if id_ in known), name)
    return creator(__name__, full, known, options_of=("Doom",))
