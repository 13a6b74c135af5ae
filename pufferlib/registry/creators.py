"""Creators of environments as ``vector.make`` takes them, from classes and functions that make any kind of one."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from pufferlib.buffers import Array
from pufferlib.emulation import DMEnvToGymnasium, GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.emulation.dm_env import is_dm_env
from pufferlib.emulation.legacy_api import converted
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.wrappers import EpisodeStats, MultiagentEpisodeStats

__all__ = [
    "batches_itself",
    "creator_of",
    "emulated",
    "gymnasium_creator",
    "keyword_kinds",
    "keywords_of",
    "own_keywords",
    "single_game",
]

Creator = Callable[..., Any]


def creator_of(name: str, maker: Creator) -> Creator:
    """Return a creator ``(buf=None, seed=0, **keywords)`` of what ``maker(**keywords)`` makes.

    The kind is found from what is made: environments of Gymnasium and PettingZoo, also turn-based (AEC) and old ones,
    and of dm_env are put into ``EpisodeStats`` (unless they have that inside) and emulated; a ``PufferEnv`` is taken as
    it is. A maker that names ``buf`` or ``seed`` gets them. It can be sent to workers if ``maker`` can.

    Args:
        name: Of the environment, for messages.
        maker: A class, or a function.

    Raises:
        APIUsageError: ``maker`` cannot be called.
    """
    if not callable(maker):
        raise APIUsageError(
            f"{name}: must be a class or a function that makes an environment, got {maker!r}; define def make(): ..."
        )
    if _is_class_of(maker, PufferEnv) and "render_mode" in keywords_of(maker)[0]:
        return maker
    return functools.partial(_create, name, maker)


def batches_itself(creator: Creator) -> bool:
    """True if ``creator`` is, or calls, a class of ``PufferEnv``."""
    maker = creator.args[1] if isinstance(creator, functools.partial) and creator.func is _create else creator
    while isinstance(maker, functools.partial):
        maker = maker.func
    return _is_class_of(maker, PufferEnv)


def single_game(creator: Creator, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``keywords`` for one game of what ``creator`` makes, without ``autoreset``.

    Only those of an environment that batches itself change. Another environment may have keywords of these names that
    mean something else.
    """
    if not batches_itself(creator):
        return dict(keywords)
    found = {key: value for key, value in keywords.items() if key != "autoreset"}
    return {**found, "num_envs": 1} if "num_envs" in found else found


def own_keywords(creator: Creator) -> dict[str, Any]:
    """Keywords that the maker of ``creator`` names, each with its default, None where it has none."""
    maker = _maker_of(creator)
    if maker is None:
        return {}
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # written in C: it does not say
        return {}
    named = (item for item in parameters if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD))
    defaults = {item.name: None if item.default is item.empty else item.default for item in named}
    return {name: value for name, value in defaults.items() if name not in ("buf", "seed", "render_mode")}


def keyword_kinds(creator: Creator) -> dict[str, frozenset[Any]]:
    """Return the types that each keyword of ``creator`` may have, by its annotation or else by its default.

    A Literal has its values in place of types. Keywords without an annotation whose default is no number are left out:
    they may have any type.
    """
    maker = _maker_of(creator)
    try:
        parameters = inspect.signature(maker, eval_str=True).parameters.values()
    except (TypeError, ValueError, NameError, AttributeError):  # in C, or annotated with what cannot be imported
        return {}
    found = {item.name: _kinds(item) for item in parameters}
    return {name: kinds for name, kinds in found.items() if kinds}


def _kinds(item: inspect.Parameter) -> frozenset[Any]:
    if item.annotation is not inspect.Parameter.empty:
        return frozenset(_members(item.annotation)) - {Any, object}
    kind = type(item.default)
    return frozenset({kind, type(None)} if kind in (bool, int, float) else ())


