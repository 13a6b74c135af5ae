"""Description of a robot for the steps in C, read from an environment that Gymnasium has made."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from pufferlib.registry.games import UnlikeOriginalError
from pufferlib.robots._robots import ARRAYS, CHANGES, HEALTH, MAX_ACTIONS, MAX_BODIES, PLACES
from pufferlib.robots.table import ROBOTS, Part, Robot
from pufferlib.wrappers import ClipAction, EpisodeStats

__all__ = ["Task", "engine", "task_of"]

Env = gymnasium.Env[Any, Any]

#: Attributes of Gymnasium's classes, by field of ``RobotTask``. A class has at most one of those of a field.
NUMBERS = {
    "forward": ("_forward_reward_weight",),
    "control": ("_ctrl_cost_weight", "_reward_control_weight"),
    "contact": ("_contact_cost_weight", "_impact_cost_weight"),
    "healthy": ("_healthy_reward",),
    "near": ("_reward_near_weight",),
    "dist": ("_reward_dist_weight",),
    "terminates": ("_terminate_when_unhealthy",),
    "frame_skip": ("frame_skip",),
}
RANGES = {
    "contact": ("_contact_force_range", "_contact_cost_range", "_impact_cost_range"),
    "z": ("_healthy_z_range",),
    "angle": ("_healthy_angle_range",),
    "state": ("_healthy_state_range",),
}
FUNCTIONS = ("mj_step", "mj_rnePostConstraint", "_mjPRIVATE_setTlsLogHandler", "_mjPRIVATE_getGlobalLogHandler")
SPEEDS = (-10.0, 10.0)  # range of clipped speeds and forces
LEAST_JOINTS = {"double_pendulum": 3, "pendulum": 2}  # positions that a reward reads. The other ones read 3
LAYERS = (EpisodeStats, ClipAction, TimeLimit, OrderEnforcing)


class Task(NamedTuple):
    """Description of a robot for ``RobotCopies``.

    Attributes:
        robot: Row of the table.
        fields: Value of each field of ``RobotTask``.
        parts: Value of each field of ``RobotPart``, for each part of the observation.
        low: Lowest action, float32 ``(actions,)``.
        high: Highest action.
    """

    robot: Robot
    fields: dict[str, Any]
    parts: list[dict[str, Any]]
    low: Any
    high: Any


@functools.cache
def engine() -> tuple[int, ...]:
    """Return the addresses of the ``FUNCTIONS`` of MuJoCo's library.

    Raises:
        UnlikeOriginalError: The library is missing, or does not have them.
    """
    import ctypes

    import mujoco

    found = f"mujoco {mujoco.__version__}"
    files = sorted(Path(mujoco.__file__).parent.glob("libmujoco.so*"))
    if not files:
        raise UnlikeOriginalError(f"expected libmujoco.so in {Path(mujoco.__file__).parent} of {found}, found none")
    try:
        library = ctypes.CDLL(str(files[0]))
        library.mj_version.restype = ctypes.c_int
        version = library.mj_version()
        functions = [getattr(library, name) for name in FUNCTIONS]
    except (OSError, AttributeError) as error:
        raise UnlikeOriginalError(
            f"expected a libmujoco with {', '.join(FUNCTIONS)}, as in 3.17.0, found that of {found}: {error}"
        ) from error
    if version != mujoco.mj_version():
        raise UnlikeOriginalError(f"expected {files[0]} of version {mujoco.mj_version()}, found version {version}")
    return tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)


def task_of(env: Env) -> Task | None:
    """Return the description of an environment, or None if C does not have it.

    Args:
        env: Environment of Gymnasium, in wrappers.
    """
    clips, limit, layer = False, 0, env
    while isinstance(layer, gymnasium.Wrapper):
        if not isinstance(layer, LAYERS):
            return None
        clips |= isinstance(layer, ClipAction)
        limit = layer._max_episode_steps if isinstance(layer, TimeLimit) else limit
        layer = layer.env
    inner: Any = layer
    robot = ROBOTS.get(f"{type(inner).__module__}:{type(inner).__qualname__}")
    if robot is None or inner.render_mode is not None or not _has_room(robot, inner.model):
        return None
    model = inner.model
    numbers = _numbers(inner)
    parts = None if numbers is None else _parts(inner, robot)
    space = inner.action_space
    if numbers is None or parts is None or not isinstance(space, Box):
        return None
    fields = {
        **numbers,
        "dt": inner.dt,
        "timestep": model.opt.timestep,
        "mass": model.body_mass.sum(),
        "initial_z": inner.init_qpos[robot.z],
        "is_single": isinstance(numbers["control"] * np.float32(1), np.float32),
        "clips_force": hasattr(inner, "_contact_force_range"),
        "has_contact": hasattr(inner, "_contact_cost_weight"),
        "clips_action": clips,
        "place": PLACES.index(robot.place),
        "health": HEALTH.index(robot.health),
        "z": robot.z,
        "max_steps": limit,
        "positions": model.nq,
        "velocities": model.nv,
        "actions": model.nu,
        "bodies": model.nbody,
        "numbers": sum(part["count"] for part in parts),
        "body": _bodies(inner, robot),
    }
    return Task(robot, fields, parts, space.low, space.high)


def _has_room(robot: Robot, model: Any) -> bool:
    """Return True if a model has the joints that the task reads, and C has room for its bodies and actions."""
    return (
        min(model.nq, model.nv) >= LEAST_JOINTS.get(robot.reward, 3)
        and 1 <= model.nu <= MAX_ACTIONS
        and model.nbody <= MAX_BODIES
        and (robot.reward != "double_pendulum" or model.nsite > 0)
    )


def _numbers(env: Any) -> dict[str, Any] | None:
    """Return weights and ranges, or None if one is not a Python number, with which NumPy may compute differently."""
    found: dict[str, Any] = {}
    for field, names in NUMBERS.items():
        found[field] = next((getattr(env, name) for name in names if hasattr(env, name)), 0.0)
    for field, names in RANGES.items():
        bounds = next((getattr(env, name) for name in names if hasattr(env, name)), (0.0, 0.0))
        found[f"{field}_low"], found[f"{field}_high"] = bounds
    return found if all(isinstance(value, int | float) for value in found.values()) else None


def _parts(env: Any, robot: Robot) -> list[dict[str, Any]] | None:
    """Return the parts of an observation, or None if these are not the environment's."""
    found = []
    for part in robot.parts:
        if part.array not in ARRAYS:
            found.append(_body_part(env, part))
            continue
        if not getattr(env, f"_include_{part.array}_in_observation", True):
            continue
        start = part.start
        if part.array == "qpos" and getattr(env, "_exclude_current_positions_from_observation", False):
            start += robot.skipped
        size = getattr(env.data, part.array).size
        stop = size if part.stop is None else min(part.stop, size)
        low, high = env._contact_force_range if part.array == "cfrc_ext" and part.change == "clip" else SPEEDS
        found.append(
            {
                "array": ARRAYS.index(part.array),
                "start": start,
                "count": max(stop - start, 0),
                "change": CHANGES.index(part.change),
                "other": 0,
                "low": low,
                "high": high,
            }
        )
    size = sum(part["count"] for part in found)
    return found if env.observation_space.shape == (size,) and size else None


def _body_part(env: Any, part: Part) -> dict[str, Any]:
    start = _place_of(env, part.array)
    other = _place_of(env, part.other) if part.other else 0
    count = (3 if part.stop is None else part.stop) - part.start
    change = CHANGES.index(part.change)
    return {
        "array": ARRAYS.index("xpos"), "start": start + part.start, "count": count, "change": change,
        "other": other + part.start, "low": 0.0, "high": 0.0,
    }  # fmt: skip


def _bodies(env: Any, robot: Robot) -> list[int]:
    """Return where the positions of three bodies begin, of which the reward needs some."""
    names = (env._main_body,) if robot.place == "body" else robot.bodies
    return ([_place_of(env, name) for name in names] + [0, 0, 0])[:3]


def _place_of(env: Any, body: int | str) -> int:
    return 3 * int(env.data.body(body).id)
