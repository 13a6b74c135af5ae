"""The robots that Gymnasium has for MuJoCo, version 5, as the steps in C describe them."""

from collections.abc import Mapping
from typing import NamedTuple

from gymnasium.envs.registration import EnvSpec

__all__ = ["ROBOTS", "Part", "Robot", "has_robot"]


class Part(NamedTuple):
    """Part of an observation: numbers of an array of the simulation, one after the other.

    Attributes:
        array: Attribute of ``mujoco.MjData``, or the name of a body, which means its position.
        start: Index of the first number.
        stop: Index after the last number, or None for all.
        change: "copy", "clip", "sin", "cos", or "minus", which subtracts the position of ``other``.
        other: Name of a body.
    """

    array: str
    start: int = 0
    stop: int | None = None
    change: str = "copy"
    other: str = ""


class Robot(NamedTuple):
    """One of the robots.

    Attributes:
        reward: Function of ``robots.h`` that computes the reward and tests whether an episode ends.
        parts: Parts of the observation. The environment's keyword arguments can exclude some.
        infos: Names of the infos of a step.
        skipped: Number of positions that ``exclude_current_positions_from_observation`` excludes.
        place: Position whose change is the velocity: "root", "body", "mass_center", or "" for none.
        health: What is tested for health.
        z: Index of the height in ``qpos``.
        bodies: Names of the bodies whose positions the reward needs.
        arrays: Infos that are arrays, and the attribute of ``mujoco.MjData`` that each is a copy of.
    """

    reward: str
    parts: tuple[Part, ...]
    infos: str
    skipped: int = 0
    place: str = ""
    health: str = ""
    z: int = 1
    bodies: tuple[str, ...] = ()
    arrays: Mapping[str, str] = {}


JOINTS = (Part("qpos"), Part("qvel"))
SLOW_JOINTS = (Part("qpos"), Part("qvel", change="clip"))
HUMANOID = (*JOINTS, Part("cinert", 10), Part("cvel", 6), Part("qfrc_actuator", 6), Part("cfrc_ext", 6))
TENDONS = {"tendon_length": "ten_length", "tendon_velocity": "ten_velocity"}

X = "x_position x_velocity "
XY = "x_position y_position distance_from_origin x_velocity y_velocity "
XZ = "x_position z_distance_from_origin x_velocity "

#: By entry point, because an id may be registered again for another environment.
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
            (Part("qpos", 0, 7), Part("qvel", 0, 7), Part("tips_arm"), Part("object"), Part("goal")),
            "reward_dist reward_ctrl reward_near",
            bodies=("tips_arm", "object", "goal"),
        ),
        "reacher_v5:ReacherEnv": Robot(
            "reacher",
            (
                Part("qpos", 0, 2, "cos"),
                Part("qpos", 0, 2, "sin"),
                Part("qpos", 2),
                Part("qvel", 0, 2),
                Part("fingertip", 0, 2, "minus", "target"),
            ),
            "reward_dist reward_ctrl",
            bodies=("fingertip", "target"),
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


def has_robot(spec: EnvSpec) -> bool:
    """Return True if a Gymnasium spec is of a robot that is also stepped in C."""
    return spec.entry_point in ROBOTS and not spec.additional_wrappers
