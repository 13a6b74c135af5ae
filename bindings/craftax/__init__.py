"""Craftax, an open-world survival and crafting game on JAX, as ``craftax/<id>``, in its full and "Classic" versions.

It needs JAX in an isolated Python environment: run ``puffer install craftax``, or use the image ``tank-full``.
``num_envs`` environments run there in one batch, on the CPU or GPU that JAX finds. They behave like any native
environment. Compiling takes ten seconds to a minute, once per machine. The result is cached in the user's cache
folder.

* Observation: "Symbolic": float32 ``(8268,)``, Classic ``(1345,)``: the map in view, one-hot encoded per cell, then
  the inventory. "Pixels": uint8 ``(130, 110, 3)``, Classic ``(63, 63, 3)``.
* Action: Discrete(43), Classic Discrete(17).
* Reward: for achievements unlocked for the first time, more for deeper ones, and 0.1 per point of health gained or
  lost.
* Terminal: death, lava (Classic), or victory over the last boss (full version). Truncation: ``max_timesteps``
  (100,000, Classic 10,000).
* Infos: ``achievements/<name>``, 1.0 if unlocked in the episode.

Options:

* ``num_envs``: number of environments in the batch, default 16.
* ``max_timesteps``: length at which an episode is truncated. None is the game's own limit.
* ``timeout_s``: timeout for construction, a reset or a step, including compilation, default 600.
* ``render_mode``: None, or "rgb_array", which shows the first environment.

Differences from the package:

* Only environments that ended are reset. Craftax generates a new world for every environment in every step.
* Time limits are truncations, not terminals.
* Each environment has its own random stream and does not depend on the others or their number.

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
    """Return the official ids of the worlds."""
    return ("Craftax-Classic-Pixels-v1", "Craftax-Classic-Symbolic-v1", "Craftax-Pixels-v1", "Craftax-Symbolic-v1")


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes a batch of the world ``name``."""
    return isolated_creator(__name__, name, names(), _arguments, variables=VARIABLES)


def _arguments(where: str, *, num_envs: int = 16, max_timesteps: int | None = None) -> dict[str, Any]:
    check_counts(where, num_envs=num_envs)
    if max_timesteps is not None:
        check_counts(where, max_timesteps=max_timesteps)
        max_timesteps = int(max_timesteps)
    return {"num_envs": int(num_envs), "max_timesteps": max_timesteps}
