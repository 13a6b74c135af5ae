"""Argument checks and defaults for ``make`` and the backends."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.seeding import env_seed
from pufferlib.vector.specs import ON_CRASH, EnvSpec, VectorSpec

__all__ = ["WHERE", "Cores", "Count", "Creators", "EnvArgs", "EnvKwargs", "checked_options", "env_specs", "vector_spec"]

WHERE = "vector.make"

Creators = Callable[..., Any] | Sequence[Callable[..., Any]]
EnvArgs = Sequence[Any] | None
EnvKwargs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
Count = int | Literal["auto"] | None


@dataclass(frozen=True)
class Cores:
    """Cores that the workers of a backend run on: a function that counts them, and their name for messages."""

    count: Callable[[], int]
    name: str


def vector_spec(
    creators: Creators,
    env_args: EnvArgs,
    env_kwargs: EnvKwargs,
    num_envs: int,
    seed: int,
    options: Mapping[str, Any],
    cores: Cores | None,
) -> VectorSpec:
    """Check the arguments of ``make`` and return the spec that a backend runs.

    Args:
        creators: Creator of the environments, or a list with one for each. See ``make`` for all arguments.
        env_args: Positional arguments of the creators.
        env_kwargs: Keyword arguments of the creators.
        num_envs: Number of environments.
        seed: Base seed of the first reset.
        options: All other keyword arguments of ``make``.
        cores: Cores of the workers. None for a backend without workers.

    Raises:
        APIUsageError: An argument is wrong.
    """
    options = checked_options(options)
    envs = env_specs(creators, env_args, env_kwargs, num_envs, seed)
    num_workers, batch_size = _sizes(cores, len(envs), options)
    return VectorSpec(
        envs=envs,
        batch_size=batch_size,
        num_workers=num_workers,
        zero_copy=options["zero_copy"],
        autoreset=options["autoreset"],
        seed=int(seed),
        timeout_s=options["timeout_s"],
        on_crash=options["on_crash"],
        hide_output=options["hide_output"],
    )


def _check_int(name: str, value: object, extra: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise APIUsageError(f"{WHERE}: {name} must be an int{extra}, got {value!r}")
    if value < 1:
        raise APIUsageError(f"{WHERE}: {name} must be at least 1, got {value}")


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Check ``options`` and return a copy in which numpy integers are ints, and the autoreset mode is a member.

    Raises:
        APIUsageError: An option has an invalid value.
    """
    options = dict(options)
    for name in ("num_workers", "batch_size"):
        if options[name] not in (None, "auto"):
            _check_int(name, options[name], ' or "auto"')
            options[name] = int(options[name])  # products of small numpy integers overflow
    for name in ("zero_copy", "overwork", "hide_output"):
        if not isinstance(options[name], bool):
            raise APIUsageError(f"{WHERE}: {name} must be True or False, got {options[name]!r}")
    timeout_s = options["timeout_s"]
    if timeout_s is not None and not (_is_real(timeout_s) and 0 < timeout_s < math.inf):
        raise APIUsageError(f"{WHERE}: timeout_s must be a number of seconds above 0, or None, got {timeout_s!r}")
    if options["on_crash"] not in ON_CRASH:
        raise UnknownNameError.of(WHERE, "on_crash", options["on_crash"], ON_CRASH)
    if options["autoreset"] is not None:
        options["autoreset"] = AutoresetMode.of(WHERE, options["autoreset"])
    return options


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def env_specs(creators: Any, args: Any, kwargs: Any, num_envs: int, seed: int) -> tuple[EnvSpec, ...]:
    """Return one spec per environment, from one creator for all or lists with one entry for each.

    Raises:
        APIUsageError: An argument is wrong.
    """
    _check_int("num_envs", num_envs)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise APIUsageError(f"{WHERE}: seed must be an int, got {seed!r}")
    num_envs, seed = int(num_envs), int(seed)
    if isinstance(creators, list | tuple):
        _check_length("env_creators", creators, num_envs)
        args = [[] for _ in creators] if args is None else args
        kwargs = [{} for _ in creators] if kwargs is None else kwargs
        _check_length("env_args", args, num_envs)
        _check_length("env_kwargs", kwargs, num_envs)
    else:
        creators = [creators] * num_envs
        args = [[] if args is None else args] * num_envs
        kwargs = [{} if kwargs is None else kwargs] * num_envs
    specs = []
    for index, (creator, arg, kwarg) in enumerate(zip(creators, args, kwargs, strict=True)):
        if not callable(creator):
            is_name = isinstance(creator, str)
            raise APIUsageError(
                f"{WHERE}: an env_creator must be a class or function, got {creator!r} for environment {index}; pass "
                + (f"pufferlib.env_creator({creator!r})" if is_name else "the class itself, not an instance of it")
            )
        if not isinstance(arg, list | tuple):
            raise APIUsageError(
                f"{WHERE}: env_args must be a list or tuple, got {arg!r} for environment {index}; try [{arg!r}]"
            )
        if not isinstance(kwarg, Mapping):
            raise APIUsageError(
                f"{WHERE}: env_kwargs must be a dict, got {kwarg!r} for environment {index}; "
                "for other keywords in each environment give lists of creators and of dicts"
            )
        if "buf" in kwarg:
            raise APIUsageError(
                f"{WHERE}: env_kwargs must not contain buf, got it for environment {index}; leave it out"
            )
        specs.append(EnvSpec(index, creator, tuple(arg), kwarg, env_seed(seed, index)))
    return tuple(specs)


