"""MuJoCo robots of Gymnasium, version 5, and tasks of dm_control, as the steps in C describe them."""

from collections.abc import Mapping
from typing import NamedTuple

from gymnasium.envs.registration import EnvSpec

__all__ = ["ROBOTS", "SUITE", "Part", "Robot", "has_robot"]


class Part(NamedTuple):
    """Part of an observation: numbers of an array of the simulation, one after the other.

    Attributes:
        array: Attribute of ``mujoco.MjData``, such as "qpos", or the numbers in it of a named element, such as
            "xpos torso". Or "place", the position that C keeps for a copy.
        start: Index of the first number, from the first one of the element.
        stop: Index after the last number, or None for all of an array.
        change: "copy", "clip", "sin", "cos", "log1p", or "minus", which subtracts the numbers of ``other``.
        other: Numbers like those of ``array``, with the same ``start``.
        key: Name of the observation that the part belongs to, in dm_control.
    """

    array: str
    start: int = 0
    stop: int | None = None
    change: str = "copy"
    other: str = ""
    key: str = ""


class Robot(NamedTuple):
    """One of the robots or tasks.

    Attributes:
        reward: Function of ``robots.h`` that computes the reward and tests whether an episode ends.
        parts: Parts of the observation. The environment's keyword arguments can exclude some.
        infos: Names of the infos of a step.
        skipped: Number of positions that ``exclude_current_positions_from_observation`` excludes.
        place: Position whose change is the velocity: "root", "body" or "mass_center". Or "target", which keeps the
            position of a target at the reset. Or "" for none.
        health: What is tested for health.
        z: Index of the height in ``qpos``.
        reads: Numbers that the reward or the place reads, such as "xpos torso".
        arrays: Infos that are arrays, and the attribute of ``mujoco.MjData`` that each is a copy of.
        simulates_resets: Whether a reset simulates many steps.
    """

    reward: str
    parts: tuple[Part, ...]
    infos: str = ""
    skipped: int = 0
    place: str = ""
    health: str = ""
    z: int = 1
    reads: tuple[str, ...] = ()
    arrays: Mapping[str, str] = {}
    simulates_resets: bool = False


JOINTS = (Part("qpos"), Part("qvel"))
SLOW_JOINTS = (Part("qpos"), Part("qvel", change="clip"))
POSITION, VELOCITY = Part("qpos", key="position"), Part("qvel", key="velocity")
HUMANOID = (*JOINTS, Part("cinert", 10), Part("cvel", 6), Part("qfrc_actuator", 6), Part("cfrc_ext", 6))
PUSHER = ("xpos tips_arm", "xpos object", "xpos goal")
TENDONS = {"tendon_length": "ten_length", "tendon_velocity": "ten_velocity"}

X = "x_position x_velocity "
XY = "x_position y_position distance_from_origin x_velocity y_velocity "
XZ = "x_position z_distance_from_origin x_velocity "

