"""Import of Python objects by name: ``mypkg.envs:make_forage``, ``./my_env.py:Forage``."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import symtable
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from pufferlib.errors import APIUsageError, UnknownNameError, nearest, place_of

__all__ = [
    "class_names",
    "full_name",
    "global_names",
    "has_module",
    "import_module",
    "is_new_name",
    "is_object_name",
    "load_object",
    "moved_name",
    "short_name",
    "source_file",
    "split_name",
]

_FILE = re.compile(r"(?P<path>.+\.(?:py|c))(?::(?P<attribute>[^:/]*))?")
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def split_name(name: str) -> tuple[str, str]:
    """Return the file or module of ``name``, and its attribute or "". The path of a file may contain colons."""
    match = _FILE.fullmatch(name)
    if match is not None:
        return match["path"], match["attribute"] or ""
    place, _, attribute = name.partition(":")
    return place, attribute


def source_file(name: str) -> Path | None:
    """Return the Python file that defines the object ``name``, or None if there is no such file."""
    match = _FILE.fullmatch(name)
    if match is not None:
        path = Path(match["path"]).expanduser()
        return path if path.suffix == ".py" and path.is_file() else None
    place, _ = split_name(name)
    if not is_object_name(name) or not has_module(place):
        return None
    if place in sys.modules:  # the running script has no spec
        origin_text = getattr(sys.modules[place], "__file__", None)
    else:
        spec = importlib.util.find_spec(place)
        origin_text = spec.origin if spec else None
    origin = Path(origin_text) if origin_text else None
    return (
        origin if origin and origin.suffix == ".py" and origin.is_file() else None
    )  # there is no file if the module is part of an archive


def global_names(file: Path) -> list[str]:
    """Return the names that a Python file defines, assigns or imports. The file is not run.

    Raises:
        SyntaxError: The file is not Python.
    """
    symbols = symtable.symtable(importlib.util.decode_source(file.read_bytes()), str(file), "exec").get_symbols()
    return [symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()]


def moved_name(name: str, folders: Iterable[Path]) -> str:
    """Return ``name`` with the new path of its file, if the file was moved and can be found.

    A whole project may move to another machine or out of a container. The new path is therefore the longest tail of the
    old path that exists in one of ``folders`` or their parents.

    Args:
        name: Name of an object. A name without a file is returned unchanged.
        folders: Folders that were probably moved with the file, such as the folder of a run.
    """
    match = _FILE.fullmatch(name)
    if match is None or Path(match["path"]).is_file():
        return name
    parts = Path(match["path"]).parts[1:]
    above = list(dict.fromkeys(each for folder in folders for each in (folder.absolute(), *folder.absolute().parents)))
    for start in range(len(parts)):
        for folder in above:
            if (found := folder.joinpath(*parts[start:])).is_file():
                return f"{found}:{match['attribute']}" if match["attribute"] else str(found)
    return name


def is_new_name(name: str, old: str) -> bool:
    """Return True if ``name`` can be the object ``old`` whose file was moved or renamed, or whose class was left out.

    A file counts as renamed if there is no file of the old name.
    """
    (old_file, old_class), (file, chosen) = map(split_name, (old, name))
    kinds = {Path(old_file).suffix, Path(file).suffix}
    is_same_file = Path(old_file).name == Path(file).name or not Path(old_file).exists()
    return kinds in ({".py"}, {".c"}) and is_same_file and old_class in ("", chosen)


def full_name(name: str) -> str:
    """Return ``name`` with an absolute file path. A name without a file is returned unchanged."""
    match = _FILE.fullmatch(name)
    if match is None:
        return name
    path = os.path.abspath(Path(match["path"]).expanduser())
    return f"{path}:{match['attribute']}" if match["attribute"] else path


def short_name(name: str) -> str:
    """Return ``name`` without the folders of its file: "my_env.py:Forage"."""
    return name.rpartition("/")[2] if _FILE.fullmatch(name) else name


def is_object_name(name: str) -> bool:
    """Return True if ``name`` has the form ``module:attribute``, ``file.py:attribute`` or ``file.py``."""
    match = _FILE.fullmatch(name)
    return _OBJECT.fullmatch(name) is not None if match is None else match["path"].endswith(".py")


def load_object(where: str, name: str, kinds: tuple[type, ...] = (), wrappers: tuple[type, ...] = ()) -> Any:
    """Import the object ``name``.

    Args:
        where: Prefix of error messages.
        name: ``module:attribute``, ``file.py:attribute``, or ``file.py`` if the file defines one subclass of ``kinds``.
        kinds: Base classes to look for if ``name`` has no attribute.
        wrappers: Base classes of wrappers. Their subclasses do not count if they need an argument.

    Raises:
        UnknownNameError: There is no such module or attribute. The message suggests similar attributes.
        APIUsageError: There is no such file, the file cannot be imported, or it does not define exactly one such class.
    """
    place, attribute = split_name(name)
    if _FILE.fullmatch(name) is None:
        module = import_module(where, place)
    else:
        module = _import_file(where, Path(place).expanduser().absolute())
    if not attribute:
        return _only_class(where, place, module, kinds, wrappers)
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise UnknownNameError.of(f"{where}: {place}", "attribute", attribute, _public(module))
        value = getattr(value, part)
    return value


def has_module(name: str) -> bool:
    """Return True if the module is imported, installed, or in the current folder (as for ``python -m``)."""
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last, to shadow no installed module; worker processes inherit sys.path
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def class_names(module: str) -> list[str]:
    """Return the public classes in the source of a module. The parent package is imported, the module is not."""
    spec = importlib.util.find_spec(module) if has_module(module) else None
    file = Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
    with suppress(OSError, SyntaxError, ValueError):
        body = ast.parse(file.read_bytes()).body if file else []
        return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    return []


def import_module(where: str, name: str) -> ModuleType:
    """Import a module that is installed or in the current folder.

    Raises:
        UnknownNameError: There is no such module.
        APIUsageError: The module cannot be imported.
    """
    if not has_module(name):
        raise UnknownNameError(
            f"{where}: there is no module {name!r}, neither installed nor in {os.getcwd()}; install its package, or "
            "give a file: path/to/file.py:Class"
        )
    with _reporting_import_errors(where, name):
        module = importlib.import_module(name)
    _warn_of_edits(module)
    return module


def _warn_of_edits(module: ModuleType) -> None:
    """Warn if the file of an imported module was edited, because this process keeps the old code."""
    file, spec = getattr(module, "__file__", None), module.__spec__
    if file is None or spec is None or not os.path.isfile(file):
        return
    now = os.stat(file).st_mtime_ns
    before, loaded = _USED.setdefault(module.__name__, (now, spec))
    if loaded is not spec or before == now:
        _USED[module.__name__] = (now, spec)
        return
    _USED[module.__name__] = (now, spec)
    warnings.warn(
        f"{file} was edited after it was imported, and this process keeps its old code; start a new process, or call "
        f"importlib.reload({module.__name__})",
        stacklevel=4,
    )


_USED: dict[str, tuple[int, Any]] = {}  # modification time and spec of each module at its last use


def _import_file(where: str, path: Path) -> ModuleType:
    """Import a file by its path, again if it has changed.

    The classes and functions of the file are pickled by value for workers. The running script is not imported, because
    that would run it a second time.
    """
    if not path.is_file():
        others = [file.stem for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
        beside = "".join(f"; {path.parent / other}.py is there" for other in nearest(path.stem, others, count=1))
        raise APIUsageError(
            f"{where}: there is no file {path}; if it was moved, give its new path in the command, or for a run in "
            f"env_name, policy.name or track.loggers of its config.toml{beside}"
        )
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is not None and os.path.isfile(script) and path.samefile(script):
        return sys.modules["__main__"]
    source = path.read_bytes()
    imports = _imports(source)
    package, folder = _package_of(path, imports)
    # The hash makes the module name unique, so that it shadows no other module. Relative imports need the package name.
    name = ".".join([*package, f"{path.stem}_{zlib.crc32(source):08x}"])
    twin = getattr(sys.modules.get(name), "__file__", None)
    if twin is not None and twin != str(path) and os.path.isfile(twin):  # a copy of the file in another folder
        name = f"{name}_{zlib.crc32(os.fsencode(path)):08x}"
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return sys.modules[name]
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for imports from the same folder, also in workers
    _warn_of_namesakes(path, folder, imports)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _reporting_import_errors(where, str(path)):
            if package:
                importlib.import_module(".".join(package))
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))  # ignores old bytecode
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _imports(source: bytes) -> list[ast.Import | ast.ImportFrom]:
    """Return all import statements of a file. A file that cannot be parsed has none."""
    with suppress(SyntaxError, ValueError):  # importing the file reports the error
        return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return []


def _warn_of_namesakes(path: Path, folder: Path, imports: list[ast.Import | ast.ImportFrom]) -> None:
    """Warn if an import of the file ``path`` finds another module than the one of this name in ``folder``."""
    names = {node.module or "" for node in imports if isinstance(node, ast.ImportFrom) and not node.level}
    names |= {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    for name in sorted({name.partition(".")[0] for name in names}):
        files = (folder / name / "__init__.py", folder / f"{name}.py")
        beside = next((file for file in files if file.is_file() and file != path), None)
        spec = None
        with suppress(ValueError):  # a module without a spec
            spec = importlib.util.find_spec(name) if beside else None
        if beside and spec and spec.origin and Path(spec.origin).resolve() != beside.resolve():
            warnings.warn(
                f"{path}: import {name} finds {spec.origin}, not {beside}; rename one of them, or write: "
                f"from . import {name}",
                stacklevel=2,
            )


def _package_of(path: Path, imports: list[ast.Import | ast.ImportFrom]) -> tuple[list[str], Path]:
    """Return the packages that a file with relative imports belongs to, and the folder of the outermost package.

    For a file without relative imports, this is an empty list and the folder of the file.
    """
    levels = max((node.level for node in imports if isinstance(node, ast.ImportFrom)), default=0)
    names: list[str] = []
    folder = path.parent
    while levels and folder.name.isidentifier() and (len(names) < levels or (folder / "__init__.py").is_file()):
        names.insert(0, folder.name)
        folder = folder.parent
    return names, folder


@contextmanager
def _reporting_import_errors(where: str, name: str) -> Iterator[None]:
    """Convert any error from importing ``name`` to an APIUsageError with the line of the error.

    Code that parses arguments when it is imported gets none, because ours are not meant for it.
    """
    arguments, sys.argv = sys.argv, [name]
    try:
        yield
    except (Exception, SystemExit) as error:  # a script may end with sys.exit(main())
        place = place_of(error)
        if isinstance(error, SyntaxError):
            place = f"{error.filename}, line {error.lineno}"
        raise APIUsageError(f"{where}: {name} cannot be imported: {type(error).__name__}: {error} ({place})") from error
    finally:
        sys.argv = arguments


def _only_class(
    where: str, place: str, module: ModuleType, kinds: tuple[type, ...], wrappers: tuple[type, ...]
) -> type:
    """Return the only subclass of ``kinds`` that a module defines, not counting base classes of its other classes."""
    public = {name: value for name, value in _public(module).items() if not _needs_env(value, wrappers)}
    own = [value for value in public.values() if inspect.isclass(value) and issubclass(value, kinds)]
    last = [kind for kind in own if not any(other is not kind and issubclass(other, kind) for other in own)]
    if len(last) == 1:
        return last[0]
    names = sorted(kind.__name__ for kind in last)
    expected = " or ".join(dict.fromkeys(kind.__name__ for kind in kinds))
    if not names:
        others = sorted(public)
        hint = f"; if one of {', '.join(others)} makes it, add its name: {place}:{others[0]}" if others else ""
        raise APIUsageError(f"{where}: {place} must define a class of {expected}, got none{hint}")
    raise APIUsageError(
        f"{where}: {place} must define exactly one class of {expected}, got {len(last)}; "
        f"choose one: {place}:{names[0]}, for a run in env_name of its config.toml"
        f" (there are {', '.join(names)})"
    )


def _needs_env(value: Any, wrappers: tuple[type, ...]) -> bool:
    """Return whether ``value`` is a wrapper class whose first argument has no default."""
    if not inspect.isclass(value) or not issubclass(value, wrappers):
        return False
    first = next(iter(inspect.signature(value).parameters.values()), None)
    return first is not None and first.default is first.empty


def _public(module: ModuleType) -> dict[str, Any]:
    """Return the public functions and classes that a module defines itself, by name."""
    found = {name: value for name, value in vars(module).items() if name[:1] != "_" and callable(value)}
    return {name: value for name, value in found.items() if getattr(value, "__module__", "") == module.__name__}
