"""Environments and specs from the id of a task and its settings."""

from typing import Any, Literal

from pufferlib.envpool.config import pool_seeds
from pufferlib.envpool.pool_env import make_pool
from pufferlib.envpool.registry import find_task
from pufferlib.envpool.spec import TaskSpec
from pufferlib.errors import APIUsageError, UnknownNameError

__all__ = ["ENV_TYPES", "make", "make_dm", "make_gym", "make_gymnasium", "make_spec"]

ENV_TYPES = ("dm", "gym", "gymnasium")


def make(task_id: str, env_type: Literal["dm", "gym", "gymnasium"], **kwargs: Any) -> Any:
    """Make environments of a task, many behind the interface of one.

    Args:
        task_id: Of ``list_all_envs()``.
        env_type: "gymnasium", or "gym", which is the same, for a ``gymnasium.vector.VectorEnv``; "dm" for a
            ``dm_env.Environment``.
        **kwargs: Settings; docs/envpool.md explains each, and every task has its own beside the common ones.

    Raises:
        UnknownNameError: There is no such task, keyword or env_type; the nearest are suggested.
        APIUsageError: A value is of a wrong type, or out of its range.
        BindingMissing: The package behind the task is not installed.
    """
    where = "envpool.make"
    if env_type not in ENV_TYPES:
        raise UnknownNameError.of(where, "env_type", env_type, ENV_TYPES)
    spec = TaskSpec(where, find_task(where, task_id), kwargs)
    config = spec.as_dict()
    if not config["gym_reset_return_info"]:
        raise APIUsageError(
            f"{where}({task_id!r}): gym_reset_return_info must be True, since reset always returns observations and "
            "infos, got False; leave it out"
        )
    if env_type == "dm":
        return _make_dm(where, spec)
    from pufferlib.envpool.gymnasium_env import PoolVectorEnv

    return PoolVectorEnv(spec, make_pool(spec, pool_seeds(config)))


def make_gym(task_id: str, **kwargs: Any) -> Any:
    """``make(task_id, env_type="gym", ...)``."""
    return make(task_id, "gym", **kwargs)


def make_gymnasium(task_id: str, **kwargs: Any) -> Any:
    """``make(task_id, env_type="gymnasium", ...)``."""
    return make(task_id, "gymnasium", **kwargs)


def make_dm(task_id: str, **kwargs: Any) -> Any:
    """``make(task_id, env_type="dm", ...)``."""
    return make(task_id, "dm", **kwargs)


def make_spec(task_id: str, **kwargs: Any) -> TaskSpec:
    """Describe a task with these settings, as ``make`` takes them, without making its environments.

    Returns:
        ``observation_space`` and ``action_space``, of Gymnasium; ``observation_spec()`` and ``action_spec()``, of
        dm_env; ``state_array_spec`` and ``action_array_spec``; ``config``, a namedtuple of all settings.

    Raises:
        UnknownNameError: There is no such task or keyword; the nearest are suggested.
        APIUsageError: A value is of a wrong type, or out of its range.
        BindingMissing: The package behind the task is not installed.
    """
    return TaskSpec("envpool.make_spec", find_task("envpool.make_spec", task_id), kwargs)


def _make_dm(where: str, spec: TaskSpec) -> Any:
    config = spec.as_dict()
    if config["autoreset"] == "same_step":
        raise APIUsageError(
            f'{where}({spec.id!r}): autoreset must be "next_step" or "disabled" with env_type "dm", got "same_step": a '
            "time step has no place for the last observation and the next one"
        )
    from pufferlib.envpool.dm_env import DMPoolEnv

    return DMPoolEnv(spec, make_pool(spec, pool_seeds(config)))
