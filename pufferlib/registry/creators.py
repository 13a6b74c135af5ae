"""Conversion of environment classes and factory functions to creators for ``vector.make``."""

import contextlib
import dataclasses
import enum
import functools
import inspect
import os
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from pettingzoo import AECEnv, ParallelEnv

from pufferlib.box2d.table import has_box2d
from pufferlib.buffers import Array
from pufferlib.emulation import DMEnvToGymnasium, GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.emulation.construct import check_kind
from pufferlib.emulation.dm_env import is_dm_env
from pufferlib.emulation.legacy_api import converted
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError, BindingMissing, PufferError, UnknownKeywordError
from pufferlib.registry.inside import binding_module, inside_names, same_title
from pufferlib.registry.toy_text import has_toy_text
from pufferlib.render.window import has_display
from pufferlib.robots.check import check_model
from pufferlib.robots.table import has_robot
from pufferlib.wrappers import EpisodeStats, MultiagentEpisodeStats

__all__ = [
    "batches_itself",
    "creator_of",
    "emulated",
    "gymnasium_creator",
    "keyword_kinds",
    "keywords_of",
    "own_keywords",
    "rejections_named",
    "render_modes",
    "single_game",
]

Creator = Callable[..., Any]


def creator_of(name: str, maker: Creator) -> Creator:
    """Return a creator ``(buf=None, seed=0, **keywords)`` for the environment that ``maker(**keywords)`` makes.

    Environments of Gymnasium, PettingZoo (parallel, turn-based and old ones) and dm_env are wrapped in ``EpisodeStats``
    and emulated. If ``EpisodeStats`` is already one of their wrappers, it is not added again. A ``PufferEnv`` is
    returned unchanged. ``buf`` and ``seed`` are passed to ``maker`` if it has parameters of these names. The creator
    can be pickled if ``maker`` can.

    Args:
        name: Name of the environment, for error messages.
        maker: Class or function that makes the environment.

    Raises:
        APIUsageError: ``maker`` is not callable.
    """
    if not callable(maker):
        raise APIUsageError(
            f"{name}: must be a class or a function that makes an environment, got {maker!r}; write def make(): ..."
        )
    if _is_class_of(maker, PufferEnv) and "render_mode" in keywords_of(maker)[0]:
        return maker
    return functools.partial(_create, name, maker)


def batches_itself(creator: Creator) -> bool:
    """Return True if ``creator`` is or calls a subclass of ``PufferEnv``."""
    maker = creator.args[1] if isinstance(creator, functools.partial) and creator.func is _create else creator
    while isinstance(maker, functools.partial):
        maker = maker.func
    return _is_class_of(maker, PufferEnv)


