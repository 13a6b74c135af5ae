"""Check of models that users give to robots."""

from typing import Any

import gymnasium
import numpy as np

from pufferlib.errors import APIUsageError

__all__ = ["BAD_MODEL", "check_model"]

#: Errors of Gymnasium's robots with a model that lacks joints or bodies.
BAD_MODEL = (IndexError, KeyError, ValueError)


def check_model(where: str, env: gymnasium.Env[Any, Any], xml_file: Any) -> None:
    """Reset and step a robot of Gymnasium that has a user's model. It must be reset again.

    Args:
        where: Name for error messages.
        env: Robot, in wrappers, which are not used.
        xml_file: File of the model.

    Raises:
        APIUsageError: The model lacks a joint or body that the robot reads.
    """
    robot: Any = env.unwrapped
    try:
        robot.reset(seed=0)
        robot.step(np.zeros(robot.action_space.shape, robot.action_space.dtype))
    except BAD_MODEL as error:
        model = robot.model
        raise APIUsageError(
            f"{where}: expected a model with the joints and bodies of {type(robot).__name__}, but {xml_file} has "
            f"{model.njnt} joints ({model.nq} positions, {model.nv} velocities), {model.nbody} bodies and {model.nu} "
            f"actuators: {error}"
        ) from error