#: Robots of Gymnasium by entry point, because an id may be registered again for another environment.
ROBOTS: Mapping[str, Robot] = {
    f"gymnasium.envs.mujoco.{entry_point}": robot
    for entry_point, robot in {
        "ant_v5:AntEnv": Robot(
            "forward",
            (*JOINTS, Part("cfrc_ext", 6, change="clip")),
            XY + "reward_forward reward_ctrl reward_contact reward_survive",
            skipped=2,
            place="body",
            health="finite z",
            z=2,
        ),
        "half_cheetah_v5:HalfCheetahEnv": Robot(
            "forward", JOINTS, X + "reward_forward reward_ctrl", skipped=1, place="root"
        ),
        "hopper_v5:HopperEnv": Robot(
            "forward",
            SLOW_JOINTS,
            XZ + "reward_forward reward_ctrl reward_survive",
            skipped=1,
            place="root",
            health="state z angle",
        ),
        "humanoid_v5:HumanoidEnv": Robot(
            "forward",
            HUMANOID,
            XY + "reward_survive reward_forward reward_ctrl reward_contact",
            skipped=2,
            place="mass_center",
            health="z",
            z=2,
            arrays=TENDONS,
        ),
        "humanoidstandup_v5:HumanoidStandupEnv": Robot(
            "standup",
            HUMANOID,
            "x_position y_position z_distance_from_origin reward_linup reward_quadctrl reward_impact",
            skipped=2,
            z=2,
            arrays=TENDONS,
        ),
        "inverted_double_pendulum_v5:InvertedDoublePendulumEnv": Robot(
            "double_pendulum",
            (
                Part("qpos", 0, 1),
                Part("qpos", 1, change="sin"),
                Part("qpos", 1, change="cos"),
                Part("qvel", change="clip"),
                Part("qfrc_constraint", 0, 1, "clip"),
            ),
            "reward_survive distance_penalty velocity_penalty",
        ),
        "inverted_pendulum_v5:InvertedPendulumEnv": Robot("pendulum", JOINTS, "reward_survive"),
        "pusher_v5:PusherEnv": Robot(
            "pusher",
            (Part("qpos", 0, 7), Part("qvel", 0, 7), *(Part(body, 0, 3) for body in PUSHER)),
            "reward_dist reward_ctrl reward_near",
            reads=PUSHER,
        ),
        "reacher_v5:ReacherEnv": Robot(
            "reacher",
            (
                Part("qpos", 0, 2, "cos"),
                Part("qpos", 0, 2, "sin"),
                Part("qpos", 2),
                Part("qvel", 0, 2),
                Part("xpos fingertip", 0, 2, "minus", "xpos target"),
            ),
            "reward_dist reward_ctrl",
            reads=("xpos fingertip", "xpos target"),
        ),
        "swimmer_v5:SwimmerEnv": Robot("forward", JOINTS, XY + "reward_forward reward_ctrl", skipped=2, place="root"),
        "walker2d_v5:Walker2dEnv": Robot(
            "forward",
            SLOW_JOINTS,
            XZ + "reward_forward reward_ctrl reward_survive",
            skipped=1,
            place="root",
            health="z angle",
        ),
    }.items()
}

#: Tasks of dm_control by class.
SUITE: Mapping[str, Robot] = {
    f"dm_control.suite.{task}": robot
    for task, robot in {
        "ball_in_cup:BallInCup": Robot("catch", (POSITION, VELOCITY), reads=("site_xpos target", "xpos ball")),
        "cartpole:Balance": Robot(
            "balance",
            (
                Part("qpos", 0, 1, key="position"),
                Part("xmat pole_1", 8, 9, key="position"),
                Part("xmat pole_1", 2, 3, key="position"),
                VELOCITY,
            ),
        ),
        "cheetah:Cheetah": Robot(
            "run",
            (Part("qpos", 1, key="position"), VELOCITY),
            reads=("sensordata torso_subtreelinvel",),
            simulates_resets=True,
        ),
        "finger:Spin": Robot(
            "spin",
            (
                Part("sensordata proximal", 0, 1, key="position"),
                Part("sensordata distal", 0, 1, key="position"),
                Part("sensordata tip", 0, 1, "minus", "sensordata spinner", "position"),
                Part("sensordata tip", 2, 3, "minus", "sensordata spinner", "position"),
                Part("sensordata proximal_velocity", 0, 1, key="velocity"),
                Part("sensordata distal_velocity", 0, 1, key="velocity"),
                Part("sensordata hinge_velocity", 0, 1, key="velocity"),
                Part("sensordata touchtop", 0, 2, "log1p", key="touch"),  # and touchbottom
            ),
            reads=("sensordata hinge_velocity",),
        ),
        "reacher:Reacher": Robot(
            "reach",
            (POSITION, Part("place", 0, 2, "minus", "geom_xpos finger", "to_target"), VELOCITY),
            place="target",
            reads=("geom_xpos target",),
        ),
        "walker:PlanarWalker": Robot(
            "walk",
            (
                *(
                    Part("xmat", cell, cell + 1, key="orientations")
                    for body in range(9, 72, 9)
                    for cell in (body, body + 2)
                ),
                Part("xpos torso", 2, 3, key="height"),
                VELOCITY,
            ),
            reads=("xpos torso", "xmat torso", "sensordata torso_subtreelinvel"),
        ),
    }.items()
}


def has_robot(spec: EnvSpec) -> bool:
    """Return True if a Gymnasium spec is of a robot that is also stepped in C."""
    return spec.entry_point in ROBOTS and not spec.additional_wrappers
