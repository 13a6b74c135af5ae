"""Tasks of Gymnasium: Box2D, MuJoCo and toy text, under Gymnasium's ids."""

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from pufferlib.envpool.config import own_keywords
from pufferlib.envpool.native import NativeBackend, TwinBackend
from pufferlib.envpool.pool import PoolTask
from pufferlib.envpool.stepped import NUMBER, stepped_backend
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError
from pufferlib.registry.toy_text import toy_text_twin

__all__ = ["tasks"]

#: Step limit and reward threshold of each Box2D environment.
BOX2D = {
    "BipedalWalker-v3": (1600, 300.0),
    "BipedalWalkerHardcore-v3": (2000, 300.0),
    "CarRacing-v3": (1000, 900.0),
    "LunarLander-v3": (1000, 200.0),
    "LunarLanderContinuous-v3": (1000, 200.0),
}

#: Ids of older versions. They run the newest version, because Gymnasium has fixed the environments since.
OLDER_BOX2D = {
    "CarRacing-v2": "CarRacing-v3",
    "LunarLander-v2": "LunarLander-v3",
    "LunarLanderContinuous-v2": "LunarLanderContinuous-v3",
}

MUJOCO_VERSIONS = (4, 5)
POSITION = ("x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity")


class Robot(NamedTuple):
    """MuJoCo environment, the same for all versions.

    Attributes:
        name: Name without the version.
        max_episode_steps: Number of steps after which an episode is truncated.
        reward_threshold: Return at which the task counts as solved, or None.
        infos: Names of the infos, one number each.
    """

    name: str
    max_episode_steps: int
    reward_threshold: float | None
    infos: tuple[str, ...] = ()


ROBOTS = (
    Robot("Ant", 1000, 6000.0, ("reward_forward", "reward_ctrl", "reward_contact", "reward_survive", *POSITION)),
    Robot("HalfCheetah", 1000, 4800.0, ("reward_run", "reward_ctrl", "x_position", "x_velocity")),
    Robot("Hopper", 1000, 6000.0, ("x_position", "x_velocity")),
    Robot("Humanoid", 1000, None, ("reward_linvel", "reward_quadctrl", "reward_alive", "reward_impact", *POSITION)),
    Robot("HumanoidStandup", 1000, None, ("reward_linup", "reward_quadctrl", "reward_alive", "reward_impact")),
    Robot("InvertedDoublePendulum", 1000, 9100.0),
    Robot("InvertedPendulum", 1000, 950.0),
    Robot("Pusher", 100, 0.0, ("reward_dist", "reward_ctrl", "reward_near")),
    Robot("Reacher", 50, -3.75, ("reward_dist", "reward_ctrl")),
    Robot("Swimmer", 1000, 360.0, ("reward_fwd", "reward_ctrl", *POSITION)),
    Robot("Walker2d", 1000, None, ("x_position", "x_velocity")),
)

#: Names that version 5 uses for some infos.
MUJOCO_SOURCES = {
    "reward_alive": "reward_survive",
    "reward_fwd": "reward_forward",
    "reward_impact": "reward_contact",
    "reward_linvel": "reward_forward",
    "reward_quadctrl": "reward_ctrl",
    "reward_run": "reward_forward",
}


class ToyText(NamedTuple):
    """Toy-text task and the Gymnasium environment that it is.

    Attributes:
        task_id: Id of the task.
        name: Id of the environment in Gymnasium.
        max_episode_steps: Number of steps after which an episode is truncated, or 0 for no limit.
        reward_threshold: Return at which the task counts as solved, or None.
        has_prob: Whether the infos contain the probability of the last transition.
        maker: Function that makes the environment if Gymnasium's observations are changed, or None.
    """

    task_id: str
    name: str
    max_episode_steps: int = 0
    reward_threshold: float | None = None
    has_prob: bool = True
    maker: Callable[..., Any] | None = None


def make_blackjack(**keywords: Any) -> Any:
    """Make Blackjack with one array as observation: player's sum, dealer's card, whether an ace counts as 11."""
    env = gymnasium.make("Blackjack-v1", disable_env_checker=True, **keywords)
    space = Box(0, np.array([31, 10, 1], np.int32), dtype=np.int32)
    return gymnasium.wrappers.TransformObservation(env, lambda observation: np.array(observation, np.int32), space)


