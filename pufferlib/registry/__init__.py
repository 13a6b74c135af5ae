"""Names to environments: Ocean by plain name, bindings as ``binding/name``, and yours; each loaded on first use.

``outside`` has the names of what is not in this repository, ``objects`` imports Python objects by name, ``creators``
makes environments of any kind, ``facts`` says what a binding needs.
"""

import functools
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pufferlib.errors import APIUsageError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.registry.facts import Facts, all_facts
from pufferlib.registry.objects import (
    full_name,
    is_object_name,
    load_object,
    moved_name,
    short_name,
    source_file,
)
from pufferlib.registry.outside import Registration, c_file, likely_names, outside_creator, register, registrations

if TYPE_CHECKING:
    from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
    from pufferlib.env import PufferEnv
    from pufferlib.vector.vector_env import VectorEnv

__all__ = [
    "Registration",
    "batches_itself",
    "binding_facts",
    "both_sides",
    "c_file",
    "env_creator",
    "folder",
    "full_name",
    "is_inside",
    "is_object_name",
    "keyword_kinds",
    "list_envs",
    "load_object",
    "make",
    "moved_name",
    "names",
    "own_keywords",
    "policies",
    "register",
    "registrations",
    "same_game",
    "short_name",
    "source_file",
    "unknown_env",
]

Backend = TypeVar("Backend", bound="VectorEnv")

_OWN = (
    "your own is path/to/file.py:Class or module:Class; one of a notebook needs pufferlib.register(name, Class) first"
)

_BOTH_SIDES = {"players": 2, "script_opponents": False}  # of games in C, by the names of their parameters


def list_envs() -> list[str]:
    """Return every name that ``make`` knows: Ocean's, then ``binding/name`` of each binding, then registered ones.

    Each of these is sorted. It also takes names of modules, files and Gymnasium's ids, which nothing lists.
    """
    from pufferlib import ocean

    bound = [f"{binding}/{name}" for binding in _bindings() for name in _binding(binding).names()]
    return sorted([*ocean.names(), *ocean.python_names()]) + sorted(bound) + sorted(registrations())


def env_creator(name: str | PathLike[str], where: str = "pufferlib.env_creator") -> Callable[..., Any]:
    """Return the function that makes environment ``name``, for ``vector.make``; it can be pickled.

    It takes ``buf``, ``seed`` and the keywords of the environment, and returns a ``PufferEnv``, or
    a wrapper of ``pufferlib.emulation`` around an environment that is written in Python.

    Args:
        name: Of ``list_envs()``, or of one that is not in this repository: "mypkg.envs:Forage" (module and attribute),
            "path/to/my_env.py:Forage", or an id of Gymnasium's, "CartPole-v1". Or the ``Path`` of a file.
        where: Begins the message of an error.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        BindingMissing: The package behind the binding is not installed.
        APIUsageError: The file or module that it names cannot be imported.
    """
    from pufferlib import ocean

    if not isinstance(name, str | PathLike):
        raise APIUsageError(
            f"{where}: name must be a str, as in 'breakout', got {name!r}; pufferlib.register gives what you have a "
            "name, and pufferlib.emulation wraps an environment that exists"
        )
    name = fspath(name)
    binding, _, game = name.partition("/")
    if game and binding in _bindings():
        try:
            creator: Callable[..., Any] = _binding(binding).env_creator(game)
        except UnknownNameError:
            raise unknown_env(where, name) from None
        return creator
    if is_inside(name):
        return ocean.env_creator(name)
    found = outside_creator(where, name)
    if found is None:
        raise unknown_env(where, name)
    return found


def is_inside(name: str) -> bool:
    """True for the form of a name of this repository: of Ocean, or of one of its bindings."""
    from pufferlib import ocean

    binding, _, game = name.partition("/")
    is_bound = bool(game) and binding in _bindings()
    return is_bound or name.removeprefix("puffer_") in (*ocean.names(), *ocean.python_names())


