"""Function ``autotune``, which finds the fastest vectorization of an environment on this machine."""

import inspect
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pufferlib.autotune.cache import TuningCache, cache_key, newest_rows
from pufferlib.autotune.measure import EnvProfile, Progress, Trial, profile_env, run_trials
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.vector.factory import make

__all__ = ["TunedConfig", "autotune", "candidates", "tuned"]

WHERE = "vector.autotune"
GIB = 1 << 30
ENOUGH = 0.7  # share of the fastest speed at which a configuration with fewer environments is better for training
HALVINGS = 4  # number of worker or thread counts: all cores, a half, a quarter, an eighth

Kwargs = dict[str, Any]


@dataclass(frozen=True)
class TunedConfig:
    """Measured configuration, used with ``vector.make(env_creator, **config.kwargs)``.

    Attributes:
        kwargs: Keyword arguments for ``vector.make``, including the ``env_args`` and ``env_kwargs`` of ``autotune``.
        steps_per_second: Median agent-steps per second over the rounds, or 0 if the configuration was skipped.
        spread: Difference between the best and the worst round, as a share of the median.
        skipped: Why the configuration was not measured, or "" if it was.
        profile: Profile of a single environment.
    """

    kwargs: Kwargs
    steps_per_second: float
    spread: float
    skipped: str
    profile: EnvProfile


def autotune(
    env_creator: Callable[..., Any],
    batch_size: int,
    max_envs: int = 194,
    model_forward_s: float = 0.0,
    max_env_ram_gb: float = 32,
    max_batch_vram_gb: float = 0.05,
    time_per_test: float = 5,
    *,
    env_args: Sequence[Any] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    refresh: bool = False,
    progress: Progress | None = None,
) -> list[TunedConfig]:
    """Measure all valid configurations of ``vector.make`` for an environment on this machine, and rank them.

    First a single environment is measured. Then these backends are measured in turns: Serial, Multiprocessing (all
    workers, contiguous blocks, or first finished, each with several numbers of workers), and the native backend if the
    environment has one. Results are cached in ``pufferlib/autotune`` in the user's cache folder, by machine,
    environment and arguments. They are not cached if the creator is a lambda or a local function, because these have no
    stable name.

    Args:
        env_creator: Class or function that makes an environment, as for ``vector.make``. A list is not accepted.
        batch_size: Number of environments in one batch for the policy.
        max_envs: Maximum number of environments.
        model_forward_s: Seconds that the policy needs per batch.
        max_env_ram_gb: Maximum memory of all environments, in GiB.
        max_batch_vram_gb: Maximum memory of the observations of one batch, in GiB.
        time_per_test: Seconds for the single environment and for each configuration.
        env_args: Positional arguments of the environments, the same for all.
        env_kwargs: Keyword arguments of the environments, the same for all.
        refresh: True to measure again even if there are cached results.
        progress: Function that is called with the completed share, 0 to 1, and a description of the next step.

    Returns:
        Configurations from fastest to slowest, followed by those that were skipped.

    Raises:
        APIUsageError: An argument is invalid, or the environment breaks the contract.
        PufferError: No configuration could be measured.
    """
    _check(env_creator, batch_size, max_envs, model_forward_s, time_per_test)
    _check_memory(max_env_ram_gb, max_batch_vram_gb)
    batch_size, max_envs = int(batch_size), int(max_envs)
    limits = (batch_size, max_envs, model_forward_s, max_env_ram_gb, max_batch_vram_gb, time_per_test)
    cache = TuningCache(cache_key(env_creator, env_args, env_kwargs, limits))
    with_common_arguments = partial(_with_common_arguments, env_args, env_kwargs)
    configs = [] if refresh else _parse_rows(cache.read())
    if not configs:
        report_progress = progress or (lambda share, text: None)
        report_progress(0.0, "one environment alone")
        # Measure one environment first, to know how much memory each configuration needs.
        profile = profile_env(partial(make, env_creator, **with_common_arguments({"backend": "Serial"})), time_per_test)
        _check_batch(profile, batch_size, max_batch_vram_gb)
        games, has_threads = _native_options(env_creator, env_kwargs) if profile.is_native else (0, False)
        to_try = candidates(batch_size, max_envs, usable_cpus(), games, has_threads)
        trials = [
            Trial(partial(make, env_creator, **with_common_arguments(candidate)), _num_envs(candidate, games))
            for candidate in to_try
        ]
        ram_bytes = max(1, profile.ram_bytes), max_env_ram_gb * GIB
        run_trials(trials, time_per_test, model_forward_s, *ram_bytes, report_progress)
        configs = [_config(candidate, trial, profile) for candidate, trial in zip(to_try, trials, strict=True)]
        configs.sort(key=lambda config: -config.steps_per_second)
        if configs[0].skipped:
            raise PufferError(
                f"{WHERE}: at least one configuration must run, got {len(configs)} that failed, with at most "
                f"{max_envs} environments; the first: {configs[0].skipped}; try a lower max_envs"
            )
        cache.write([asdict(config) for config in configs])
    return [replace(config, kwargs=with_common_arguments(config.kwargs)) for config in configs]