TOY_TEXT = (
    ToyText("Blackjack-v1", "Blackjack-v1", has_prob=False, maker=make_blackjack),
    ToyText("CliffWalking-v0", "CliffWalking-v1"),
    ToyText("CliffWalking-v1", "CliffWalking-v1"),
    ToyText("CliffWalkingSlippery-v1", "CliffWalkingSlippery-v1"),
    ToyText("FrozenLake-v1", "FrozenLake-v1", 100, 0.7),
    ToyText("FrozenLake8x8-v1", "FrozenLake8x8-v1", 200, 0.85),
    ToyText("Taxi-v3", "Taxi-v4", 200, 8.0),
)


def tasks() -> list[PoolTask]:
    """Return the tasks of the families ``box2d``, ``mujoco`` and ``toy_text``."""
    robots = [_mujoco_task(robot, version) for robot in ROBOTS for version in MUJOCO_VERSIONS]
    return _box2d_tasks() + robots + [_toy_text_task(toy) for toy in TOY_TEXT]


def _box2d_tasks() -> list[PoolTask]:
    return [
        PoolTask(
            task_id,
            "box2d",
            TwinBackend(
                functools.partial(stepped_backend, f"box2d/{name}", {}),
                WorkerBackend(f"box2d/{name}", is_limited=True, declared_only=True),
                draws=False,
            ),
            *BOX2D[name],
            keywords={"native": True},
            any_keyword=True,
            extra="box2d",
        )
        for task_id, name in {**{name: name for name in BOX2D}, **OLDER_BOX2D}.items()
    ]


def _mujoco_task(robot: Robot, version: int) -> PoolTask:
    task_id = f"{robot.name}-v{version}"
    python = WorkerBackend(
        f"mujoco/{task_id}",
        _mujoco_settings,
        infos=dict.fromkeys(robot.infos, NUMBER),
        info_sources=MUJOCO_SOURCES,
        draw=draw_robot,
        is_limited=True,
        declared_only=True,
    )
    infos = {name: (name, MUJOCO_SOURCES.get(name, name)) for name in robot.infos}
    return PoolTask(
        task_id,
        "mujoco",
        TwinBackend(functools.partial(stepped_backend, f"mujoco/{task_id}", infos), python, draws=False),
        robot.max_episode_steps,
        robot.reward_threshold,
        keywords={"native": True},
        any_keyword=True,
        extra="mujoco",
    )


def _mujoco_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task's own keyword arguments and the image size."""
    sizes = {"width": config["render_width"], "height": config["render_height"]}
    drawn = {name: size for name, size in sizes.items() if size is not None and config["render_mode"] is not None}
    return {**own_keywords(config), **drawn}


def draw_robot(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Render a robot with one of its cameras, in the size it was made with. Camera -1 follows the robot.

    Raises:
        APIUsageError: There is no such camera.
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


def _toy_text_task(toy: ToyText) -> PoolTask:
    python = WorkerBackend(
        toy.maker or toy.name,
        infos={"prob": Box(0, 1, (), np.float32)} if toy.has_prob else None,
        draw=draw_toy_text,
        is_limited=True,
        declared_only=True,
    )
    return PoolTask(
        toy.task_id,
        "toy_text",
        TwinBackend(functools.partial(_native_toy_text, toy), python),
        toy.max_episode_steps,
        toy.reward_threshold,
        keywords={"native": True},
        any_keyword=True,
    )


def _native_toy_text(toy: ToyText, keywords: dict[str, Any]) -> NativeBackend | None:
    """Return the backend in C, or None if it does not have these keyword arguments."""
    twin = toy_text_twin(toy.name, keywords, None)  # the pool truncates episodes
    if twin is None:
        return None
    return NativeBackend(twin.name, None if toy.maker else twin.observation_space, **twin.params)


def draw_toy_text(env: Any, camera_id: int, width: int | None, height: int | None) -> Any:
    """Render a toy-text environment with Gymnasium's renderer, without opening a display."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    return env.env.render()
