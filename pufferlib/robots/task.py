"""Description of a robot for the steps in C, read from an environment of Gymnasium or dm_control."""

import functools
import math
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.wrappers import TimeLimit

from pufferlib.registry.games import LAYERS, UnlikeOriginalError, class_name
from pufferlib.robots._robots import ARRAYS, CHANGES, HEALTH, MAX_ACTIONS, MAX_BODIES, MAX_WARNINGS, PLACES, READS
from pufferlib.robots.table import ROBOTS, SUITE, Robot
from pufferlib.wrappers import ClipAction

__all__ = ["Task", "engine", "is_suite", "task_of"]

Env = gymnasium.Env[Any, Any]

#: Attributes of classes, by field of ``RobotTask``. A class has at most one of those of a field.
NUMBERS = {
    "forward": ("_forward_reward_weight",),
    "control": ("_ctrl_cost_weight", "_reward_control_weight"),
    "contact": ("_contact_cost_weight", "_impact_cost_weight"),
    "healthy": ("_healthy_reward",),
    "near": ("_reward_near_weight",),
    "dist": ("_reward_dist_weight",),
    "terminates": ("_terminate_when_unhealthy",),
    "frame_skip": ("frame_skip",),
    "speed": ("_move_speed",),
}
RANGES = {
    "contact": ("_contact_force_range", "_contact_cost_range", "_impact_cost_range"),
    "z": ("_healthy_z_range",),
    "angle": ("_healthy_angle_range",),
    "state": ("_healthy_state_range",),
}
#: Other fields that only robots of Gymnasium have, or only tasks of dm_control.
FLAGS = ("is_single", "clips_force", "has_contact", "reads_forces", "starts_halfway", "ends_halfway")
UNUSED = dict.fromkeys((*FLAGS, "dt", "timestep", "mass", "initial_z", "scale", "warnings"), 0)
FUNCTIONS = (
    "mj_step",
    "mj_rnePostConstraint",
    "mj_step1",
    "mj_step2",
    "_mjPRIVATE_setTlsLogHandler",
    "_mjPRIVATE_getGlobalLogHandler",
)
TIMER = "mjcb_time"
#: Arrays with several numbers for each element: the kind of the elements, and how many numbers.
ELEMENTS = {"xpos": ("body", 3), "xmat": ("body", 9), "geom_xpos": ("geom", 3), "site_xpos": ("site", 3)}
SPEEDS = (-10.0, 10.0)  # range of clipped speeds and forces
LEAST_JOINTS = {"double_pendulum": 3, "pendulum": 2}  # positions that a reward reads. The other ones read 3
SUITE_ENV = "dm_control.rl.control:Environment"
RUNGE_KUTTA = 1  # number of the integrator that computes whole steps only
WARNING_BYTES = 8  # size of mjWarningStat
BELL_AT_MARGIN = 0.1  # default value of dm_control's rewards at their margin


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
    """Return the addresses of the ``FUNCTIONS`` of MuJoCo's library, and that of its variable ``TIMER``.

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
        timer = ctypes.c_void_p.in_dll(library, TIMER)
    except (OSError, AttributeError, ValueError) as error:
        raise UnlikeOriginalError(
            f"expected a libmujoco with {', '.join((*FUNCTIONS, TIMER))}, as in 3.17.0, found that of {found}: {error}"
        ) from error
    if version != mujoco.mj_version():
        raise UnlikeOriginalError(f"expected {files[0]} of version {mujoco.mj_version()}, found version {version}")
    addresses = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return *addresses, ctypes.addressof(timer)


def is_suite(env: Any) -> bool:
    """Return True if an environment without wrappers is one of dm_control, as ``DMEnvToGymnasium``."""
    return class_name(getattr(env, "dm_env", None)) == SUITE_ENV


def task_of(env: Env) -> Task | None:
    """Return the description of an environment, or None if C does not have it.

    Args:
        env: Environment of Gymnasium, or of dm_control as ``DMEnvToGymnasium``, in wrappers.

    Raises:
        UnlikeOriginalError: It has a model of its own that C cannot use.
    """
    clips, limit, layer = False, 0, env
    while isinstance(layer, gymnasium.Wrapper):
        if not isinstance(layer, LAYERS):
            return None
        clips |= isinstance(layer, ClipAction)
        limit = layer._max_episode_steps if isinstance(layer, TimeLimit) else limit
        layer = layer.env
    inner: Any = layer
    robot = SUITE.get(class_name(inner.dm_env.task)) if is_suite(inner) else ROBOTS.get(class_name(inner))
    space = inner.action_space
    if robot is None or inner.render_mode is not None or not isinstance(space, Box):
        return None
    found = _suite_fields(inner.dm_env, robot) if is_suite(inner) else _gymnasium_fields(inner, robot)
    physics = inner.dm_env.physics if is_suite(inner) else inner
    model = physics.model
    parts = None if found is None else _parts(inner, robot, model, physics.data)
    if found is None or parts is None or not 1 <= model.nu <= MAX_ACTIONS:
        return None
    fields = {
        **UNUSED,
        "sizes": [0.0, 0.0],
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
        **found,
    }
    return Task(robot, fields, parts, space.low.astype(np.float32), space.high.astype(np.float32))


def _gymnasium_fields(env: Any, robot: Robot) -> dict[str, Any] | None:
    """Return the fields that only robots of Gymnasium have, or None if C does not have this one."""
    model, numbers = env.model, _numbers(env)
    if numbers is None:
        return None
    _check_room(robot, model)
    reads = [("xpos", env._main_body)] if robot.place == "body" else [read.split() for read in robot.reads]
    return {
        **numbers,
        "dt": env.dt,
        "timestep": model.opt.timestep,
        "mass": model.body_mass.sum(),
        "initial_z": env.init_qpos[robot.z],
        "is_single": isinstance(numbers["control"] * np.float32(1), np.float32),
        "clips_force": hasattr(env, "_contact_force_range"),
        "has_contact": hasattr(env, "_contact_cost_weight"),
        "reads_forces": any(hasattr(env, name) for name in RANGES["contact"]),
        "read": _starts(model, reads),
    }


def _suite_fields(env: Any, robot: Robot) -> dict[str, Any] | None:
    """Return the fields that only tasks of dm_control have, or None if C does not have this one."""
    task, model, warnings = env.task, env.physics.model, env.physics.data.warning.number
    numbers = _numbers(task)
    can_count = warnings.strides == (WARNING_BYTES,) and warnings.size <= MAX_WARNINGS
    if numbers is None or not can_count or not env.physics.legacy_step or getattr(task, "_sparse", False):
        return None
    sizes = [0.0, 0.0]
    if robot.reward == "catch":
        target, ball = model.site("target").size, model.geom("ball").size
        sizes = [target[0] - ball[0], target[2] - ball[0]]
    elif robot.reward == "reach":
        sizes = [task._target_size + model.geom("finger").size[0], 0.0]
    return {
        **numbers,
        "scale": np.sqrt(-2 * np.log(BELL_AT_MARGIN)),
        "sizes": sizes,
        "starts_halfway": model.opt.integrator != RUNGE_KUTTA,
        "ends_halfway": True,
        "warnings": warnings.size,
        "frame_skip": env._n_sub_steps,
        "max_steps": 0 if math.isinf(env._step_limit) else math.ceil(env._step_limit),
        "read": _starts(model, [read.split() for read in robot.reads]),
    }


def _check_room(robot: Robot, model: Any) -> None:
    """Raise UnlikeOriginalError unless a model has the joints that C reads, and C has room for its bodies."""
    least, sites = LEAST_JOINTS.get(robot.reward, 3), int(robot.reward == "double_pendulum")
    if min(model.nq, model.nv) < least or model.nbody > MAX_BODIES or model.nsite < sites:
        raise UnlikeOriginalError(
            f"expected a model with at least {least} positions and velocities, {sites} sites and at most {MAX_BODIES} "
            f"bodies, found {model.nq} positions, {model.nv} velocities, {model.nsite} sites and {model.nbody} bodies"
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


def _parts(env: Any, robot: Robot, model: Any, data: Any) -> list[dict[str, Any]] | None:
    """Return the parts of an observation, or None if these are not the environment's.

    If it is a dict, they have the order of its keys.
    """
    found, space = [], env.observation_space
    keys = [*space.spaces] if isinstance(space, Dict) else []
    for part in sorted(robot.parts, key=lambda part: keys.index(part.key)) if keys else robot.parts:
        array, _, element = part.array.partition(" ")
        if not getattr(env, f"_include_{array}_in_observation", True):
            continue
        start = part.start + (_start(model, array, element) if element else 0)
        if array == "qpos" and getattr(env, "_exclude_current_positions_from_observation", False):
            start += robot.skipped
        count = 0 if part.stop is None else part.stop - part.start
        if not element and array != "place":
            size = getattr(data, array).size
            count = max((size if part.stop is None else min(part.stop, size)) - start, 0)
        other_array, _, other = part.other.partition(" ")
        low, high = env._contact_force_range if array == "cfrc_ext" and part.change == "clip" else SPEEDS
        found.append(
            {
                "array": ARRAYS.index(array),
                "start": start,
                "count": count,
                "change": CHANGES.index(part.change),
                "other_array": ARRAYS.index(other_array) if other else 0,
                "other": part.start + _start(model, other_array, other) if other else 0,
                "low": low,
                "high": high,
            }
        )
    size = sum(part["count"] for part in found)
    return found if size and size == gymnasium.spaces.flatdim(space) else None


def _starts(model: Any, reads: Any) -> list[int]:
    """Return where the numbers that C reads begin, for each pair of an array and an element."""
    return ([_start(model, *read) for read in reads] + [0] * READS)[:READS]


def _start(model: Any, array: str, element: int | str) -> int:
    """Return where the numbers of an element begin in an array."""
    if array == "sensordata":
        return int(model.sensor(element).adr[0])
    kind, size = ELEMENTS[array]
    return size * int(getattr(model, kind)(element).id)