def batches_itself(name: str) -> bool:
    """True if ``name`` stands for environments in C, or for a class of ``PufferEnv``."""
    from pufferlib import ocean
    from pufferlib.registry import creators

    if is_inside(name):
        return name.removeprefix("puffer_") in ocean.names()
    return creators.batches_itself(env_creator(name))


def both_sides(name: str) -> dict[str, Any]:
    """Return the keywords with which agents play both sides of a game, instead of one against its own opponent.

    Empty where no keyword does that.
    """
    from pufferlib import ocean

    binding, _, game = name.partition("/")
    if game and binding in _bindings():
        facts = binding_facts().get(binding)
        return tomllib.loads(facts.both_sides) if facts else {}
    made = ocean.type_made_by(env_creator(name)) if is_inside(name) or c_file(name) else None
    known = {parameter.name for parameter in made.parameters} if made else set()
    return {key: value for key, value in _BOTH_SIDES.items() if key in known}


def own_keywords(name: str) -> dict[str, Any]:
    """Return the keywords of an environment that is not in this repository, with their defaults.

    Raises:
        UnknownNameError: No environment has this name.
    """
    from pufferlib.registry import creators

    return creators.own_keywords(env_creator(name))


def keyword_kinds(name: str) -> dict[str, frozenset[Any]]:
    """Return the types that the keywords of an environment may have, as far as it declares them.

    Raises:
        UnknownNameError: No environment has this name.
    """
    from pufferlib.registry import creators

    return creators.keyword_kinds(env_creator(name))


def unknown_env(where: str, name: str) -> UnknownNameError:
    """Return the error for a name that no environment has.

    Suggests those that bear it elsewhere (``PongNoFrameskip-v4``), or the nearest, of its binding if it names one.
    """
    everything = list_envs()
    binding, _, game = name.partition("/")
    inside = [known for known in everything if known.startswith(f"{binding}/")]
    if inside and not game:
        facts = binding_facts().get(binding)
        example = f"{binding}/{facts.example}" if facts else inside[0]
        return UnknownNameError(
            f"{where}: unknown environment {name!r}; {binding} has {len(inside)} of them, for example {example}; "
            f"{as_typed(f'puffer list {binding}')} shows all"
        )
    known = inside or everything
    close = likely_names(name) or _same_game(name, known)[:2] or nearest(name, [*known, *(() if inside else _ids())])
    own = f"there is no module {name.partition(':')[0]}" if is_object_name(name) else _OWN
    if close or inside:
        return UnknownNameError(f"{UnknownNameError.of(where, 'environment', name, known, close)}; {own}")
    shows = as_typed("puffer list")
    return UnknownNameError(f"{where}: unknown environment {name!r}; {shows} shows those that have a name; {own}")


def _ids() -> list[str]:
    """Ids of Gymnasium's own environments."""
    import gymnasium

    return [name for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith("gymnasium.")]


def same_game(env_id: str) -> list[str]:
    """Names here of a game that has the id ``env_id`` in Gymnasium, those of bindings first."""
    is_id = not (is_inside(env_id) or is_object_name(env_id) or env_id in registrations())
    return _same_game(env_id, list_envs()) if is_id else []


def _same_game(name: str, known: Iterable[str]) -> list[str]:
    same = [other for other in known if _title(other) == _title(name)] if _title(name) else []
    return sorted(same, key=lambda other: "/" not in other)


def _title(name: str) -> str:
    """Reduce a name to its game: "ALE/SpaceInvaders-v5" and "atari/space_invaders" are "spaceinvaders"."""
    game = re.split("[/:]", name)[-1].removeprefix("puffer_").lower()
    return re.sub(r"(-ram)?(noframeskip|deterministic)?-v\d+$|[^a-z0-9]", "", re.sub(r"[_ ]", "", game))


