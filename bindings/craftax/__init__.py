"""Craftax, an open world of survival and crafting on JAX, as ``craftax/<id>``: the whole one and "Classic".

Needs JAX, in a Python environment of its own: ``puffer install craftax``, or the image ``tank-full``.
The games run there, ``num_envs`` of them in one batch on the CPU or GPU that JAX finds, and look like
any native environment here. Compiling takes from ten seconds to a minute, once per machine; the result
is kept in the user's cache.

* Observation: "Symbolic": float32 ``(8268,)``, classic ``(1345,)``: the map in view, one of each kind
  per cell, then the inventory. "Pixels": uint8 ``(130, 110, 3)``, classic ``(63, 63, 3)``.
* Action: Discrete, 43, classic 17.
* Reward: for achievements met for the first time, more for deeper ones; 0.1 per point of health won or lost.
* Terminal: death, lava (classic), or the last boss beaten (whole). Truncation: ``max_timesteps``
  (100,000, classic 10,000).
* Infos: ``achievements/<name>``, 1.0 for those met in the episode.

Options:

* ``num_envs``: games in the batch, 16.
* ``max_timesteps``: length at which an episode is cut off; None is the game's own.
* ``timeout_s``: longest that the construction, a reset or a step may take, compilation included; 600.
* ``render_mode``: None, or "rgb_array", which shows the first game.

Differences from the package: only games that ended are reset, where Craftax makes a new world for every game
in every step; time limits are truncations, not terminals; each game has its own stream of random numbers, so
that its course depends on neither the others nor their number.

Source: Matthews et al. 2024, https://arxiv.org/abs/2402.16801
"""

from collections.abc import Callable
from typing import Any

from .._shared.isolated import isolated_creator
from .._shared.jax import VARIABLES
from .._shared.options import check_counts

__all__ = ["env_creator", "names"]

TAKES_NUM_ENVS = True  # one environment is a batch


def names() -> tuple[str, ...]:
    """The worlds, by their official ids."""
    return ("Craftax-Classic-Pixels-v1", "Craftax-Classic-Symbolic-v1", "Craftax-Pixels-v1", "Craftax-Symbolic-v1")


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes a batch of the world ``name``."""
    return isolated_creator(__name__, name, names(), _arguments, variables=VARIABLES)


def _arguments(where: str, *, num_envs: int = 16, max_timesteps: int | None = None) -> dict[str, Any]:
    check_counts(where, num_envs=num_envs)
    if max_timesteps is not None:
        check_counts(where, max_timesteps=max_timesteps)
        max_timesteps = int(max_timesteps)
    return {"num_envs": int(num_envs), "max_timesteps": max_timesteps}
