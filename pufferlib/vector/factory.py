"""``make``: create a vector environment with the chosen backend."""

import inspect
import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from pufferlib.env import AutoresetLike, PufferEnv
from pufferlib.errors import APIUsageError, UnknownKeywordError, UnknownNameError
from pufferlib.machine.output import hidden_output, hide_output_of
from pufferlib.replays.recorder import Recorder
from pufferlib.vector.arguments import WHERE, Count, Creators, EnvArgs, EnvKwargs, checked_options, env_specs
from pufferlib.vector.env_runner import build_env, names_keyword, own_autoreset
from pufferlib.vector.multiprocessing import Multiprocessing
from pufferlib.vector.ray import Ray
from pufferlib.vector.serial import Serial
from pufferlib.vector.specs import EnvSpec, OnCrash
from pufferlib.vector.vector_env import VectorEnv

__all__ = ["VectorOptions", "make"]

Backend = TypeVar("Backend", bound=VectorEnv)

BACKENDS: dict[str, type[PufferEnv | VectorEnv]] = {
    "Serial": Serial,
    "Multiprocessing": Multiprocessing,
    "Ray": Ray,
    "PufferEnv": PufferEnv,
    "native": PufferEnv,
}


class VectorOptions(TypedDict, total=False):
    """Keyword arguments of ``make``, except for the environments and the backend."""

    seed: int
    num_workers: Count
    batch_size: Count
    zero_copy: bool
    overwork: bool
    autoreset: AutoresetLike | None
    timeout_s: float | None
    on_crash: OnCrash
    hide_output: bool
    record: str | os.PathLike[str] | None


@overload
def make(
    env_creator_or_creators: Creators,
    env_args: EnvArgs = None,
    env_kwargs: EnvKwargs = None,
    backend: type[PufferEnv] | Literal["PufferEnv", "native"] = PufferEnv,
    num_envs: int = 1,
    **options: Unpack[VectorOptions],
) -> PufferEnv: ...
@overload
def make(
    env_creator_or_creators: Creators,
    env_args: EnvArgs = None,
    env_kwargs: EnvKwargs = None,
    *,
    backend: type[Backend],
    num_envs: int = 1,
    **options: Unpack[VectorOptions],
) -> Backend: ...
@overload
def make(
    env_creator_or_creators: Creators,
    env_args: EnvArgs = None,
    env_kwargs: EnvKwargs = None,
    *,
    backend: Literal["Serial", "Multiprocessing", "Ray"],
    num_envs: int = 1,
    **options: Unpack[VectorOptions],
) -> VectorEnv: ...
@overload
def make(
    env_creator_or_creators: Creators,
    env_args: EnvArgs = None,
    env_kwargs: EnvKwargs = None,
    *,
    backend: str | type[PufferEnv | VectorEnv],
    num_envs: int = 1,
    **options: Unpack[VectorOptions],
) -> PufferEnv | VectorEnv: ...
def make(
    env_creator_or_creators: Creators,
    env_args: EnvArgs = None,
    env_kwargs: EnvKwargs = None,
    backend: str | type[PufferEnv | VectorEnv] = PufferEnv,
    num_envs: int = 1,
    seed: int = 0,
    *,
    num_workers: Count = None,
    batch_size: Count = None,
    zero_copy: bool = True,
    overwork: bool = False,
    autoreset: AutoresetLike | None = None,
    timeout_s: float | None = 120.0,
    on_crash: OnCrash = "raise",
    hide_output: bool = False,
    record: str | os.PathLike[str] | None = None,
    **unknown: Any,
) -> PufferEnv | VectorEnv:
    """Create a vector environment: many environments behind the interface of one.

    Args:
        env_creator_or_creators: Class or function that creates an environment, or a list with one per environment. It
            may take the keywords ``buf``, ``seed`` and ``autoreset``.
        env_args: Positional arguments of the creator. A list of such lists if there is a list of creators.
        env_kwargs: Keyword arguments of the creator. A list of such dicts if there is a list of creators.
        backend: ``Serial``, ``Multiprocessing``, ``Ray`` or ``PufferEnv``, as a class or by name, or any subclass of
            ``VectorEnv``. ``PufferEnv`` (or "native") returns the environment itself, which batches in native code.
        num_envs: Number of environments. Must be 1 with the native backend. Pass ``num_envs`` in ``env_kwargs``
            instead.
        seed: Base seed, any int. Environment i gets ``env_seed(seed, i)`` with every backend. With the native backend,
            it is only used if the environment takes the keyword ``seed``.
        num_workers: Number of worker processes. "auto" or None uses the largest divisor of ``num_envs`` up to the
            number of usable cores, or fewer if ``batch_size`` requires it. Ignored by ``Serial``, which has no workers.
        batch_size: Number of environments per ``recv``. None for all of them. "auto" for the largest valid number up to
            half of them, so that the others run meanwhile, or all if there is none.
        zero_copy: If True, a batch is the next block of adjacent rows. If False, a batch holds the environments that
            finish first, and their rows are copied together.
        overwork: Allow more workers than usable cores.
        autoreset: "next_step" (default of emulated environments), "same_step" or "disabled", or a member of
            ``gymnasium.vector.AutoresetMode``. It is passed to native environments that take the keyword. Other native
            environments have a fixed mode.
        timeout_s: Time limit in seconds for building, resetting or stepping one environment in a worker. A
            ``WorkerError`` is raised if it is exceeded. None disables it. ``Serial`` and the native backend have no
            time limit, because they run in this process.
        on_crash: "raise" an error, or "restart". With "restart", a worker that fails, dies or exceeds the time limit in
            a step or a full reset is replaced (``Serial``: an environment that raises). Its episodes are truncated, and
            an info counts ``worker_restarts``. The third failure without a finished step in between is raised.
        hide_output: Discard all output of the environments on stdout and stderr, from Python and C, starting with
            their construction. ``Serial`` and the native backend also discard output of other threads meanwhile.
        record: Folder for recordings. Each environment writes a bundle with all of its actions there, for ``puffer
            replay``. None writes a bundle only for a ``WorkerError``, with the seed and the last actions.
        **unknown: Any other keyword raises an error that suggests the closest match.

    Returns:
        A ``VectorEnv``, or the ``PufferEnv`` with the native backend.

    Raises:
        APIUsageError: An argument is wrong, or an environment does not follow the ``PufferEnv`` interface.
        UnknownNameError: A backend, a keyword, or a value of ``autoreset`` or ``on_crash`` does not exist. The closest
            match is suggested.
        WorkerError: An environment failed while it was built in a worker.
        BindingMissing: Ray, or a package that an environment needs, is not installed.
    """
    options = {
        "num_workers": num_workers,
        "batch_size": batch_size,
        "zero_copy": zero_copy,
        "overwork": overwork,
        "autoreset": autoreset,
        "timeout_s": timeout_s,
        "on_crash": on_crash,
        "hide_output": hide_output,
    }
    kind = _backend(backend)
    for name in unknown:
        known = [each for each in inspect.signature(make).parameters if each != "unknown"]
        raise UnknownKeywordError.of(WHERE, "keyword argument", name, known)
    if not isinstance(record, str | os.PathLike | None):
        raise APIUsageError(f"{WHERE}: record must be the path of a folder, or None, got {record!r}")
    if kind is PufferEnv:
        checked = checked_options(options)
        env = _native(env_specs(env_creator_or_creators, env_args, env_kwargs, num_envs, seed), checked)
    else:
        env = kind(env_creator_or_creators, env_args, env_kwargs, num_envs, seed=seed, **options)
    if record is None:
        return env
    specs = env_specs(env_creator_or_creators, env_args, env_kwargs, num_envs, seed)
    recorded: Any = Recorder(env, specs, record)  # passes isinstance checks for the class of env
    return recorded  # type: ignore[no-any-return]