def tuned(
    env_creator: Callable[..., Any], env_kwargs: Mapping[str, Any] | None = None, *, for_training: bool = False
) -> TunedConfig | None:
    """Return the best configuration from the most recent ``autotune`` of an environment on this machine.

    Args:
        env_creator: Class or function that makes an environment, as for ``autotune``.
        env_kwargs: Keyword arguments, as for ``autotune``. ``num_envs`` and ``num_threads`` are ignored, because they
            are part of the result.
        for_training: Whether to return, instead of the fastest configuration, the one with the fewest environments of
            those that are at least 70% as fast. A rollout has a number of steps of each environment, so a run with more
            environments has fewer updates.

    Returns:
        Configuration without the given ``env_kwargs``, or None if there is no result for the current version of the
        environment. A native configuration has ``num_envs`` and ``num_threads`` in its ``env_kwargs``.
    """
    configs = [config for config in _parse_rows(newest_rows(env_creator, env_kwargs)) if not config.skipped]
    if not configs or not for_training:
        return configs[0] if configs else None
    fast = [config for config in configs if config.steps_per_second >= ENOUGH * configs[0].steps_per_second]
    return min(fast, key=lambda config: config.kwargs["num_envs"])  # 1 for native, which has a single batch


def _check(env_creator: object, batch_size: Any, max_envs: Any, model_forward_s: float, seconds: float) -> None:
    if not callable(env_creator):
        raise APIUsageError(
            f"{WHERE}: env_creator must be one class or function for all environments, got {env_creator!r}; "
            "tune one kind of environment at a time"
        )
    for name, value, least in (("batch_size", batch_size, 1), ("max_envs", max_envs, batch_size)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise APIUsageError(f"{WHERE}: {name} must be an int, got {value!r}; it counts environments")
        if value < least:
            raise APIUsageError(
                f"{WHERE}: {name} must be at least {least}, got {value}; "
                "a batch has at least one environment, and max_envs at least one batch"
            )
    if not model_forward_s >= 0 or not seconds > 0:
        raise APIUsageError(
            f"{WHERE}: expected model_forward_s >= 0 and time_per_test > 0, both in seconds, "
            f"got {model_forward_s!r} and {seconds!r}; leave them out for 0 and 5"
        )


def _check_memory(max_env_ram_gb: float, max_batch_vram_gb: float) -> None:
    if not max_env_ram_gb > 0 or not max_batch_vram_gb > 0:
        raise APIUsageError(
            f"{WHERE}: expected max_env_ram_gb and max_batch_vram_gb above 0, in GiB, got {max_env_ram_gb!r} and "
            f"{max_batch_vram_gb!r}; math.inf is no limit"
        )


def _check_batch(profile: EnvProfile, batch_size: int, max_gib: float) -> None:
    fitting = max_gib * GIB / profile.observation_bytes
    if batch_size > fitting:
        raise APIUsageError(
            f"{WHERE}: the observations of one batch may take max_batch_vram_gb={max_gib}, "
            f"got {batch_size * profile.observation_bytes / GIB:.3g} GiB with batch_size={batch_size}; "
            + (f"try batch_size={int(fitting)}, or raise the limit" if fitting >= 1 else "raise the limit")
        )


def _native_options(creator: Callable[..., Any], env_kwargs: Mapping[str, Any] | None) -> tuple[int, bool]:
    """Return the default ``num_envs`` of a native environment (0 if fixed), and whether it has ``num_threads``."""
    try:
        parameters = inspect.signature(creator).parameters
    except (TypeError, ValueError):
        return 0, False
    if "num_envs" not in parameters:
        return 0, False
    default = parameters["num_envs"].default
    games = (env_kwargs or {}).get("num_envs", default if isinstance(default, int) else 1)
    return games, "num_threads" in parameters


def _num_envs(candidate: Kwargs, games: int) -> int:
    """Return the number of environments of a configuration. For the native backend they are in a single object."""
    inside: int = (
        candidate["env_kwargs"]["num_envs"] // games if candidate["backend"] == "native" else candidate["num_envs"]
    )
    return inside


def _with_common_arguments(
    env_args: Sequence[Any] | None, env_kwargs: Mapping[str, Any] | None, candidate: Kwargs
) -> Kwargs:
    """Return ``candidate`` with the arguments that are the same for all environments."""
    own = {**(env_kwargs or {}), **candidate.get("env_kwargs", {})}
    given = {"env_args": list(env_args or ()), "env_kwargs": own}
    return {**candidate, **{name: value for name, value in given.items() if value}}


def _config(candidate: Kwargs, trial: Trial, profile: EnvProfile) -> TunedConfig:
    if trial.skipped:
        return TunedConfig(candidate, 0.0, 0.0, trial.skipped, profile)
    median = statistics.median(trial.rates)
    return TunedConfig(candidate, median, (max(trial.rates) - min(trial.rates)) / median, "", profile)


def _parse_rows(rows: list[dict[str, Any]]) -> list[TunedConfig]:
    """Parse cached results. Return an empty list if they were written by another version."""
    try:
        return [TunedConfig(**{**row, "profile": EnvProfile(**row["profile"])}) for row in rows]
    except (TypeError, LookupError):
        return []


def candidates(batch_size: int, max_envs: int, cpus: int, games: int = 0, has_threads: bool = False) -> list[Kwargs]:
    """Return the keyword arguments for ``vector.make`` to try on ``cpus`` cores, without duplicates.

    Args:
        batch_size: Number of environments in one batch.
        max_envs: Maximum number of environments, at least ``batch_size``.
        cpus: Number of usable cores.
        games: Default ``num_envs`` of a native environment, or 0 if it has no such parameter.
        has_threads: True if the environment has a parameter ``num_threads``.
    """
    counts = sorted({max(1, cpus >> shift) for shift in range(HALVINGS)}, reverse=True)
    found = list(_native(batch_size * games, counts if has_threads else [1])) if games else []
    found.append({"backend": "Serial", "num_envs": batch_size})
    for workers in counts:
        found.append(_all_workers(batch_size, workers))
        found += _contiguous(batch_size, max_envs, workers)
        found += _first_finished(batch_size, max_envs, workers)
    return [candidate for index, candidate in enumerate(found) if candidate not in found[:index]]


def _native(games: int, counts: list[int]) -> Iterator[Kwargs]:
    for threads in sorted({1, *(count for count in counts if count <= games)}, reverse=True):
        own: Kwargs = {"num_envs": games} if threads == 1 else {"num_envs": games, "num_threads": threads}
        yield {"backend": "native", "num_envs": 1, "env_kwargs": own}


def _all_workers(batch_size: int, workers: int) -> Kwargs:
    """Return a batch of all environments, with the largest number of workers that divides it, up to ``workers``."""
    return _workers(batch_size, max(w for w in range(1, workers + 1) if batch_size % w == 0), batch_size, True)


def _contiguous(batch_size: int, max_envs: int, workers: int) -> Iterator[Kwargs]:
    """Yield the smallest and the largest number of batches of contiguous workers."""
    counts = [
        batches
        for batches in range(2, max_envs // batch_size + 1)
        if workers % batches == 0 and batch_size * batches % workers == 0
    ]
    for batches in sorted({*counts[:1], *counts[-1:]}):
        yield _workers(batch_size * batches, workers, batch_size, True)


def _first_finished(batch_size: int, max_envs: int, workers: int) -> Iterator[Kwargs]:
    """Yield the most environments per worker for up to two batches in total, and for up to ``max_envs``."""
    for limit in sorted({min(2 * batch_size, max_envs), max_envs}):
        each = [n for n in range(1, batch_size + 1) if batch_size % n == 0 and batch_size < n * workers <= limit]
        if each:
            yield _workers(each[-1] * workers, workers, batch_size, False)


def _workers(num_envs: int, workers: int, batch_size: int, zero_copy: bool) -> Kwargs:
    return {
        "backend": "Multiprocessing",
        "num_envs": num_envs,
        "num_workers": workers,
        "batch_size": batch_size,
        "zero_copy": zero_copy,
    }