@overload
def make(
    name: str | PathLike[str], /, *, num_envs: None = None, backend: None = None, **kwargs: Any
) -> "PufferEnv | GymnasiumPufferEnv | PettingZooPufferEnv": ...
@overload
def make(
    name: str | PathLike[str], /, *, num_envs: int | None = None, backend: type[Backend], **kwargs: Any
) -> Backend: ...
@overload
def make(
    name: str | PathLike[str],
    /,
    *,
    num_envs: int,
    backend: "str | type[PufferEnv | VectorEnv] | None" = None,
    **kwargs: Any,
) -> "PufferEnv | VectorEnv": ...
@overload
def make(
    name: str | PathLike[str], /, *, backend: "str | type[PufferEnv | VectorEnv]", **kwargs: Any
) -> "PufferEnv | VectorEnv": ...
def make(
    name: str | PathLike[str],
    /,
    *,
    num_envs: int | None = None,
    backend: "str | type[PufferEnv | VectorEnv] | None" = None,
    **kwargs: Any,
) -> "PufferEnv | GymnasiumPufferEnv | PettingZooPufferEnv | VectorEnv":
    """Make environment ``name``: ``make("breakout", num_envs=1024)``, ``make("CartPole-v1", num_envs=8)``.

    Args:
        name: As ``env_creator`` takes it.
        num_envs: How many, in one batch. An environment that takes this keyword itself, as those in C do, makes them
            all. Others are run by ``pufferlib.vector.make``. None makes a single environment.
        backend: Of ``pufferlib.vector.make``. None means "Serial", in this process.
        **kwargs: Keywords of the environment. Where ``pufferlib.vector.make`` runs it, its options as well, such as
            ``seed``, ``num_workers`` and ``batch_size``. A keyword that both have belongs to the environment.

    Returns:
        What ``env_creator(name)`` makes, or the environments as one.

    Raises:
        UnknownNameError: No environment has this name; the nearest ones are suggested.
        APIUsageError: A keyword that the environment does not take, or a value out of its range.
        BindingMissing: The package behind the binding is not installed.
    """
    creator = env_creator(name)
    if backend is None and (num_envs is None or _takes_num_envs(fspath(name))):
        made: PufferEnv | GymnasiumPufferEnv | PettingZooPufferEnv = (
            creator(**kwargs) if num_envs is None else creator(num_envs=num_envs, **kwargs)
        )
        return made
    from pufferlib.vector.factory import VectorOptions
    from pufferlib.vector.factory import make as make_vector

    count = 1 if num_envs is None else num_envs
    own = own_keywords(fspath(name))
    given: Any = {key: kwargs.pop(key) for key in VectorOptions.__annotations__.keys() & kwargs if key not in own}
    return make_vector(creator, env_kwargs=kwargs, backend=backend or "Serial", num_envs=count, **given)


def _takes_num_envs(name: str) -> bool:
    binding, _, game = name.partition("/")
    if game and binding in _bindings():
        return getattr(_binding(binding), "TAKES_NUM_ENVS", False)
    return batches_itself(name) or "num_envs" in own_keywords(name)


def policies(env_name: str) -> ModuleType | None:
    """Import the module of policies that the environment or its binding brings, if it does; loading it loads torch."""
    from pufferlib import ocean

    binding, _, game = env_name.partition("/")
    name = env_name.removeprefix("puffer_")
    if game and binding in _bindings():
        module = f"pufferlib.bindings.{binding}.policy"
    elif name in (*ocean.names(), *ocean.python_names()):
        module = f"pufferlib.ocean.{name}.policy"
    else:
        return None
    return importlib.import_module(module) if find_spec(module) else None


def binding_facts() -> dict[str, Facts]:
    """Return the ``binding.toml`` of every binding (``pufferlib.registry.facts.Facts``), by name."""
    return all_facts()


def names(binding: str) -> tuple[str, ...]:
    """Return the environments of a binding, without its own name before them."""
    found: tuple[str, ...] = _binding(binding).names()
    return found


def folder(binding: str) -> Path:
    """Return the folder of a binding."""
    file = _binding(binding).__file__
    assert file is not None, binding
    return Path(file).parent


@functools.cache
def _bindings() -> tuple[str, ...]:
    package = importlib.import_module("pufferlib.bindings")
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(name for name in names if not name.startswith("_"))


def _binding(name: str) -> ModuleType:
    return importlib.import_module(f"pufferlib.bindings.{name}")