def _backend(backend: object) -> type[Any]:
    if isinstance(backend, str) and backend in BACKENDS:
        return BACKENDS[backend]
    if backend is PufferEnv or (isinstance(backend, type) and issubclass(backend, VectorEnv)):
        return backend
    raise UnknownNameError.of(WHERE, "backend", getattr(backend, "__name__", backend), BACKENDS)


def _native(envs: tuple[EnvSpec, ...], options: Mapping[str, Any]) -> PufferEnv:
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
            f"{WHERE}: num_envs must be 1 with the native backend, which is the default, got num_envs={len(envs)}; "
            f"{_backend_hint(len(envs), envs[0])}"
        )
    with hidden_output() if options["hide_output"] else nullcontext():
        env = build_env(envs[0], None, options["autoreset"])
    try:
        if not isinstance(env, PufferEnv) or env.emulated:
            raise APIUsageError(
                f"{WHERE}: the native backend needs a PufferEnv that batches by itself, got {type(env).__name__}; "
                "choose backend=pufferlib.vector.Serial or Multiprocessing"
            )
        own_autoreset(env, options["autoreset"])
    except APIUsageError:
        env.close()
        raise
    if options["hide_output"]:
        hide_output_of(env, "reset", "step", "notify", "call", "close")
    return env


def _backend_hint(num_envs: int, env: EnvSpec) -> str:
    """Return advice on how to run ``num_envs`` environments like ``env``."""
    backends = 'choose backend="Serial" or "Multiprocessing"'
    if not names_keyword(env, "num_envs"):
        return backends
    return f'give the environment its own, env_kwargs={{"num_envs": {num_envs}}}, or {backends}'