def single_game(creator: Creator, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``keywords`` with ``num_envs=1`` and without ``autoreset``.

    Only the keywords of a ``PufferEnv``, and of bindings whose environments are batches, are changed. In other
    environments, arguments of these names may have another meaning.
    """
    if not batches_itself(creator) and not _is_batch_of_binding(creator):
        return dict(keywords)
    found = {key: value for key, value in keywords.items() if key != "autoreset"}
    return {**found, "num_envs": 1} if "num_envs" in found else found


def _is_batch_of_binding(creator: Creator) -> bool:
    """Return True if ``creator`` is of a binding that makes a batch, with ``num_envs`` environments."""
    package = next(iter(creator.args), None) if isinstance(creator, functools.partial) else None
    if not isinstance(package, str) or not package.startswith("pufferlib.bindings."):
        return False
    return getattr(binding_module(package.rpartition(".")[2]), "TAKES_NUM_ENVS", False)


def own_keywords(creator: Creator) -> dict[str, Any]:
    """Return the named keyword arguments of ``creator`` with their defaults (None if there is no default)."""
    maker = _maker_of(creator)
    if maker is None:
        return {}
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # a C function without a signature
        return {}
    named = (item for item in parameters if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD))
    defaults = {item.name: None if item.default is item.empty else item.default for item in named}
    own = {name: value for name, value in defaults.items() if name not in ("buf", "seed", "render_mode")}
    return {**own, "native": True} if _has_twin(creator) else own


def keyword_kinds(creator: Creator) -> dict[str, frozenset[Any]]:
    """Return the types allowed for each keyword argument of ``creator``.

    They are taken from the annotation, or else from the default. A ``Literal`` gives its values instead of types.
    Arguments without an annotation whose default is not a number are omitted, because any type is allowed.
    """
    found = {item.name: _declared_types(item) for item in _parameters_of(_maker_of(creator)).values()}
    if _has_twin(creator):
        found["native"] = frozenset({bool})
    return {name: kinds for name, kinds in found.items() if kinds}


def render_modes(creator: Creator) -> tuple[str, ...] | None:
    """Return the render modes that the class of the environment declares, or None if they are unknown."""
    modes = (getattr(_maker_of(creator), "metadata", None) or {}).get("render_modes")
    return None if modes is None else tuple(modes)


def _parameters_of(maker: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of ``maker`` by name. Annotations that cannot be evaluated become ``Any``."""
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):  # a C function without a signature
        return {}
    while isinstance(maker, functools.partial):
        maker = maker.func
    functions = (maker.__init__, maker.__new__) if inspect.isclass(maker) else (maker, maker.__call__)
    names = ChainMap(*(getattr(inspect.unwrap(function), "__globals__", {}) for function in functions))

    def evaluated(hint: Any) -> Any:
        try:
            return evaluated(eval(hint, {}, names)) if isinstance(hint, str) else hint
        except Exception:
            return Any

    return {key: item.replace(annotation=evaluated(item.annotation)) for key, item in parameters.items()}


def _declared_types(item: inspect.Parameter) -> frozenset[Any]:
    if item.annotation is not inspect.Parameter.empty:
        return frozenset(_types_in_hint(item.annotation)) - {Any, object}
    kind = type(item.default)
    return frozenset({kind, type(None)} if kind in (bool, int, float) else ())