def _members(hint: Any) -> Iterator[Any]:
    """Yield the types of a union, the values of a Literal, and the origin of a generic type."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, Annotated):
        for member in get_args(hint)[: 1 if origin is Annotated else None]:
            yield from _members(member)
    elif origin is Literal:
        yield from get_args(hint)
    else:
        yield origin or hint


def _maker_of(creator: Creator) -> Any:
    """Return the class or function that ``creator`` calls; None if it cannot be imported."""
    maker = creator.args[1] if isinstance(creator, functools.partial) and creator.func is _create else creator
    if isinstance(maker, functools.partial) and maker.func is _make_registered:
        entry = maker.args[0].entry_point
        try:
            return load_env_creator(entry) if isinstance(entry, str) else entry
        except (ImportError, gymnasium.error.DependencyNotInstalled):  # making it will say what is missing
            return None
    return maker


def gymnasium_creator(spec: EnvSpec) -> Creator:
    """Return the creator of an environment that is registered with Gymnasium.

    It takes the keywords of the environment, and ``max_episode_steps``.
    """
    return functools.partial(_create, spec.id, functools.partial(_make_registered, spec))


def emulated(env: Any, buf: Mapping[str, Array] | None, seed: int) -> Any:
    """Emulate an environment of Gymnasium, PettingZoo or dm_env, in ``EpisodeStats`` unless it has that inside."""
    env = DMEnvToGymnasium(env) if is_dm_env(env) else converted(env)
    if isinstance(env, gymnasium.Env):
        return GymnasiumPufferEnv(env=_with_stats(env, EpisodeStats), buf=buf, seed=seed)
    return PettingZooPufferEnv(env=_with_stats(env, MultiagentEpisodeStats), buf=buf, seed=seed)


def keywords_of(maker: Creator) -> tuple[set[str], bool]:
    """Keywords that a class or function takes, a class also for those above it; and whether any other will do."""
    keywords: set[str] = set()
    makers: Iterable[Any] = [maker]
    if inspect.isclass(maker):
        makers = [vars(kind)["__init__"] for kind in inspect.getmro(maker) if "__init__" in vars(kind)]
    for function in makers:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):  # written in C: it does not say
            return keywords, True
        keywords |= {item.name for item in parameters if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)}
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            return keywords - {"self"}, False
    # A class whose every __init__ passes the rest on, though object takes none, reads them itself: kwargs.get("size").
    return keywords - {"self"}, makers != [object.__init__]


def _create(
    name: str, maker: Creator, /, buf: Mapping[str, Array] | None = None, seed: int = 0, **keywords: Any
) -> Any:
    known, takes_any = keywords_of(maker)
    for keyword in keywords.keys() - known - {"render_mode"} if not takes_any else ():
        raise UnknownNameError.of(name, "keyword", keyword, known - {"buf", "seed"})
    keywords = _as_declared(name, maker, keywords)
    own = {key: value for key, value in {"buf": buf, "seed": seed}.items() if key in known}
    env = _make(name, maker, {**own, **keywords})
    try:
        if isinstance(env, PufferEnv) or getattr(env, "emulated", False):
            return env
        if inspect.isclass(env) or not hasattr(env, "step"):
            raise APIUsageError(
                f"{name}: must make an environment of Gymnasium or PettingZoo, or a PufferEnv, got {env!r}"
            )
        return emulated(env, buf, seed)
    except BaseException:
        if callable(close := getattr(env, "close", None)):
            close()
        raise


_NUMBERS, _CONTAINERS = {int, float, bool}, {list, tuple, dict, set, frozenset}


def _as_declared(name: str, maker: Creator, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``keywords`` with tuples in place of lists where tuples are declared, by annotation or else by default.

    Raises:
        APIUsageError: A text or a list was given for a number, or a text for a list.
    """
    found = dict(keywords)
    try:
        parameters = inspect.signature(maker, eval_str=True).parameters
    except (TypeError, ValueError, NameError):  # written in C, or annotated with what cannot be imported
        return found
    for key in keywords.keys() & parameters.keys():
        hint, default, value = parameters[key].annotation, parameters[key].default, keywords[key]
        kinds = {type(default)} if hint is inspect.Parameter.empty else {*_members(hint)}
        kinds -= {None, type(None)}
        is_wrong = kinds <= _NUMBERS and isinstance(value, str | list | dict)
        if kinds and (is_wrong or (kinds <= _CONTAINERS and isinstance(value, str))):
            kind = " or ".join(sorted(each.__name__ for each in kinds))
            now = "" if default is inspect.Parameter.empty else f"; its default is {default!r}"
            raise APIUsageError(f"{name}: {key} must be {kind}, got {value!r}{now}")
        if kinds == {tuple} and isinstance(value, list):  # files and the command line have lists alone
            found[key] = tuple(value)
    return found


def _make(name: str, maker: Creator, keywords: dict[str, Any]) -> Any:
    """Call ``maker``, without ``render_mode`` if it takes none: such an environment draws as it likes, or not."""
    try:
        inspect.signature(maker).bind(**{key: keywords[key] for key in keywords.keys() - {"render_mode"}})
    except ValueError:  # written in C
        pass
    except TypeError as error:
        raise APIUsageError(f"{name}: {error}; give it as --env.NAME VALUE, or a default in the code") from error
    try:
        return maker(**keywords)
    except TypeError as error:
        refused = "'render_mode'" in str(error) or "takes no arguments" in str(error)
        if "render_mode" not in keywords or not refused:
            raise
        return maker(**{key: keywords[key] for key in keywords.keys() - {"render_mode"}})


def _make_registered(
    spec: EnvSpec, /, *, render_mode: str | None = None, max_episode_steps: int | None = None, **keywords: Any
) -> Any:
    """Make an environment of Gymnasium's, without the checks that are the emulation's task.

    It takes the spec, not the id, which a worker would not know that has not imported what registers it.
    """
    try:
        entry = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
        assert entry is not None, spec.id
        known, takes_any = keywords_of(entry)
        for keyword in keywords.keys() - known - spec.kwargs.keys() if not takes_any else ():
            raise UnknownNameError.of(spec.id, "keyword", keyword, known - {"render_mode"} | {"max_episode_steps"})
        modes = (getattr(entry, "metadata", None) or {}).get("render_modes", [render_mode])
        options = {**keywords, "render_mode": render_mode} if render_mode in modes else dict(keywords)
        own = ("id", "disable_env_checker")  # names that gymnasium.make has for itself
        taken: dict[str, Any] = {key: options.pop(key) for key in own if key in options}
        lean = dataclasses.replace(spec, order_enforce=False, kwargs={**spec.kwargs, **taken})
        return gymnasium.make(lean, max_episode_steps, disable_env_checker=True, **options)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        from pufferlib import registry

        here = "".join(f"; {name} is the same game here" for name in registry.same_game(spec.id)[:1])
        raise BindingMissing(f"{spec.id}: Gymnasium cannot make it: {error}{here}") from error


def _is_class_of(maker: object, kind: type) -> bool:
    return inspect.isclass(maker) and issubclass(maker, kind)


def _with_stats(env: Any, stats: type) -> Any:
    """Return ``env``, in ``stats`` unless one of its wrappers is that already."""
    layer = env
    while layer is not None:
        if isinstance(layer, stats):
            return env
        layer = vars(layer).get("env")
    return stats(env)
