"""Pickling for worker processes, with code of scripts, notebooks and files that are loaded by path."""

import builtins
import contextlib
import enum
import functools
import importlib
import importlib.machinery
import inspect
import io
import os
import pickle
import sys
import threading
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium

from pufferlib.errors import APIUsageError

__all__ = ["pickle_by_value", "pickled"]

_outdated: set[tuple[str, str]] = set()  # names, by module, that refer to outdated values in this process
_registry_lock = threading.RLock()  # cloudpickle's list of modules to pickle by value is global


def pickled(message: object) -> bytes:
    """Pickle a message of a worker.

    The pickler of multiprocessing is not used, because with it every torch tensor needs an open file in the parent.
    """
    try:  # twice as fast as the fallback
        return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception:
        pass
    data = io.BytesIO()
    _ByNamePickler(data, pickle.HIGHEST_PROTOCOL).dump(message)
    return data.getvalue()


class _ByNamePickler(pickle.Pickler):
    """Pickler that sends classes of the caller's script by name, since the caller has them."""

    def reducer_override(self, value: object) -> Any:
        """Return how to restore ``value``, or NotImplemented for the default of pickle."""
        if not isinstance(value, type) or "<locals>" in value.__qualname__:
            return NotImplemented
        name = value.__module__, value.__qualname__
        with contextlib.suppress(KeyError, AttributeError):
            if _lookup(*name) is value:
                return NotImplemented
        return _lookup, name


def _lookup(module: str, name: str) -> Any:
    """Return the object with this name in a module that is already imported."""
    return functools.reduce(getattr, name.split("."), sys.modules[module])


def pickle_by_value(value: object, with_registrations: bool = True) -> bytes:
    """Pickle ``value`` for a worker, which restores it with ``pickle.loads``.

    Functions, classes and modules that a worker cannot import, such as those of scripts and notebooks, are pickled by
    value. The worker adds them to modules of the original names, so that environments can pickle them too.

    Args:
        value: Value.
        with_registrations: The worker also registers the environments that are registered with Gymnasium here. They
            may be other versions of Gymnasium's own.

    Raises:
        APIUsageError: Some part of ``value`` cannot be pickled.
    """
    if not with_registrations:
        return _pickle(value)
    plain, others = [], []
    for spec in gymnasium.registry.values():
        if _is_plain([spec.entry_point, spec.vector_entry_point, spec.kwargs, spec.additional_wrappers]):
            plain.append(spec)
            continue
        with contextlib.suppress(APIUsageError):  # the workers may not need this one
            others.append((spec.id, _pickle(spec)))
    if not plain and not others:
        return _pickle(value)
    # Packages register hundreds of environments. Pickled together they take a third of the time.
    return _pickle(_WithSpecs(value, pickle.dumps(plain, pickle.HIGHEST_PROTOCOL), others))


def _is_plain(value: Any) -> bool:
    """Return True for what any process can unpickle: built-in values, and lists, tuples and dicts of them."""
    kind = type(value)
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return kind in (str, int, float, bool, bytes, types.NoneType)


class _WithSpecs:
    """Value that registers environments with Gymnasium when it is unpickled.

    Args:
        value: Value.
        plain: Pickled list of EnvSpecs that can be unpickled everywhere.
        others: Pairs of id and pickled EnvSpec.
    """

    def __init__(self, value: object, plain: bytes, others: Sequence[tuple[str, bytes]]) -> None:
        self._value, self._plain, self._others = value, plain, others

    def __reduce__(self) -> tuple[Any, ...]:
        return _register_specs, (self._plain, self._others, self._value)


def _register_specs(plain: bytes, others: Sequence[tuple[str, bytes]], value: object) -> object:
    for spec in pickle.loads(plain):
        gymnasium.registry[spec.id] = spec
    for name, spec in others:
        # Skip only the specs that fail: their arguments may need a module that is not installed here.
        with contextlib.suppress(Exception):
            gymnasium.registry[name] = pickle.loads(spec)
    # A package that is imported later registers its environments again. Hide the warning about that.
    warnings.filterwarnings("ignore", ".*Overriding environment .* already in registry")
    return value


