"""Gymnasium's MuJoCo robots, as ``mujoco/HalfCheetah-v5``; the version may be left out: ``mujoco/HalfCheetah``.

Needs mujoco (Apache-2.0), which ``puffer install mujoco`` brings.

* Observation: float64, from ``(4,)`` (InvertedPendulum) to ``(348,)`` (Humanoid): joints, speeds, forces.
* Action: a Box of torques, from ``(1,)`` to ``(17,)``.
* Reward: mostly progress and being upright, less the cost of the torques; the page of each robot says it.
* Terminal: the robot is "unhealthy" (fallen); never for HalfCheetah, Pusher, Reacher, Swimmer, HumanoidStandup.
* Truncation: after 1,000 steps (Reacher 50, Pusher 100).

Options: those of Gymnasium's class, such as ``frame_skip``, ``reset_noise_scale``, ``ctrl_cost_weight``,
``terminate_when_unhealthy``, ``exclude_current_positions_from_observation``, ``xml_file``, ``width``, ``height``,
``camera_name``, and

* ``max_episode_steps``: the length at which an episode is cut off.
* ``clip_action``: take any real action and clip it to the Box, for policies without bounds.
* ``render_mode``: None or "rgb_array". Pictures are drawn without a window, by EGL or else by OSMesa; the
  environment variable MUJOCO_GL ("egl", "osmesa", "glfw") chooses. One of their libraries must be there.

Differences from the package:

* MuJoCo writes its warnings into a file MUJOCO_LOG.TXT in the working folder; here they go to the
  logger ``pufferlib.bindings.mujoco``, without those about attributes of the robots' files.
* Several environments may draw in turns: in the package, each draws where the last one made its picture.
* What drawing took from the system is given back at exit even if ``close`` was forgotten.

Seeds decide everything. mujoco is held below 4 because dm_control needs it so.

Sources: Todorov, Erez, Tassa 2012, https://doi.org/10.1109/IROS.2012.6386109 (MuJoCo); Towers et al. 2024,
https://arxiv.org/abs/2407.17032 (the robots, version 5).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator
from .._shared.gymnasium import full_id

__all__ = ["env_creator", "names"]


def names() -> tuple[str, ...]:
    """The robots, by their ids."""
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
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the robot ``name``.

    The robots of version 4 are made too, though ``names`` leaves them out.

    Raises:
        UnknownNameError: No robot has this name; the nearest ones are suggested.
    """
    older = (robot.replace("-v5", "-v4") for robot in names())
    return creator(__name__, full_id(name, names()), (*names(), *older))
