"""Lookup of environments by name. Nothing is imported before its first use.

Ocean environments have plain names, and environments of bindings are named ``binding/name``. ``inside`` finds these,
and ``outside`` resolves the names of environments that are not in this repository. ``objects`` imports Python objects
by name, ``creators`` makes environments of any kind, and ``facts`` reads what a binding needs.
"""

import tomllib
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pufferlib.errors import APIUsageError, UnknownKeywordError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.registry.inside import (
    agent_file,
    binding_facts,
    binding_module,
    bindings,
    folder,
    inside_names,
    is_inside,
    names,
    policies,
    same_title,
)
from pufferlib.registry.objects import (
    full_name,
    is_new_name,
    is_object_name,
    load_object,
    moved_name,
    short_name,
    source_file,
    split_name,
)
from pufferlib.registry.outside import (
    Registration,
    c_file,
    likely_names,
    name_in_file,
    names_of_file,
    outside_creator,
    register,
    registrations,
)

if TYPE_CHECKING:
    from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
    from pufferlib.env import PufferEnv
    from pufferlib.ocean import OceanEnv, OceanName
    from pufferlib.vector.vector_env import VectorEnv

__all__ = [
    "EnvName",
    "Registration",
    "agent_file",
    "batches_itself",
    "binding_facts",
    "both_sides",
    "c_file",
    "env_creator",
    "folder",
    "full_name",
    "is_inside",
    "is_new_name",
    "is_object_name",
    "keyword_kinds",
    "list_envs",
    "load_object",
    "make",
    "moved_name",
    "name_in_file",
    "names",
    "names_of_file",
    "own_keywords",
    "policies",
    "register",
    "registrations",
    "same_game",
    "short_name",
    "source_file",
    "split_name",
    "unknown_env",
]

Backend = TypeVar("Backend", bound="VectorEnv")
EnvName = str | PathLike[str] | Callable[..., Any]

_OWN_ENV_HINT = (
    "name your own as path/to/file.py:Class or module:Class; pass a class of a notebook to pufferlib.make or "
    "pufferlib.train itself, or name it with pufferlib.register"
)

_BOTH_SIDES = {"players": 2, "script_opponents": False}  # parameters of C environments that select both sides


def list_envs() -> list[str]:
    """Return the names of all environments: Ocean, then bindings as ``binding/name``, then registered ones.

    Each group is sorted. ``make`` also accepts names of modules and files, and Gymnasium ids. These are not listed.
    """
    return inside_names() + sorted(registrations())


def env_creator(name: str | PathLike[str], where: str = "pufferlib.env_creator") -> Callable[..., Any]:
    """Return a function that makes environment ``name``, for example for ``vector.make``.

    The function accepts ``buf``, ``seed`` and the keyword arguments of the environment. It returns a ``PufferEnv``, or
    a wrapper from ``pufferlib.emulation`` around an environment that is written in Python. It can be pickled.

    Args:
        name: Name from ``list_envs()``, module and attribute ("mypkg.envs:Forage"), file and attribute
            ("path/to/my_env.py:Forage"), Gymnasium id ("CartPole-v1"), or ``Path`` of a file.
        where: Prefix of error messages.

    Raises:
        UnknownNameError: No environment has this name. The message suggests similar names.
        BindingMissing: The package behind the binding is not installed.
        APIUsageError: ``name`` is not a string or path, or the file or module in it cannot be imported.
    """
    from pufferlib import ocean

    if not isinstance(name, str | PathLike):
        raise APIUsageError(
            f"{where}: name must be a str, as in 'breakout', got {name!r}; pass a class or function to "
            "pufferlib.make, name it with pufferlib.register, or wrap an environment object with pufferlib.emulation"
        )
    name = fspath(name)
    binding, _, game = name.partition("/")
    if game and binding in bindings():
        try:
            creator: Callable[..., Any] = binding_module(binding).env_creator(game)
        except UnknownNameError:
            raise unknown_env(where, name) from None
        return creator
    if is_inside(name):
        return ocean.env_creator(name)
    found = outside_creator(where, name)
    if found is None:
        raise unknown_env(where, name)
    return found


def batches_itself(name: str) -> bool:
    """Return True if ``name`` refers to a C environment, or to a ``PufferEnv`` class outside this repository."""
    from pufferlib import ocean
    from pufferlib.registry import creators

    if is_inside(name):
        return name.removeprefix("puffer_") in ocean.names()
    return creators.batches_itself(env_creator(name))