def _pickle(value: object) -> bytes:
    data = io.BytesIO()
    with _registry_lock, contextlib.ExitStack() as stack:
        pickler = _ByValuePickler(data, stack)
        try:
            pickler.dump(value)
        except Exception as error:
            raise APIUsageError(
                "vector.make: this backend must be able to pickle creators and arguments, "
                f"got {error}{pickler.find_place()}; "
                "create objects that cannot be pickled (files, locks, windows) inside the creator, or use "
                "backend=Serial"
            ) from error
    return data.getvalue()


class _ByValuePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickler that sends everything a worker cannot import by value, with more types than cloudpickle.

    A lock that is a global of a function or an attribute of a class is sent as a new lock, because importing the module
    would create a new lock too. A lock as an argument is an error, because a copy would not lock anything.
    """

    def __init__(self, file: io.BytesIO, stack: contextlib.ExitStack) -> None:
        super().__init__(file)
        self._stack = stack
        self._seen: set[str] = set()
        self._owners: list[Any] = []  # functions, classes and modules sent by value, and objects that hold locks

    def reducer_override(self, value: Any) -> Any:
        """Return how to restore ``value``, or NotImplemented for the default of pickle."""
        kind = type(value)
        if kind in _LOCKS or kind in _LOCK_HOLDERS:
            return self._reduce_lock(value)
        if kind is types.CodeType:
            return self._reduce_code(value)
        if kind is types.ModuleType:
            self._register(value.__name__)
            if not _is_registered(value.__name__):
                return NotImplemented
            self._owners.append(value)
            return _reduce_module(value)
        is_dispatcher = kind is types.FunctionType and value.__code__ is _DISPATCHER
        reduce = _reduce_dispatcher if is_dispatcher else _REDUCERS.get(kind)
        if reduce or issubclass(kind, types.FunctionType | type | typing.TypeVar):
            self._register(value.__module__)
        if reduce:
            return _qualified_name(value) if _is_found_by_name(value) else reduce(value)
        reduced = super().reducer_override(value)
        if reduced is not NotImplemented:  # a function or class sent by value
            self._owners.append(value)
            if isinstance(value, types.FunctionType):
                reduced[2][1]["__globals__"].update(_globals_in_annotations(value))
            reduced = _reduce_enum(value, reduced) if isinstance(value, enum.EnumType) else reduced
            return _reduce_named(value, reduced)
        return reduced

    def _reduce_code(self, code: types.CodeType) -> Any:
        """Keep the file name of ``code``, so that tracebacks of workers show the file and its lines."""
        make, values = self.dispatch_table[types.CodeType](code)  # replaces the name since cloudpickle 3.1.3
        return make, tuple(code.co_filename if value == "<dynamic-code>" else value for value in values)

    def _reduce_lock(self, lock: Any) -> Any:
        if not any(lock is value for owner in self._owners for value in _namespace(owner).values()):
            return NotImplemented
        if type(lock) in _LOCKS:
            return _LOCKS[type(lock)], ()
        self._owners.append(lock)
        return NotImplemented

    def find_place(self) -> str:
        """Describe where the first object that cannot be pickled is, or return "" if that is unknown."""
        for owner in reversed(self._owners):  # the innermost first
            for name, value in _contents(owner):
                pickler = _ByValuePickler(io.BytesIO(), self._stack)
                pickler._owners = list(self._owners)
                try:
                    pickler.dump(value)
                except Exception:
                    return f" ({name} in {owner.__qualname__})"
        return ""

    def _register(self, module: str | None) -> None:
        """Pickle the contents of ``module`` by value from now on, if a worker cannot import it."""
        if module is None or module in self._seen:
            return
        self._seen.add(module)
        if not _is_registered(module) and _defined_by_caller(module):  # registrations by the caller are kept
            cloudpickle.register_pickle_by_value(sys.modules[module])
            self._stack.callback(cloudpickle.unregister_pickle_by_value, sys.modules[module])


def _namespace(owner: Any) -> Mapping[str, Any]:
    """Return the globals of a function, or the attributes of any other object."""
    return owner.__globals__ if isinstance(owner, types.FunctionType) else vars(owner)


def _contents(owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that are pickled with a function or class."""
    if isinstance(owner, types.FunctionType):
        code, cells = owner.__code__, owner.__closure__ or ()
        yield from ((k, owner.__globals__[k]) for k in code.co_names if k in owner.__globals__)
        yield from _globals_in_annotations(owner).items()
        filled = (cell for cell in zip(code.co_freevars, cells, strict=True) if cell[1] != types.CellType())
        yield from ((k, cell.cell_contents) for k, cell in filled)
    elif isinstance(owner, type):
        yield from ((k, v) for k, v in vars(owner).items() if k[:1] != "_" and not inspect.isdatadescriptor(v))


