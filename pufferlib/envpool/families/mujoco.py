"""MuJoCo: Gymnasium's robots, under its ids."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.tasks import PoolTask
from pufferlib.errors import APIUsageError

__all__ = ["tasks"]

FAMILY = "mujoco"
VERSIONS = (4, 5)
NUMBER = Box(-np.inf, np.inf, (), np.float64)

_PLACE = ("x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity")


class Robot(NamedTuple):
    """A robot, in all versions.

    Attributes:
        name: Without the version.
        max_episode_steps: Steps after which an episode is cut off.
        reward_threshold: Return from which it counts as solved; None where nobody has named one.
        infos: Names of its infos, one number each.
    """

    name: str
    max_episode_steps: int
    reward_threshold: float | None
    infos: tuple[str, ...] = ()


ROBOTS = (
    Robot("Ant", 1000, 6000.0, ("reward_forward", "reward_ctrl", "reward_contact", "reward_survive", *_PLACE)),
    Robot("HalfCheetah", 1000, 4800.0, ("reward_run", "reward_ctrl", "x_position", "x_velocity")),
    Robot("Hopper", 1000, 6000.0, ("x_position", "x_velocity")),
    Robot("Humanoid", 1000, None, ("reward_linvel", "reward_quadctrl", "reward_alive", "reward_impact", *_PLACE)),
    Robot("HumanoidStandup", 1000, None, ("reward_linup", "reward_quadctrl", "reward_alive", "reward_impact")),
    Robot("InvertedDoublePendulum", 1000, 9100.0),
    Robot("InvertedPendulum", 1000, 950.0),
    Robot("Pusher", 100, 0.0, ("reward_dist", "reward_ctrl", "reward_near")),
    Robot("Reacher", 50, -3.75, ("reward_dist", "reward_ctrl")),
    Robot("Swimmer", 1000, 360.0, ("reward_fwd", "reward_ctrl", *_PLACE)),
    Robot("Walker2d", 1000, None, ("x_position", "x_velocity")),
)

#: Names that these infos have in version 5, where they differ.
SOURCES = {
    "reward_alive": "reward_survive",
    "reward_fwd": "reward_forward",
    "reward_impact": "reward_contact",
    "reward_linvel": "reward_forward",
    "reward_quadctrl": "reward_ctrl",
    "reward_run": "reward_forward",
}


def tasks() -> list[PoolTask]:
    """Return a task for each robot and version."""
    return [_task(robot, version) for robot in ROBOTS for version in VERSIONS]


def _task(robot: Robot, version: int) -> PoolTask:
    from pufferlib.envpool.workers import WorkerBackend

    task_id = f"{robot.name}-v{version}"
    infos = dict.fromkeys(robot.infos, NUMBER)
    return PoolTask(
        task_id,
        FAMILY,
        WorkerBackend(f"mujoco/{task_id}", _settings, infos, SOURCES, draw_robot, is_limited=True, declared_only=True),
        robot.max_episode_steps,
        robot.reward_threshold,
        any_keyword=True,
        extra="mujoco",
    )


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of a robot: its own, and the size of its pictures."""
    from pufferlib.envpool.workers.backend import own_keywords

    sizes = {"width": config["render_width"], "height": config["render_height"]}
    drawn = {name: size for name, size in sizes.items() if size is not None and config["render_mode"] is not None}
    return {**own_keywords(config), **drawn}


def draw_robot(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Draw a robot with one of its cameras, in the size that it was made with; -1 is the one that follows it.

    Raises:
        APIUsageError: It has no such camera.
    """
    robot = env.env.unwrapped
    if camera_id < 0:
        return env.env.render()
    if camera_id >= robot.model.ncam:
        raise APIUsageError(
            f"envpool.render: camera_id must be from -1 to {robot.model.ncam - 1}, got {camera_id}; -1 follows it"
        )
    renderer = robot.mujoco_renderer
    usual, renderer.camera_id = renderer.camera_id, camera_id
    try:
        return env.env.render()
    finally:
        renderer.camera_id = usual