def _types_in_hint(hint: Any) -> Iterator[Any]:
    """Yield the types of a union, the values of a Literal, and the origin of a generic type."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, Annotated):
        for member in get_args(hint)[: 1 if origin is Annotated else None]:
            yield from _types_in_hint(member)
    elif origin is Literal:
        yield from get_args(hint)
    else:
        yield origin or hint


def _maker_of(creator: Creator) -> Any:
    """Return the class or function that ``creator`` calls, or None if it cannot be imported."""
    maker = creator.args[1] if isinstance(creator, functools.partial) and creator.func is _create else creator
    if isinstance(maker, functools.partial) and maker.func in (_make_registered, _make_original):
        entry = maker.args[0].entry_point
        try:
            return load_env_creator(entry) if isinstance(entry, str) else entry
        except (ImportError, gymnasium.error.DependencyNotInstalled):  # making the environment reports what is missing
            return None
    return maker


def _has_twin(creator: Creator) -> bool:
    """Return True if ``creator`` makes an environment that also exists in C."""
    maker = creator.args[1] if isinstance(creator, functools.partial) and creator.func is _create else creator
    return isinstance(maker, functools.partial) and maker.func is _make_original


def gymnasium_creator(spec: EnvSpec) -> Creator:
    """Return a creator for an environment that is registered with Gymnasium.

    It accepts the keyword arguments of the environment and ``max_episode_steps``.
    """
    has_twin = has_toy_text(spec) or has_robot(spec) or has_box2d(spec)
    maker = _make_original if has_twin else _make_registered
    return functools.partial(_create, spec.id, functools.partial(maker, spec))


def emulated(env: Any, buf: Mapping[str, Array] | None, seed: int) -> Any:
    """Emulate a Gymnasium, PettingZoo or dm_env environment. Add ``EpisodeStats`` if it is not among its wrappers."""
    env = DMEnvToGymnasium(env) if is_dm_env(env) else converted(env)
    if isinstance(env, gymnasium.Env):
        return GymnasiumPufferEnv(env=_with_stats(env, EpisodeStats), buf=buf, seed=seed)
    if not hasattr(env, "possible_agents"):
        check_kind("emulation", (gymnasium.Env, ParallelEnv, AECEnv), env)
    return PettingZooPufferEnv(env=_with_stats(env, MultiagentEpisodeStats), buf=buf, seed=seed)


def keywords_of(maker: Creator) -> tuple[set[str], bool]:
    """Return the keyword arguments of a class or function, and whether it accepts any others.

    The arguments of a class include the arguments of its base classes if ``__init__`` passes ``**kwargs`` on.
    """
    keywords: set[str] = set()
    makers: Iterable[Any] = [maker]
    if inspect.isclass(maker):
        makers = [vars(kind)["__init__"] for kind in inspect.getmro(maker) if "__init__" in vars(kind)]
    for function in makers:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):  # a C function without a signature
            return keywords, True
        keywords |= {item.name for item in parameters if item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)}
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            return keywords - {"self"}, False
    # If every __init__ passes **kwargs on, although object accepts none, the class reads them itself (kwargs.get).
    return keywords - {"self"}, makers != [object.__init__]


def _create(
    name: str, maker: Creator, /, buf: Mapping[str, Array] | None = None, seed: int = 0, **keywords: Any
) -> Any:
    known, takes_any = keywords_of(maker)
    for keyword in keywords.keys() - known - {"render_mode"} if not takes_any else ():
        raise UnknownKeywordError.of(name, "keyword argument", keyword, known - {"buf", "seed"})
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
    """Convert values in ``keywords`` where the annotation, or else the default, is a tuple or an enum.

    Settings files and the command line have neither. A list becomes a tuple, and a value or name the member of an enum.

    Raises:
        APIUsageError: A string, list or dict was given for a number, a fraction for an ``int``, a string for a
            container, or a value that is not in a Literal or enum.
    """
    found, parameters = dict(keywords), _parameters_of(maker)
    for key in keywords.keys() & parameters.keys():
        hint, default, value = parameters[key].annotation, parameters[key].default, keywords[key]
        kinds = {type(default)} if hint is inspect.Parameter.empty else {*_types_in_hint(hint)}
        kinds -= {None, type(None)}
        is_wrong = kinds <= _NUMBERS and isinstance(value, str | list | dict)
        if hint is not inspect.Parameter.empty and kinds <= {int, bool} and isinstance(value, float):
            is_wrong = not value.is_integer()
        if kinds and (is_wrong or (kinds <= _CONTAINERS and isinstance(value, str))):
            kind = " or ".join(sorted(each.__name__ for each in kinds))
            now = "" if default is inspect.Parameter.empty else f"; its default is {default!r}"
            raise APIUsageError(f"{name}: {key} must be {kind}, got {value!r}{now}")
        if kinds == {tuple} and isinstance(value, list):
            found[key] = tuple(value)
        elif kinds and isinstance(value, str | int) and not isinstance(value, enum.Enum):
            found[key] = _one_of(f"{name}: {key}", kinds, value)
    return found


def _one_of(where: str, kinds: set[Any], value: str | int) -> Any:
    """Return ``value``, or its member of an enum in ``kinds``. Raise APIUsageError if they have other values."""
    kind = next(iter(kinds))
    if len(kinds) == 1 and isinstance(kind, enum.EnumType):
        with contextlib.suppress(ValueError):
            return kind(value)
        members: Mapping[Any, Any] = kind.__members__
        if value in members:
            return members[value]
        allowed = [member.value for member in members.values()]
    else:
        allowed = [each for each in kinds if isinstance(each, str | int)]
        if value in allowed or len(allowed) < len(kinds):  # other kinds than values of a Literal
            return value
    raise APIUsageError(f"{where} must be one of {', '.join(sorted(map(repr, allowed)))}, got {value!r}")


def _make(name: str, maker: Creator, keywords: dict[str, Any]) -> Any:
    """Call ``maker``, without ``render_mode`` if it does not accept that argument."""
    try:
        inspect.signature(maker).bind(**{key: keywords[key] for key in keywords.keys() - {"render_mode"}})
    except ValueError:  # a C function without a signature
        pass
    except TypeError as error:
        raise APIUsageError(f"{name}: {error}; pass it as --env.NAME VALUE, or set a default in the code") from error
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
    """Make an environment that is registered with Gymnasium, without the checks that the emulation does itself.

    The argument is the spec instead of the id, because a worker process may not have imported the module that
    registers the id.
    """
    try:
        entry = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
        assert entry is not None, spec.id
        limit: Any = max_episode_steps
        limit = int(limit) if isinstance(limit, np.integer) else limit  # Gymnasium accepts only Python's
        known, takes_any = keywords_of(entry)
        for keyword in keywords.keys() - known - spec.kwargs.keys() if not takes_any else ():
            allowed = known - {"render_mode"} | {"max_episode_steps"}
            raise UnknownKeywordError.of(spec.id, "keyword argument", keyword, allowed)
        modes = (getattr(entry, "metadata", None) or {}).get("render_modes", [render_mode])
        draws = render_mode is not None and render_mode in modes
        options = {**keywords, "render_mode": render_mode} if draws else dict(keywords)
        own = ("id", "disable_env_checker")  # names that gymnasium.make uses for its own parameters
        taken: dict[str, Any] = {key: options.pop(key) for key in own if key in options}
        lean = dataclasses.replace(spec, order_enforce=False, kwargs={**spec.kwargs, **taken})
        return gymnasium.make(lean, limit, disable_env_checker=True, **options)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        here = "".join(f"; {name} is the same game here" for name in same_title(spec.id, inside_names())[:1])
        raise BindingMissing(f"{spec.id}: Gymnasium cannot make it: {error}{here}") from error


#: Errors that Python or Gymnasium has for wrong values.
_REJECTIONS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError)


@contextlib.contextmanager
def rejections_named(where: str, keywords: Mapping[str, Any]) -> Iterator[None]:
    """Name the keyword arguments in the error of a class of Gymnasium that rejects one of them.

    Args:
        where: Name of the environment.
        keywords: Keyword arguments that the class is called with.

    Raises:
        APIUsageError: The class raised an error that Python or Gymnasium has for wrong values.
    """
    try:
        yield
    except PufferError:
        raise
    except _REJECTIONS as error:
        if not keywords:
            raise
        hint = "; the path of your own file must be absolute" if isinstance(error, OSError) else ""
        reason = str(error) or repr(error)  # an assertion may have no message
        raise APIUsageError(f"{where}: cannot be made with {dict(keywords)}: {reason}{hint}") from error


def _make_original(spec: EnvSpec, /, *, native: bool = True, **keywords: Any) -> Any:
    """Make an environment that also exists in C. ``native`` matters only to batches."""
    if has_box2d(spec):
        from pufferlib.box2d.engine import box2d

        with contextlib.suppress(ImportError):  # Gymnasium reports it
            box2d()  # without a warning that would crash the interpreter if warnings are errors
    if has_robot(spec):
        with contextlib.suppress(ImportError):  # Gymnasium reports it
            binding_module("mujoco").log_warnings()
        if keywords.get("render_mode") == "human" and not has_display():  # GLFW would end the process
            raise APIUsageError(
                f'{spec.id}: render_mode="human" needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; use '
                '"rgb_array"'
            )
    if isinstance(keywords.get("xml_file"), os.PathLike):
        keywords["xml_file"] = os.fspath(keywords["xml_file"])  # Gymnasium accepts no Path
    with rejections_named(spec.id, keywords):
        env = _make_registered(spec, **keywords)
    if has_robot(spec) and "xml_file" in keywords:
        check_model(spec.id, env, keywords["xml_file"])
    if has_robot(spec) and keywords.get("render_mode") == "rgb_array":
        return binding_module("mujoco").drawn_off_screen(spec.id, env)  # Gymnasium needs a display, or MUJOCO_GL
    return env


def _is_class_of(maker: object, kind: type) -> bool:
    return inspect.isclass(maker) and issubclass(maker, kind)


def _with_stats(env: Any, stats: type) -> Any:
    """Wrap ``env`` in ``stats``, unless it has such a wrapper already."""
    layer = env
    while layer is not None:
        if isinstance(layer, stats):
            return env
        layer = vars(layer).get("env")
    return stats(env)