def _check_length(name: str, values: object, num_envs: int) -> None:
    if not isinstance(values, list | tuple):
        raise APIUsageError(
            f"{WHERE}: {name} must be a list with one entry per environment when env_creators is a list, got {values!r}"
        )
    if len(values) != num_envs:
        raise APIUsageError(
            f"{WHERE}: {name} must have one entry per environment, "
            f"got {len(values)} entries and num_envs={num_envs}; try num_envs={len(values)}"
        )


def _sizes(cores: Cores | None, num_envs: int, options: Mapping[str, Any]) -> tuple[int, int]:
    """Return ``num_workers`` and ``batch_size``. Given values are checked, others are chosen."""
    workers, batch, contiguous = options["num_workers"], options["batch_size"], options["zero_copy"]
    if cores is None:
        workers, contiguous = num_envs, True  # without workers, any equal batches are valid
    elif workers not in (None, "auto"):
        _check_workers(cores, workers, num_envs, options["overwork"])
    if batch not in (None, "auto") and batch > num_envs:
        raise APIUsageError(
            f"{WHERE}: batch_size must be at most num_envs, got batch_size={batch}, num_envs={num_envs}"
        )

    # Choose the largest number of workers for which the batch size is valid.
    choices = [workers]
    if cores is not None and workers in (None, "auto"):
        choices = [w for w in range(min(cores.count(), num_envs), 0, -1) if num_envs % w == 0]
    for choice in choices:
        batches = _valid_batches(num_envs, num_envs // choice, contiguous)
        if batch is None:
            return choice, num_envs
        if batch == "auto":
            half = [size for size in batches if size <= max(1, num_envs // 2)]
            if half or choice == choices[-1]:
                return choice, half[-1] if half else num_envs
        elif batch in batches:
            return choice, batch
    raise _bad_batch(batch, num_envs, choices[0], contiguous)


def _check_workers(cores: Cores, workers: int, num_envs: int, overwork: bool) -> None:
    most = cores.count()
    is_too_many = workers > most and not overwork
    limit = min(num_envs, most if is_too_many else workers)
    fewer = next(w for w in range(limit, 0, -1) if num_envs % w == 0)
    if num_envs % workers:
        lower = num_envs // workers * workers
        near = f"num_envs={lower} or {lower + workers}" if lower else f"num_envs={workers}"
        raise APIUsageError(
            f"{WHERE}: num_envs must be a multiple of num_workers, got num_envs={num_envs}, num_workers={workers}; "
            f"try num_workers={fewer}{'' if is_too_many else f', or {near}'}."
        )
    if is_too_many:
        raise APIUsageError(
            f"{WHERE}: num_workers must be at most the {most} {cores.name}, got num_workers={workers}; "
            f"try num_workers={fewer}, or overwork=True if you know that it helps"
        )


def _valid_batches(num_envs: int, envs_per_worker: int, contiguous: bool) -> list[int]:
    """Return the valid batch sizes in ascending order: whole workers, and equal blocks if ``contiguous``."""
    sizes = range(envs_per_worker, num_envs + 1, envs_per_worker)
    return [size for size in sizes if not contiguous or num_envs % size == 0]


def _bad_batch(batch: int, num_envs: int, workers: int, contiguous: bool) -> APIUsageError:
    valid = _valid_batches(num_envs, num_envs // workers, contiguous)
    near = [size for size in valid if size < batch][-1:] + [size for size in valid if size > batch][:1]
    hint = f"try batch_size={' or '.join(map(str, near))}"
    each = num_envs // workers
    if batch % each:
        return APIUsageError(
            f"{WHERE}: batch_size must be a multiple of num_envs/num_workers={each}, "
            f"got batch_size={batch}, num_envs={num_envs}, num_workers={workers}; {hint}."
        )
    return APIUsageError(
        f"{WHERE}: num_envs must be a multiple of batch_size for contiguous batches, "
        f"got num_envs={num_envs}, batch_size={batch}; {hint}, or zero_copy=False."
    )
