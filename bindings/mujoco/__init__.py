"""Gymnasium's MuJoCo robots, as ``mujoco/HalfCheetah-v5``, or ``mujoco/HalfCheetah`` without the version.

Install mujoco (Apache-2.0) with ``puffer install mujoco``.

* Observation: float64, from ``(4,)`` (InvertedPendulum) to ``(348,)`` (Humanoid): joints, speeds, forces.
* Action: a Box of torques, from ``(1,)`` to ``(17,)``.
* Reward: mostly progress and staying upright, minus the cost of the torques. See Gymnasium's page of each robot.
* Terminal: the robot is "unhealthy" (fallen). Never for HalfCheetah, Pusher, Reacher, Swimmer, HumanoidStandup.
* Truncation: after 1,000 steps (Reacher 50, Pusher 100).

Options: the arguments of Gymnasium's class, such as ``frame_skip``, ``reset_noise_scale``, ``ctrl_cost_weight``,
``terminate_when_unhealthy``, ``exclude_current_positions_from_observation``, ``xml_file``, ``width``, ``height``,
``camera_name``, and:

* ``max_episode_steps``: length at which an episode is truncated.
* ``clip_action``: accept any real action and clip it to the Box, for policies without bounds.
* ``native``: training steps the robots in C, in threads, with the same results. With False it steps Gymnasium's
  classes. Batches of ``pufferlib.make`` run in C with True only. Robots of version 4, and environments with a
  ``render_mode``, always run Gymnasium's classes.
* ``render_mode``: None or "rgb_array". Images are drawn off-screen, by EGL if available, else by OSMesa. One of these
  libraries must be installed. Set the environment variable MUJOCO_GL ("egl", "osmesa", "glfw") to choose one.

Differences from the package:

* MuJoCo writes its warnings to a file MUJOCO_LOG.TXT in the working folder. Here they go to the logger
  ``pufferlib.bindings.mujoco``, without those about attributes in the robots' files.
* Several environments can render alternately. In the package, each would draw into the context of the last one.
* Rendering resources are released at exit even without ``close``.

The same seed always gives the same episodes. mujoco is pinned below version 4 because of dm_control.

Sources: Todorov, Erez, Tassa 2012, https://doi.org/10.1109/IROS.2012.6386109 (MuJoCo). Towers et al. 2024,
https://arxiv.org/abs/2407.17032 (the robots, version 5).
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pufferlib.registry.in_c import Twin
from pufferlib.robots.find import find_robot

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["drawn_off_screen", "env_creator", "log_warnings", "names", "twin"]


def names() -> tuple[str, ...]:
    """Return the ids of the robots."""
    return (
        "Ant-v5",
        "HalfCheetah-v5",
        "Hopper-v5",
        "Humanoid-v5",
        "HumanoidStandup-v5",
        "InvertedDoublePendulum-v5",
        "InvertedPendulum-v5",
        "Pusher-v5",
        "Reacher-v5",
        "Swimmer-v5",
        "Walker2d-v5",
    )


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the robot ``name``.

    Robots of version 4 are also available, although ``names`` does not list them.

    Raises:
        UnknownNameError: No robot has this name. The error suggests similar names.
    """
    older = (robot.replace("-v5", "-v4") for robot in names())
    return creator(__name__, full_id(name, names()), (*names(), *older))


def log_warnings() -> None:
    """Log MuJoCo's warnings from now on, which it otherwise prints and writes to a file in the working folder.

    Raises:
        ImportError: MuJoCo cannot be imported.
    """
    from . import env as _env  # noqa: F401 - sets the handler


def drawn_off_screen(where: str, env: Any) -> Any:
    """Return a robot of Gymnasium with a ``render_mode`` that needs no display.

    Args:
        where: Name for error messages.
        env: Robot.

    Raises:
        BindingMissing: OpenGL cannot draw.
    """
    from .env import OffscreenRender

    return OffscreenRender(where, env)


def twin(name: str, options: Mapping[str, Any]) -> Twin | None:
    """Return the robot that is stepped in C with the same results, or None if there is none with these options."""
    robot = full_id(name, names())
    if robot not in names():
        return None
    return find_robot(f"mujoco/{robot}", options, functools.partial(env_creator(robot), **options))
