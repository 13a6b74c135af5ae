"""Lookup of MuJoCo robots that are stepped in C, with the results of Gymnasium's or dm_control's."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import source_hash
from pufferlib.registry.games import GymnasiumTwin, UnlikeOriginalError, equal_or_none, warn_of_python
from pufferlib.robots.batch import RobotBatch
from pufferlib.robots.originals import original_of
from pufferlib.robots.task import Task, task_of

__all__ = ["RobotTwin", "robot_twin"]

CHECKED_STEPS = 16  # in which a random walker falls


@dataclass(frozen=True)
class RobotTwin(GymnasiumTwin):
    """MuJoCo robot that is stepped in C.

    Attributes:
        task: Description for the steps in C.
        create: Function that makes the emulated original.
    """

    task: Task
    create: Callable[..., Any]

    def games(self, num_games: int, autoreset: str, num_threads: int, affinity: int = 0) -> RobotBatch:
        """See ``GymnasiumTwin``."""
        task = self.task._replace(fields={**self.task.fields, "max_steps": self.max_steps})
        count = min(num_threads, num_games) if task.robot.simulates_resets else 1
        originals = [original_of(self.create().unwrapped) for _ in range(count)]
        return RobotBatch(self.name, task, originals, self.create, num_games, autoreset, num_threads, affinity)

    def draw_action(self, rng: np.random.Generator) -> Any:
        """Return a random action, which can be out of bounds if the robot clips actions."""
        low, high, scale = self.task.low, self.task.high, 1.5
        action = rng.uniform(-scale, scale, low.shape).astype(np.float32)
        return action if self.task.fields["clips_action"] else np.clip(action, low, high)


def robot_twin(name: str, keywords: Mapping[str, Any], create: Callable[..., Any]) -> RobotTwin | None:
    """Return the robot in C that equals an environment, or None if there is none.

    The first steps are compared with those of the original. If they differ, or if MuJoCo's library cannot be used, a
    warning says so.

    Args:
        name: Name of the environment.
        keywords: Keyword arguments of the environment.
        create: Function that makes the emulated environment of Gymnasium or dm_control with these keyword arguments.
    """
    try:
        env = create()
        task = task_of(env.env)
    except UnlikeOriginalError as error:
        warn_of_python(name, "Gymnasium", error)
        return None
    except Exception:  # the original environment reports what is wrong
        return None
    if task is None:
        return None
    original = original_of(env.unwrapped)
    twin = RobotTwin(
        name,
        {**{key: repr(value) for key, value in keywords.items()}, "model": digest_of(original.model)},
        original.package,
        f"mujoco {mujoco.__version__}, numpy {np.__version__}, {source_hash}",
        env.env.observation_space,
        env.single_action_space,
        env.metadata["render_fps"],
        task.fields["max_steps"],
        task,
        create,
    )
    try:
        return equal_or_none(twin, env.env.env, CHECKED_STEPS)  # below EpisodeStats, which hides infos
    except (APIUsageError, ArithmeticError, TypeError, ValueError, mujoco.FatalError):
        return None  # the original fails, and reports it where it is used


def digest_of(model: mujoco.MjModel) -> str:
    """Return a digest of a model, as text."""
    memory = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, memory)
    return hashlib.blake2b(memory.tobytes(), digest_size=8).hexdigest()
