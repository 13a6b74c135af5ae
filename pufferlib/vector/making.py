"""``make``: check every argument, choose what was left open, and start the backend."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pufferlib.cpus import usable_cpus
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.seeding import env_seed
from pufferlib.vector.base import VectorEnv
from pufferlib.vector.group import build_env, own_autoreset
from pufferlib.vector.plan import AUTORESET_MODES, ON_CRASH, EnvPlan, VectorPlan
from pufferlib.vector.processes import Multiprocessing
from pufferlib.vector.ray import Ray
from pufferlib.vector.ray.cluster import cluster_cpus
from pufferlib.vector.serial import Serial

__all__ = ["make"]

WHERE = "vector.make"
BACKENDS: dict[str, type[PufferEnv | VectorEnv]] = {
    "Serial": Serial,
    "Multiprocessing": Multiprocessing,
    "Ray": Ray,
    "PufferEnv": PufferEnv,
    "native": PufferEnv,
}
OPTIONS = {
    "num_workers": None,
    "batch_size": None,
    "zero_copy": True,
    "overwork": False,
    "autoreset": None,
    "timeout_s": 120.0,
    "on_crash": "raise",
}


def make(
    env_creator_or_creators: Callable[..., Any] | Sequence[Callable[..., Any]],
    env_args: Sequence[Any] | None = None,
    env_kwargs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    backend: str | type[Any] = PufferEnv,
    num_envs: int = 1,
    seed: int = 0,
    **kwargs: Any,
) -> Any:
    """Run environments side by side, behind the interface of one.

    Args:
        env_creator_or_creators: A class or function that makes an environment and takes ``buf``
            (and ``seed``, if it likes), or a list with one for each environment.
        env_args: Positional arguments of the creator; with a list of creators a list of such lists.
        env_kwargs: Keyword arguments of the creator; with a list of creators a list of such dicts.
        backend: ``Serial``, ``Multiprocessing``, ``Ray`` or ``PufferEnv``, or its name. ``PufferEnv`` (or
            "native") returns the environment itself, which batches in native code.
        num_envs: Environments. With the native backend 1: give the environment its own ``num_envs``.
        seed: Environment i gets ``env_seed(seed, i)``, on every backend.
        **kwargs: ``num_workers``: processes, "auto" for as many as there are usable cores.
            ``batch_size``: environments that one ``recv`` returns, by default all; "auto" for half
            of them, so that the others work meanwhile.
            ``zero_copy``: True: a batch is the next block of neighbouring rows. False: a batch is
            whoever is first, copied together.
            ``overwork``: allow more workers than usable cores.
            ``autoreset``: "next_step" (default of emulated environments), "same_step" or
            "disabled"; native environments that take the keyword get it, others have their own.
            ``timeout_s``: longest that building, resetting or stepping one environment may take in a
            worker before ``WorkerError``, by default 120.0; None: for ever. Nothing can stop what runs in
            this process: ``Serial`` and the native backend wait for ever.
            ``on_crash``: "raise", or "restart": a worker that fails, dies or takes too long is replaced, with
            ``Serial`` an environment that raises. The episodes it had are truncated, and an info
            counts ``worker_restarts``.

    Returns:
        A ``VectorEnv``, or with the native backend the ``PufferEnv``.

    Raises:
        APIUsageError: An argument is wrong, or an environment breaks the contract.
        UnknownNameError: A backend or keyword does not exist; the nearest one is suggested.
        WorkerError: An environment failed while it was made in a worker.
    """
    kind, options = _backend(backend), _options(kwargs)
    _check_int("num_envs", num_envs)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise APIUsageError(f"{WHERE}: seed must be an int, got {seed!r}")
    envs = _env_plans(env_creator_or_creators, env_args, env_kwargs, int(num_envs), int(seed))
    return _native(envs, options) if kind is PufferEnv else kind(_plan(kind, envs, int(seed), options))


def _plan(kind: type[Any], envs: tuple[EnvPlan, ...], seed: int, options: Mapping[str, Any]) -> VectorPlan:
    num_workers, batch_size = _sizes(kind, len(envs), options)
    return VectorPlan(
        envs=envs,
        batch_size=batch_size,
        num_workers=num_workers,
        zero_copy=options["zero_copy"],
        autoreset=options["autoreset"],
        seed=seed,
        timeout_s=options["timeout_s"],
        on_crash=options["on_crash"],
    )


def _backend(backend: object) -> type[Any]:
    if isinstance(backend, str) and backend in BACKENDS:
        return BACKENDS[backend]
    if any(backend is known for known in BACKENDS.values()):
        return backend  # type: ignore[return-value]
    raise UnknownNameError.of(WHERE, "backend", getattr(backend, "__name__", backend), BACKENDS)


def _check_int(name: str, value: object, extra: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise APIUsageError(f"{WHERE}: {name} must be an int{extra}, got {value!r}")
    if value < 1:
        raise APIUsageError(f"{WHERE}: {name} must be at least 1, got {value}")


def _options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """``kwargs``, checked, and the defaults of those left out."""
    for name in kwargs:
        if name not in OPTIONS:
            raise UnknownNameError.of(WHERE, "keyword", name, OPTIONS)
    options = {**OPTIONS, **kwargs}
    for name in ("num_workers", "batch_size"):
        if options[name] not in (None, "auto"):
            _check_int(name, options[name], ' or "auto"')
            options[name] = int(options[name])  # products of small numpy integers overflow
    for name in ("zero_copy", "overwork"):
        if not isinstance(options[name], bool):
            raise APIUsageError(f"{WHERE}: {name} must be True or False, got {options[name]!r}")
    timeout_s = options["timeout_s"]
    if timeout_s is not None and not (_is_real(timeout_s) and 0 < timeout_s < math.inf):
        raise APIUsageError(f"{WHERE}: timeout_s must be a number of seconds above 0, or None, got {timeout_s!r}")
    if options["on_crash"] not in ON_CRASH:
        raise UnknownNameError.of(WHERE, "on_crash", options["on_crash"], ON_CRASH)
    if options["autoreset"] not in (None, *AUTORESET_MODES):
        raise UnknownNameError.of(WHERE, "autoreset", options["autoreset"], AUTORESET_MODES)
    return options


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _env_plans(creators: Any, args: Any, kwargs: Any, num_envs: int, seed: int) -> tuple[EnvPlan, ...]:
    """One plan per environment, from one creator for all or lists with one entry for each."""
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
    plans = []
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
        plans.append(EnvPlan(index, creator, tuple(arg), kwarg, env_seed(seed, index)))
    return tuple(plans)


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


def _native(envs: tuple[EnvPlan, ...], options: Mapping[str, Any]) -> PufferEnv:
    for name in ("num_workers", "batch_size"):
        if options[name] not in (None, "auto", 1):
            raise APIUsageError(
                f"{WHERE}: {name} must be left out with the native backend, which is one environment in this process, "
                f"got {name}={options[name]}; choose backend=pufferlib.vector.Multiprocessing, or another"
            )
    if options["on_crash"] != "raise":
        raise APIUsageError(
            f"{WHERE}: on_crash must be 'raise' with the native backend, which returns the environment itself, "
            f"got {options['on_crash']!r}; choose backend=pufferlib.vector.Multiprocessing, or Serial"
        )
    if len(envs) != 1:
        raise APIUsageError(
            f"{WHERE}: num_envs must be 1 with the native backend, got num_envs={len(envs)}; give the environment "
            f'its own, env_kwargs={{"num_envs": {len(envs)}}}, or choose another backend'
        )
    env = build_env(envs[0], None, options["autoreset"])
    if not isinstance(env, PufferEnv) or env.emulated:
        raise APIUsageError(
            f"{WHERE}: the native backend needs a PufferEnv that batches by itself, got {type(env).__name__}; "
            "choose backend=pufferlib.vector.Serial or Multiprocessing"
        )
    own_autoreset(env, options["autoreset"])
    return env


def _sizes(kind: type[Any], num_envs: int, options: Mapping[str, Any]) -> tuple[int, int]:
    """``num_workers`` and ``batch_size``, chosen where they were left open and checked where not."""
    workers, batch, contiguous = options["num_workers"], options["batch_size"], options["zero_copy"]
    if kind is Serial:
        workers, contiguous = num_envs, True  # any batch goes, as long as the batches are alike
    elif workers not in (None, "auto"):
        _check_workers(kind, workers, num_envs, options["overwork"])
    if batch not in (None, "auto") and batch > num_envs:
        raise APIUsageError(
            f"{WHERE}: batch_size must be at most num_envs, got batch_size={batch}, num_envs={num_envs}"
        )

    fixed = workers not in (None, "auto")
    choices = [workers] if fixed else [w for w in range(min(_cores(kind), num_envs), 0, -1) if num_envs % w == 0]
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


def _cores(kind: type[Any]) -> int:
    return cluster_cpus() if kind is Ray else usable_cpus()


def _check_workers(kind: type[Any], workers: int, num_envs: int, overwork: bool) -> None:
    if num_envs % workers:
        lower, upper = num_envs // workers * workers, -(-num_envs // workers) * workers
        hint = f"try {lower} or {upper}" if lower else f"try {upper}"
        raise APIUsageError(
            f"{WHERE}: num_envs must be a multiple of num_workers, "
            f"got num_envs={num_envs}, num_workers={workers}; {hint}."
        )
    cores = _cores(kind)
    if workers > cores and not overwork:
        owner = " of the Ray cluster" if kind is Ray else ""
        raise APIUsageError(
            f"{WHERE}: num_workers must be at most the {cores} usable cores{owner}, got num_workers={workers}; "
            f"try num_workers={cores}, or overwork=True if you know that it helps"
        )


def _valid_batches(num_envs: int, envs_per_worker: int, contiguous: bool) -> list[int]:
    """Batch sizes of whole workers, and of equal blocks if they are to be contiguous; ascending."""
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
        f"got num_envs={num_envs}, batch_size={batch}; {hint}, or Multiprocessing with zero_copy=False."
    )
