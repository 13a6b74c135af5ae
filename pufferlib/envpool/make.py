"""Functions that create environments and specs, and the registry of tasks."""

import functools
import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, overload

from pufferlib.envpool.config import checked_int, pool_seeds
from pufferlib.envpool.families import load_tasks
from pufferlib.envpool.pool import Backend, PoolTask
from pufferlib.envpool.pool_env import make_pool
from pufferlib.envpool.spec import TaskSpec
from pufferlib.errors import APIUsageError, UnknownNameError, nearest

if TYPE_CHECKING:
    from pufferlib.envpool.dm_env import DMPoolEnv
    from pufferlib.envpool.gymnasium_env import PoolVectorEnv

__all__ = [
    "ENV_TYPES",
    "find_task",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "register",
]

ENV_TYPES = ("dm", "gym", "gymnasium")

_registered: dict[str, PoolTask] = {}  # tasks of the user


@overload
def make(task_id: str, env_type: Literal["gym", "gymnasium"], **kwargs: Any) -> "PoolVectorEnv": ...
@overload
def make(task_id: str, env_type: Literal["dm"], **kwargs: Any) -> "DMPoolEnv": ...
def make(task_id: str, env_type: Literal["dm", "gym", "gymnasium"], **kwargs: Any) -> "PoolVectorEnv | DMPoolEnv":
    """Create several environments of a task behind one interface.

    Args:
        task_id: Id from ``list_all_envs()``.
        env_type: "gymnasium" or its alias "gym" for a ``gymnasium.vector.VectorEnv``, or "dm" for a
            ``dm_env.Environment``.
        **kwargs: Settings. docs/envpool.md explains the common ones. Tasks have more of their own.

    Raises:
        UnknownNameError: There is no such task, keyword argument or env_type. The message suggests the nearest names.
        APIUsageError: A value has a wrong type, is out of range, or is not supported by the task or ``env_type``.
        BindingMissing: The package of the task is not installed, or dm_env for ``env_type`` "dm".
        WorkerError: An environment in Python failed.
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


def make_gym(task_id: str, **kwargs: Any) -> "PoolVectorEnv":
    """Call ``make(task_id, env_type="gym", ...)``."""
    return make(task_id, "gym", **kwargs)


def make_gymnasium(task_id: str, **kwargs: Any) -> "PoolVectorEnv":
    """Call ``make(task_id, env_type="gymnasium", ...)``."""
    return make(task_id, "gymnasium", **kwargs)


def make_dm(task_id: str, **kwargs: Any) -> "DMPoolEnv":
    """Call ``make(task_id, env_type="dm", ...)``."""
    return make(task_id, "dm", **kwargs)


def make_spec(task_id: str, **kwargs: Any) -> TaskSpec:
    """Return the spec of a task with these settings, without creating a pool.

    For a task in Python, one environment is created in its own process and closed again.

    Args:
        task_id: Id from ``list_all_envs()``.
        **kwargs: Settings, as in ``make``.

    Returns:
        Spec with ``observation_space`` and ``action_space`` (Gymnasium), ``observation_spec()`` and ``action_spec()``
        (dm_env), ``state_array_spec``, ``action_array_spec``, and ``config``, a namedtuple of all settings.

    Raises:
        UnknownNameError: There is no such task or keyword argument. The message suggests the nearest names.
        APIUsageError: A value has a wrong type or is out of range.
        BindingMissing: The package of the task is not installed.
        WorkerError: An environment in Python failed.
    """
    return TaskSpec("envpool.make_spec", find_task("envpool.make_spec", task_id), kwargs)


def _make_dm(where: str, spec: TaskSpec) -> "DMPoolEnv":
    config = spec.as_dict()
    if config["autoreset"] == "same_step":
        raise APIUsageError(
            f'{where}({spec.id!r}): autoreset must be "next_step" or "disabled" with env_type "dm", got "same_step": a '
            "time step has no place for the last observation and the next one"
        )
    from pufferlib.envpool.dm_env import DMPoolEnv

    return DMPoolEnv(spec, make_pool(spec, pool_seeds(config)))


def list_all_envs() -> list[str]:
    """Return the ids of all tasks, sorted. Some tasks need a package that may not be installed."""
    return sorted({*_builtin_tasks(), *_registered})


def register(
    task_id: str,
    env: Backend | Callable[..., Any] | str | PathLike[str],
    *,
    max_episode_steps: int = 0,
    reward_threshold: float | None = None,
    keywords: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> None:
    """Register an environment under an id for ``make``.

    Args:
        task_id: Id that no task has yet.
        env: Class or function that makes a Gymnasium, PettingZoo (with a fixed number of agents) or dm_env environment
            or a ``PufferEnv``. Or a name that ``pufferlib.make`` accepts: "mypkg.envs:Forage", "my_env.py:Forage",
            "corridor.c", a Gymnasium id, "mujoco/Ant-v5". Or a ``Backend``.
        max_episode_steps: Number of steps after which an episode is truncated, or 0 for no limit.
        reward_threshold: Return at which the task counts as solved, or None.
        keywords: Default keyword arguments that differ from the environment's own. Other keyword arguments stay
            possible.
        replace: Whether to replace an id that was registered before, for example when a notebook cell runs again.

    Raises:
        APIUsageError: The id is taken or is not a string, ``env`` is none of the above, or the limit is negative.
    """
    where = "envpool.register"
    if not isinstance(task_id, str) or not task_id:
        raise APIUsageError(f"{where}: task_id must be a text, as in 'Forage-v0', got {task_id!r:.80}")
    if task_id in _builtin_tasks() or (task_id in _registered and not replace):
        hint = "choose another" if task_id in _builtin_tasks() else "choose another, or replace yours by replace=True"
        raise APIUsageError(f"{where}: task_id must be new, got {task_id!r}, which there is; {hint}")
    limit = checked_int(where, "max_episode_steps", max_episode_steps, 0)
    backend = _backend(where, env)
    _registered[task_id] = PoolTask(
        task_id, "yours", backend, limit, reward_threshold, dict(keywords or {}), any_keyword=True
    )


def find_task(where: str, task_id: Any) -> PoolTask:
    """Return the task with this id.

    Raises:
        UnknownNameError: There is no such task. The message suggests the nearest ids.
    """
    if isinstance(task_id, str):
        task = _registered.get(task_id) or _builtin_tasks().get(task_id)
        if task is not None:
            return task
    known = list_all_envs()
    error = UnknownNameError.of(where, "task", task_id, known, _nearest(str(task_id), known))
    raise UnknownNameError(f"{error}; envpool.list_all_envs() has all, envpool.register adds yours")


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return ids for a name of another library, such as "PongNoFrameskip-v4" or "atari/pong"."""
    by_normalized: dict[str, list[str]] = {}
    for task_id in known:
        by_normalized.setdefault(_normalized(task_id), []).append(task_id)
    matching = [by_normalized[near] for near in nearest(_normalized(name), by_normalized)]
    return [task_id for ids in matching for task_id in nearest(name, ids, len(ids), cutoff=0.0)][:2]


def _normalized(name: str) -> str:
    """Return a name in lower case without its namespace, its version and the suffixes of other libraries."""
    name = name.rpartition("/")[2].rpartition(":")[2].lower()
    return re.sub(r"-v\d+$|_|noframeskip|deterministic", "", name)


def _backend(where: str, env: Any) -> Backend:
    if not isinstance(env, type) and hasattr(env, "describe") and hasattr(env, "make"):
        return env  # type: ignore[no-any-return]
    if not isinstance(env, str | PathLike) and not callable(env):
        raise APIUsageError(
            f"{where}: env must be a class, a function, a name as 'mypkg.envs:Forage', or a Backend, got {env!r:.80}"
        )
    name = fspath(env) if isinstance(env, PathLike) else env
    if isinstance(name, str) and name.endswith(".c"):
        from pufferlib.envpool.native import NativeBackend

        return NativeBackend(name)
    from pufferlib.envpool.workers import WorkerBackend

    return WorkerBackend(name)


@functools.cache
def _builtin_tasks() -> dict[str, PoolTask]:
    return {task.id: task for task in load_tasks()}
