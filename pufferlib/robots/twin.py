"""Lookup of MuJoCo robots that are stepped in C, with the results of Gymnasium's."""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import source_hash
from pufferlib.robots.batch import RobotBatch
from pufferlib.robots.task import Task, UnlikeOriginalError, task_of

__all__ = ["RobotTwin", "robot_twin"]

CHECKED_STEPS = 8


@dataclass(frozen=True)
class RobotTwin:
    """MuJoCo robot that is stepped in C. See ``pufferlib.registry.in_c.Twin``.

    Attributes:
        name: Name of the environment.
        params: Its keyword arguments, and a digest of its model, as text.
        code: Versions and sources that the results depend on.
        observation_space: Observation space.
        action_space: Action space.
        frames_per_second: Steps per second of simulated time.
        max_steps: Number of steps after which an episode is truncated, or 0.
        task: Description for the steps in C.
        create: Function that makes the emulated environment of Gymnasium.
    """

    name: str
    params: Mapping[str, str]
    code: str
    observation_space: Box
    action_space: Box
    frames_per_second: float
    max_steps: int
    task: Task
    create: Callable[[], Any]

    def games(self, num_games: int, autoreset: str, num_threads: int) -> RobotBatch:
        """See ``Twin``."""
        return RobotBatch(self.name, self.task, self.create().unwrapped, num_games, autoreset, num_threads)


def robot_twin(name: str, keywords: Mapping[str, Any], create: Callable[[], Any]) -> RobotTwin | None:
    """Return the robot in C that equals an environment, or None if there is none.

    The first steps are compared with those of Gymnasium. If they differ, or if MuJoCo's library cannot be used, a
    warning says so.

    Args:
        name: Name of the environment.
        keywords: Its keyword arguments.
        create: Function that makes the emulated environment of Gymnasium with these keyword arguments.
    """
    try:
        env = create()
        task = task_of(env.env)
    except Exception:  # the original environment reports what is wrong
        return None
    if task is None:
        return None
    twin = RobotTwin(
        name,
        {**{key: repr(value) for key, value in keywords.items()}, "model": digest_of(env.unwrapped.model)},
        f"mujoco {mujoco.__version__}, gymnasium {gymnasium.__version__}, numpy {np.__version__}, {source_hash}",
        env.single_observation_space,
        env.single_action_space,
        env.metadata["render_fps"],
        task.fields["max_steps"],
        task,
        create,
    )
    try:
        check_equal(twin, env.env.env)  # below EpisodeStats, which hides infos
    except UnlikeOriginalError as error:
        warnings.warn(
            f"{name}: steps are those of Gymnasium in Python, because C cannot be used: {error}", stacklevel=2
        )
        return None
    except (APIUsageError, mujoco.FatalError):  # the simulation fails
        return None
    return twin


def digest_of(model: mujoco.MjModel) -> str:
    """Return a digest of a model, as text."""
    memory = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, memory)
    return hashlib.blake2b(memory.tobytes(), digest_size=8).hexdigest()


def check_equal(twin: RobotTwin, original: gymnasium.Env[Any, Any]) -> None:
    """Compare the first steps in C with those of an environment of Gymnasium, byte by byte.

    Raises:
        UnlikeOriginalError: A number differs.
    """
    rows = allocate(twin.observation_space, twin.action_space, 1)
    games = twin.games(1, "disabled", 1)
    games.bind(**rows)
    rng = np.random.default_rng(0)
    is_over = True
    for step in range(CHECKED_STEPS):
        if is_over:
            games.reset([step])
            observation, _ = original.reset(seed=step)
            check_same(step, {"observation": rows["observations"][0]}, {"observation": observation})
        actions = rng.uniform(-1.5, 1.5, rows["actions"].shape).astype(np.float32)
        if not twin.task.fields["clips_action"]:
            actions = np.clip(actions, twin.task.low, twin.task.high)
        observation, reward, terminated, truncated, infos = original.step(actions[0])
        games.step(actions)
        names = {"observation": "observations", "terminated": "terminals", "truncated": "truncations"}
        found = {name: rows[row][0] for name, row in names.items()}
        expected = {"observation": observation, "terminated": terminated, "truncated": truncated}
        check_same(
            step,
            {**found, "reward": games.exact_rewards[0], **games.infos_of(0)},
            {**expected, "reward": reward, **infos},
        )
        is_over = terminated or truncated
    games.close()


def check_same(step: int, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise UnlikeOriginalError unless numbers and arrays of numbers have the same names and bytes."""
    for name in sorted(found.keys() | expected.keys()):
        one, other = (np.float64(values.get(name, np.nan)) for values in (found, expected))
        if one.tobytes() != other.tobytes():
            raise UnlikeOriginalError(
                f"expected the {name} of Gymnasium {gymnasium.__version__} in step {step}, {other!r:.80}, found "
                f"{one!r:.80} with mujoco {mujoco.__version__} and NumPy {np.__version__}"
            )
