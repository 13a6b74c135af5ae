"""The DeepMind Control Suite (dm_control, Apache-2.0) on MuJoCo, as ``dmcontrol/<domain>-<task>``.

* Observation: float32 ``(n,)``, all observations of the task concatenated, unbounded. With ``pixels``: uint8
  ``(3, size, size)``.
* Action: Box in [-1, 1] for nearly all tasks: the strength of each motor.
* Reward: 0 to 1 in each step, so at most 1,000 per episode. (``lqr`` differs.)
* Terminal: never, except in ``lqr``. Truncation: after 1,000 steps.

Options:

* ``flat``: if False, observations are the arrays of the task by name, in float64 as in dm_control.
* ``time_limit``: if False, episodes have no time limit.
* ``pixels``: whether observations are images of the first camera instead of numbers.
* ``size``: height and width of these images.
* ``native``: training, evaluations and batches of ``pufferlib.make`` step ball_in_cup, cartpole (balance, swingup),
  cheetah, finger-spin, reacher and walker in C, in threads, with the same results. With False they step dm_control,
  and so do the other tasks, ``pixels`` and ``render_mode``.
* ``render_mode``: None or "rgb_array".

``lqr`` has no time limit, and its actions are unbounded. ``quadruped-escape`` draws its terrain, so it needs
OpenGL even without images.

Images are drawn off-screen by EGL (Debian package libegl1) or OSMesa (libosmesa6). If neither is installed,
simulation works, and images raise an error that explains this. Set ``MUJOCO_GL`` to choose one.

Differences from the package: dm_control tries to open a window on import, and warns if there is no display.
Here it does not. dm_control takes a seed only when a task is loaded. Here every ``reset(seed=...)`` reseeds it.
MuJoCo must be older than version 4, which dm_control 1.0.50 does not support.

Source: Tassa et al. 2018, https://arxiv.org/abs/1801.00690.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pufferlib.registry.in_c import Twin
from pufferlib.robots.find import find_robot

from .._shared.creator import creator

__all__ = ["env_creator", "names", "twin"]

_TASKS = """
acrobot-swingup acrobot-swingup_sparse ball_in_cup-catch cartpole-balance cartpole-balance_sparse cartpole-swingup
cartpole-swingup_sparse cartpole-three_poles cartpole-two_poles cheetah-run dog-fetch dog-run dog-stand dog-trot
dog-walk finger-spin finger-turn_easy finger-turn_hard fish-swim fish-upright hopper-hop hopper-stand
humanoid-run humanoid-run_pure_state humanoid-stand humanoid-walk humanoid_CMU-run humanoid_CMU-stand
humanoid_CMU-walk lqr-lqr_2_1 lqr-lqr_6_2 manipulator-bring_ball manipulator-bring_peg manipulator-insert_ball
manipulator-insert_peg pendulum-swingup point_mass-easy point_mass-hard quadruped-escape quadruped-fetch
quadruped-run quadruped-walk reacher-easy reacher-hard stacker-stack_2 stacker-stack_4 swimmer-swimmer15
swimmer-swimmer6 walker-run walker-stand walker-walk
"""

_IN_C = """
ball_in_cup-catch cartpole-balance cartpole-swingup cheetah-run finger-spin reacher-easy reacher-hard walker-run
walker-stand walker-walk
"""


def names() -> tuple[str, ...]:
    """Return the names of the tasks, sorted."""
    return tuple(_TASKS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the task ``name``.

    Raises:
        UnknownNameError: No task has this name. The error suggests similar names.
    """
    return creator(__name__, name, names())


def twin(name: str, options: Mapping[str, Any]) -> Twin | None:
    """Return the task that is stepped in C with the same results, or None if there is none with these options."""
    if name not in _IN_C.split() or options.get("pixels") or options.get("render_mode"):  # C does not draw
        return None
    return find_robot(f"dmcontrol/{name}", options, functools.partial(env_creator(name), **options))
