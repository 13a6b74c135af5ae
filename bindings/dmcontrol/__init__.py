"""The DeepMind Control Suite (dm_control, Apache-2.0) on MuJoCo, as ``dmcontrol/<domain>-<task>``.

* Observation: float32 ``(n,)``, all that the task shows, one after the other, unbounded. With
  ``pixels``: uint8 ``(3, size, size)``.
* Action: Box in [-1, 1] for nearly all: the strength of each motor.
* Reward: 0 to 1 in each step, so that a whole episode is worth at most 1,000. (``lqr`` differs.)
* Terminal: never, but for ``lqr``. Truncation: after 1,000 steps.

Options:

* ``flat``: False shows the arrays of the task by their names, float64 as dm_control has them.
* ``time_limit``: False leaves episodes without an end in time.
* ``pixels``: Show the picture of the first camera instead of numbers.
* ``size``: Height and width of that picture.
* ``render_mode``: None or "rgb_array".

``lqr`` has no end of its own in time and actions without bounds; ``quadruped-escape`` draws its
terrain, so it needs OpenGL even without pictures.

Pictures are drawn without a screen by EGL (Debian package libegl1) or OSMesa (libosmesa6). Where
neither is, simulation works and pictures raise a sentence that says so. ``MUJOCO_GL`` chooses.

Fixed here: dm_control tries to open a window when it is imported, and warns where there is none; it
draws its chance from a seed that is given when a task is loaded, and here every ``reset(seed=...)``
decides anew. MuJoCo must be older than 4, with which dm_control 1.0.50 fails.

Source: Tassa et al. 2018, https://arxiv.org/abs/1801.00690.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

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


def names() -> tuple[str, ...]:
    """The tasks, sorted."""
    return tuple(_TASKS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that loads the task ``name``.

    Raises:
        UnknownNameError: No task has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names())