def both_sides(name: str) -> dict[str, Any]:
    """Return the keyword arguments that let agents play both sides of a game.

    Without them, agents play one side against the built-in opponent. The result is empty if no argument does this.
    """
    from pufferlib import ocean

    binding, _, game = name.partition("/")
    if game and binding in bindings():
        facts = binding_facts().get(binding)
        return tomllib.loads(facts.both_sides) if facts else {}
    made = ocean.type_made_by(env_creator(name)) if is_inside(name) or c_file(name) else None
    known = {parameter.name for parameter in made.parameters} if made else set()
    return {key: value for key, value in _BOTH_SIDES.items() if key in known}


def own_keywords(name: str) -> dict[str, Any]:
    """Return the keyword arguments of an environment that is not in this repository, with their defaults.

    Raises:
        UnknownNameError: No environment has this name.
    """
    from pufferlib.registry import creators

    return creators.own_keywords(env_creator(name))


def keyword_kinds(name: str) -> dict[str, frozenset[Any]]:
    """Return the types that an environment declares for its keyword arguments.

    Raises:
        UnknownNameError: No environment has this name.
    """
    from pufferlib.registry import creators

    return creators.keyword_kinds(env_creator(name))


def unknown_env(where: str, name: str) -> UnknownNameError:
    """Return the error for an unknown environment name.

    The message suggests environments that have this name elsewhere (``PongNoFrameskip-v4``), or else similar names. If
    ``name`` starts with a binding, only names of that binding are suggested.
    """
    everything = list_envs()
    binding, _, game = name.partition("/")
    inside = [known for known in everything if known.startswith(f"{binding}/")]
    if inside and not game:
        facts = binding_facts().get(binding)
        example = f"{binding}/{facts.example}" if facts else inside[0]
        return UnknownNameError(
            f"{where}: unknown environment {name!r}; {binding} has {len(inside)} environments, for example {example}; "
            f"{as_typed(f'puffer list {binding}')} lists them"
        )
    known = inside or everything
    ids = [] if inside else _ids()
    same = [*same_title(name, known)[:2], *same_title(name, ids)[-1:]]  # such as "taxi" and "Taxi-v4" for "Taxi-v3"
    close = likely_names(name) or same or nearest(name, [*known, *ids])
    own = f"there is no module {name.partition(':')[0]}" if is_object_name(name) else _OWN_ENV_HINT
    if close or inside:
        error = str(UnknownNameError.of(where, "environment", name, known, close))
        own = f" {own[0].upper()}{own[1:]}" if error.endswith("?") else f"; {own}"
        return UnknownNameError(error + own)
    shows = as_typed("puffer list")
    return UnknownNameError(f"{where}: unknown environment {name!r}; {shows} lists the known names; {own}")


def _ids() -> list[str]:
    """Return the ids of the environments that Gymnasium itself provides."""
    import gymnasium

    return [name for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith("gymnasium.")]


def same_game(env_id: str) -> list[str]:
    """Return the names in pufferlib for the game with Gymnasium id ``env_id``, bindings first."""
    is_id = not (is_inside(env_id) or is_object_name(env_id) or env_id in registrations())
    return same_title(env_id, list_envs()) if is_id else []


@overload
def make(name: "OceanName", /, *, num_envs: int | None = None, backend: None = None, **kwargs: Any) -> "OceanEnv": ...
@overload
def make(
    name: EnvName, /, *, num_envs: None = None, backend: None = None, **kwargs: Any
) -> "PufferEnv | GymnasiumPufferEnv | PettingZooPufferEnv": ...
@overload
def make(name: EnvName, /, *, num_envs: int | None = None, backend: type[Backend], **kwargs: Any) -> Backend: ...
@overload
def make(
    name: EnvName,
    /,
    *,
    num_envs: int | None = None,
    backend: Literal["Serial", "Multiprocessing", "Ray"],
    **kwargs: Any,
) -> "VectorEnv": ...
@overload
def make(
    name: EnvName,
    /,
    *,
    num_envs: int | None = None,
    backend: 'Literal["PufferEnv", "native"] | type[PufferEnv]',
    **kwargs: Any,
) -> "PufferEnv": ...
@overload
def make(
    name: EnvName,
    /,
    *,
    num_envs: int,
    backend: "str | type[PufferEnv | VectorEnv] | None" = None,
    **kwargs: Any,
) -> "PufferEnv | VectorEnv": ...
@overload
def make(
    name: EnvName, /, *, backend: "str | type[PufferEnv | VectorEnv]", **kwargs: Any
) -> "PufferEnv | VectorEnv": ...
def make(
    name: EnvName,
    /,
    *,
    num_envs: int | None = None,
    backend: "str | type[PufferEnv | VectorEnv] | None" = None,
    **kwargs: Any,
) -> "PufferEnv | GymnasiumPufferEnv | PettingZooPufferEnv | VectorEnv":
    """Make environment ``name``: ``make("breakout", num_envs=1024)``, ``make("CartPole-v1", num_envs=8)``.

    Args:
        name: Name of the environment, in any form that ``env_creator`` accepts, or a class or function that makes it.
        num_envs: Number of environments in the batch, or None for a single environment. If the environment has this
            argument itself, as C environments do, it makes the whole batch. Otherwise ``pufferlib.vector.make`` does.
        backend: Backend for ``pufferlib.vector.make``. None means "Serial", which runs in this process, unless the
            environment is also written in C, with the same results. Then the batch runs in C, with ``num_threads``
            threads (1 by default, "auto" for one per usable core). It has no Python objects to call. Its infos are the
            statistics of episodes, and for MuJoCo robots also their own infos. ``native=False``, or any option of
            ``pufferlib.vector.make`` except ``seed`` and ``autoreset``, selects the Python environments. Keyword
            arguments that C lacks select them too. They run in one thread.
        **kwargs: Keyword arguments of the environment. If ``pufferlib.vector.make`` makes the batch, its options are
            accepted too, such as ``seed``, ``num_workers`` and ``batch_size``. A name that both have is passed to the
            environment, except for ``seed``: each environment gets its own seed.

    Returns:
        A single environment as made by ``env_creator(name)``, or a batch of environments.

    Raises:
        UnknownNameError: No environment has this name. The message suggests similar names.
        APIUsageError: The environment does not accept a keyword argument, or a value is out of range.
        BindingMissing: The package behind the binding is not installed.
    """
    try:
        return _made(name, num_envs, backend, kwargs)  # type: ignore[no-any-return]
    except UnknownKeywordError as error:
        raise _with_options_of_make(error, kwargs, is_batch=num_envs is not None or backend is not None) from None