def _globals_in_annotations(function: types.FunctionType) -> dict[str, Any]:
    """Return the globals that the string annotations of ``function`` name. cloudpickle sends only those in the code.

    Only what makes environments needs them. The annotations of other methods may name large packages such as torch,
    which workers would import.
    """
    owner = function.__qualname__.rpartition(".")[0]
    if owner and not owner.endswith("<locals>") and function.__name__ not in ("__init__", "__new__", "__call__"):
        return {}
    names: list[str] = []
    for hint in function.__annotations__.values():
        with contextlib.suppress(Exception):  # text that is not an expression
            while isinstance(hint, str):
                code = compile(hint, "<annotation>", "eval")
                names += code.co_names
                hint = None if code.co_names else eval(code)  # a quoted annotation becomes a string in a string
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    # Aliases are pickled by name. Workers do not find the names of scripts.
    return {name: value for name, value in found.items() if type(value).__name__ != "TypeAliasType"}


def _reduce_enum(kind: Any, reduced: tuple[Any, ...]) -> Any:
    """Extend cloudpickle's reduction of an enum by aliases and by the attributes that ``__init__`` sets on members."""
    make, (bases, name, qualname, _, *rest), state, _, _, set_state = reduced
    members = kind.__members__
    for alias in members:
        state[0].pop(alias, None)  # an attribute of the class that cannot be set
    given = {name: {k: v for k, v in vars(m).items() if k[0] + k[-1] != "__"} for name, m in members.items()}
    values = {name: member.value for name, member in members.items()}
    return make, (bases, name, qualname, values, *rest), (set_state, state, given), None, None, _set_members


def _reduce_named(value: Any, reduced: tuple[Any, ...]) -> Any:
    """Extend the reduction of a function or class so that unpickling also adds it to its module."""
    if not value.__qualname__.isidentifier() or len(reduced) != 6:  # not at the top level of a module
        return reduced
    *recipe, state, items, pairs, set_state = reduced
    module = sys.modules.get(value.__module__)
    is_outdated = module is not None and vars(module).get(value.__name__) is not value
    return (*recipe, (set_state, state, is_outdated), items, pairs, _set_named)


def _set_named(value: Any, states: tuple[Callable[..., Any], Any, bool]) -> None:
    """Add ``value`` to its module, unless the module or an earlier message defines this name.

    A later value replaces one that is outdated, which is one whose name refers to something else in the caller: the
    base of ``class Env(Env)``, or a function inside its decorator.
    """
    set_state, state, is_outdated = states
    set_state(value, state)
    module = sys.modules.get(value.__module__) or _partial_module(value.__module__)
    name = value.__module__, value.__name__
    there = vars(module).get(value.__name__)
    if getattr(there, "__module__", None) != value.__module__ or name in _outdated:
        setattr(module, value.__name__, value)
        (_outdated.add if is_outdated else _outdated.discard)(name)


def _partial_module(name: str) -> types.ModuleType:
    """Add a module for objects sent by value. The rest of the module is loaded when another attribute is needed."""

    def load_rest(missing: str) -> Any:
        spec = None if missing.startswith("__") else _find_spec(name)
        if spec is None or spec.loader is None:
            raise AttributeError(f"module {name!r} has no attribute {missing!r}")
        sent = {key: value for key, value in vars(module).items() if not key.startswith("__")}
        del module.__getattr__
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        spec.loader.exec_module(module)
        vars(module).update(sent)
        return getattr(module, missing)

    module = sys.modules[name] = types.ModuleType(name)
    vars(module)["__builtins__"] = builtins  # marks a Python module, so that its objects are again sent by value
    module.__getattr__ = load_rest  # type: ignore[method-assign]
    return module