def _made(env: EnvName, num_envs: int | None, backend: Any, kwargs: dict[str, Any]) -> Any:
    from pufferlib.registry import creators

    if isinstance(env, str | PathLike):
        creator = env_creator(env)
    elif callable(env):
        creator = creators.creator_of(getattr(env, "__qualname__", repr(env)), env)
    else:
        raise APIUsageError(
            f"pufferlib.make: expected the name of an environment, a class or a function, got {env!r}; wrap an object "
            "with pufferlib.emulation.GymnasiumPufferEnv"
        )
    if backend is None and num_envs is None:
        return creator(**kwargs)
    if backend in (None, "native") and num_envs is not None and _takes_num_envs(env, creator):
        return creator(num_envs=num_envs, **kwargs)
    from pufferlib.vector.factory import VectorOptions, make as make_vector

    count = 1 if num_envs is None else num_envs
    options = {key: kwargs[key] for key in VectorOptions.__annotations__.keys() & kwargs}
    in_c: Any = {key: kwargs[key] for key in ("seed", "autoreset", "num_threads") if key in kwargs}
    if isinstance(env, str) and backend is None and options.keys() <= in_c.keys():
        from pufferlib.ocean.arguments import checked_threads
        from pufferlib.registry.twins import may_run_in_c, twin_of
        from pufferlib.vector.twins import TwinEnvs

        if (twin := twin_of(env, {key: value for key, value in kwargs.items() if key not in in_c})) is not None:
            return TwinEnvs(twin, count, **in_c)
        if "num_threads" in kwargs and kwargs.get("native", True) and may_run_in_c(env):
            checked_threads("pufferlib.make", kwargs.pop("num_threads"))  # Python environments have one
    own = creators.own_keywords(creator)
    given: Any = {key: kwargs.pop(key) for key in VectorOptions.__annotations__.keys() & kwargs if key not in own}
    return make_vector(creator, env_kwargs=kwargs, backend=backend or "Serial", num_envs=count, **given)


def _with_options_of_make(error: UnknownKeywordError, given: Iterable[str], is_batch: bool) -> UnknownKeywordError:
    """Add the options of ``make`` that are similar to the ``given`` keywords, which the environment rejected."""
    from pufferlib.vector.factory import VectorOptions

    options = ["num_envs", "backend", *VectorOptions.__annotations__]
    close = [option for key in given for option in nearest(key, options, count=1, cutoff=0.8)]
    close = [option for option in close if f"did you mean {option!r}" not in str(error)]
    if not close:
        return error
    condition = "" if is_batch or close[0] in options[:2] else ", together with num_envs"
    return type(error)(f"{error}; pufferlib.make itself takes {close[0]!r}{condition}")


def _takes_num_envs(env: EnvName, creator: Callable[..., Any]) -> bool:
    if not isinstance(env, str | PathLike):
        from pufferlib.registry import creators

        return creators.batches_itself(creator) or "num_envs" in creators.own_keywords(creator)
    name = fspath(env)
    binding, _, game = name.partition("/")
    if game and binding in bindings():
        return getattr(binding_module(binding), "TAKES_NUM_ENVS", False)
    return batches_itself(name) or "num_envs" in own_keywords(name)