def _find_spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Return the import spec of a module, without looking it up in ``sys.modules``."""
    parent = name.rpartition(".")[0]
    path = importlib.import_module(parent).__path__ if parent else None
    specs = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


def _set_members(kind: Any, states: tuple[Callable[..., Any], Any, Mapping[str, Mapping[str, Any]]]) -> None:
    set_state, state, members = states
    set_state(kind, state)
    for name, values in members.items():
        vars(kind[name]).update(values)


def _reduce_module(module: types.ModuleType) -> Any:
    hidden = ("__builtins__", "__loader__", "__spec__")
    return types.ModuleType, (module.__name__,), {k: v for k, v in vars(module).items() if k not in hidden}


def _reduce_cached(function: Any) -> Any:
    state = {name: value for name, value in vars(function).items() if name != "cache_parameters"}
    return _new_cached, (function.__wrapped__, function.cache_parameters()), state


def _new_cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _reduce_dispatcher(function: Any) -> Any:
    registry = dict(function.registry)
    return functools.singledispatch, (registry[object],), registry, None, None, _register_all


def _register_all(function: Any, registry: Mapping[type, Callable[..., Any]]) -> None:
    for kind, implementation in registry.items():
        function.register(kind, implementation)


_DISPATCHER = functools.singledispatch(print).__code__  # type: ignore[attr-defined]

# Types that pickle would send by name, or that contain a lock.
_REDUCERS: dict[type, Callable[[Any], Any]] = {
    type(functools.cache(print)): _reduce_cached,
    functools.cached_property: lambda value: (type(value), (value.func,), {"attrname": value.attrname}),
    typing.NewType: lambda value: (type(value), (value.__name__, value.__supertype__)),
    typing.ParamSpec: lambda value: (type(value), (value.__name__,), vars(value)),
    typing.TypeVarTuple: lambda value: (type(value), (value.__name__,)),
}
_LOCKS: dict[type, Callable[[], Any]] = {
    type(threading.Lock()): threading.Lock,
    type(threading.RLock()): threading.RLock,
    threading.local: threading.local,
}
_LOCK_HOLDERS = (
    threading.Barrier,
    threading.BoundedSemaphore,
    threading.Condition,
    threading.Event,
    threading.Semaphore,
)


def _qualified_name(value: Any) -> str:
    return str(getattr(value, "__qualname__", getattr(value, "__name__", "")))


def _is_found_by_name(value: Any) -> bool:
    """Return True if a worker can import ``value`` by its name."""
    with contextlib.suppress(KeyError, AttributeError):
        if value.__module__ != "__main__" and not _is_registered(value.__module__):
            return _lookup(value.__module__, _qualified_name(value)) is value
    return False


def _is_registered(module: str) -> bool:
    registered = cloudpickle.list_registry_pickle_by_value()
    parts = module.split(".")
    return any(".".join(parts[:depth]) in registered for depth in range(1, len(parts) + 1))


def _defined_by_caller(name: str) -> bool:
    """Return True for a Python module that a worker with the same ``sys.path`` cannot import."""
    module = sys.modules.get(name)
    if name == "__main__" or "__builtins__" not in getattr(module, "__dict__", {}):
        return False  # cloudpickle handles __main__; others are not Python modules
    spec = getattr(module, "__spec__", None)
    if spec is not None and (spec.name != name or spec.origin in ("built-in", "frozen")):
        return False
    finders = tuple(finder for finder in sys.meta_path if _importable_in_workers(finder))
    file = getattr(module, "__file__", None)
    return not _is_importable(name, file, finders, tuple(map(str, sys.path)), os.getcwd())


def _importable_in_workers(finder: Any) -> bool:
    """Return True if other processes have ``finder`` too: the path finder, or one of an editable installation."""
    # The finders of setuptools, scikit-build and meson have "editable" in the name of their module. Our images install
    # pufferlib_installed_first (docker/python). All other finders belong to the caller.
    module = getattr(finder, "__module__", "")
    return finder is importlib.machinery.PathFinder or "editable" in module or module == "pufferlib_installed_first"


@functools.lru_cache(1024)
def _is_importable(
    name: str, file: str | None, finders: tuple[Any, ...], _sys_path: tuple[str, ...], _folder: str
) -> bool:
    """Return True if another process that imports ``name`` runs ``file``. All arguments are part of the cache key."""
    path, spec = None, None
    for depth in range(1, name.count(".") + 2):
        parent = ".".join(name.split(".")[:depth])
        specs = (finder.find_spec(parent, path) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == file
