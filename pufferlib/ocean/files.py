"""C environments outside of this package, for example ``corridor.c``: template, compilation and loading."""

import ctypes
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from pufferlib.errors import APIUsageError, PufferError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.native.compiler import HEADERS
from pufferlib.native.shared_object import build_library
from pufferlib.ocean._ocean import add_type
from pufferlib.ocean.types import COMMON_KEYWORDS, REPORTED, EnvType, env_type_of

__all__ = [
    "TEMPLATES",
    "CFile",
    "compile_file",
    "is_c_file",
    "load_type",
    "settings_of_file",
    "source_of",
    "write_template",
]

#: Folders with a C file and its settings, by name of the template. The first one is the default.
TEMPLATES = {name: Path(__file__).parent / "_template" / name for name in ("corridor", "minigrid")}
TAKEN = {"puffer", "draw", "minigrid"}  # prefixes of names in the headers


@dataclass(frozen=True)
class CFile:
    """A compiled C file. Workers that receive it use this compiled version even if the file is edited later.

    Attributes:
        source: Path of the C file.
        shared_object: Path of the compiled library.
    """

    source: str
    shared_object: str


def is_c_file(name: object) -> TypeGuard[str]:
    """Return True if the name of an environment is the path of a C file."""
    return isinstance(name, str) and name.endswith(".c")


def source_of(where: str, path: str) -> Path:
    """Return the absolute path of the C file at ``path``.

    Raises:
        UnknownNameError: The file does not exist. The error suggests similar names in the same folder.
    """
    source = Path(path).expanduser().absolute()
    if source.is_file():
        return source
    if source.is_dir():
        raise UnknownNameError(f"{where}: {source} is a folder, expected a C file")
    beside = sorted(file.name for file in source.parent.glob("*.c") if file.is_file())
    close = nearest(source.name, beside) or beside[:2]
    hint = (
        f"did you mean {' or '.join(str(Path(path).parent / name) for name in close)}?"
        if close
        else "if it was moved, give its new path in the command, or for a run in env_name of its config.toml; or write "
        f"one from a template: {as_typed(f'puffer new {source.stem}')}"
    )
    raise UnknownNameError(f"{where}: there is no file {source}; {hint}")


def compile_file(path: str, where: str = "pufferlib.make") -> CFile:
    """Compile the C file at ``path`` if it or one of its headers has changed.

    Args:
        path: Path of the C file.
        where: Prefix of the error message if the file does not exist.

    Raises:
        UnknownNameError: The file does not exist.
        APIUsageError: The file does not compile. The error has the compiler's messages, with file and line.
        PufferError: There is no compiler.
    """
    source = source_of(where, path)
    return CFile(str(source), str(build_library(source)))


@functools.cache
def load_type(file: CFile) -> EnvType:
    """Load the library of ``file`` for the lifetime of the process and return the declarations of its environment.

    Raises:
        APIUsageError: The file defines no environment, or was compiled against another version of the headers.
        PufferError: The library cannot be loaded.
    """
    _ensure_library(file)
    try:
        library = ctypes.CDLL(file.shared_object)
    except OSError as error:
        raise PufferError(
            f"{file.source}: its library cannot be loaded ({error}); if its folder is mounted with noexec, set "
            "XDG_CACHE_HOME to another folder"
        ) from error
    try:
        address = ctypes.addressof(ctypes.c_char.in_dll(library, "puffer_library"))
    except ValueError:
        raise APIUsageError(
            f"{file.source}: it defines no environment for this version; end it with a line like "
            f"PUFFER_ENV(Corridor, corridor), and include the puffer_env.h in {HEADERS}"
        ) from None
    entry = add_type(address)
    if entry is None:
        raise APIUsageError(
            f"{file.source}: it was compiled against another version of puffer_env.h than the one in {HEADERS}; "
            "include that one, and remove any copy beside the file. If you changed it in a checkout, install the "
            "package again"
        )
    env_type = env_type_of(entry)
    _check_declarations(file.source, env_type)
    return env_type


def settings_of_file(path: str) -> Path | None:
    """Return the path of the settings beside a C file (``corridor.toml`` or ``train.toml``), or None."""
    source = source_of("pufferlib", path)
    beside = (source.with_suffix(".toml"), source.with_name("train.toml"))
    return next((file for file in beside if file.is_file()), None)


def _ensure_library(file: CFile) -> None:
    """Compile ``file`` if its library does not exist on this machine."""
    if Path(file.shared_object).exists():
        return
    here = Path(compile_file(file.source).shared_object)
    if here.name != Path(file.shared_object).name:
        raise APIUsageError(
            f"{file.source}: it differs from the version that was compiled before; copy that version here"
        )


def _check_declarations(where: str, env_type: EnvType) -> None:
    """Raise APIUsageError for names that are taken, and for a default of a parameter that is out of its range."""
    _check_names(where, "parameter", [parameter.name for parameter in env_type.parameters], COMMON_KEYWORDS)
    _check_names(where, "metric", [*env_type.metrics], REPORTED)
    for parameter in env_type.parameters:
        if isinstance(parameter.default, str):
            continue
        if not parameter.low <= parameter.default <= parameter.high:
            raise APIUsageError(
                f"{where}: the default of parameter {parameter.name} must be {parameter.domain}, got "
                f"{parameter.default}"
            )


def _check_names(where: str, kind: str, names: Sequence[str], taken: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name in taken:
            raise APIUsageError(
                f"{where}: {kind} {index} must have a name that is not taken, got {name}, which every environment has; "
                f"rename it (taken are {', '.join(taken)})"
            )
        if name in names[:index]:
            raise APIUsageError(f"{where}: the names of each {kind} must differ, got {name} twice; rename one of them")


def write_template(name: str, folder: Path, template: str = "corridor") -> tuple[Path, Path]:
    """Write a complete environment ``<name>.c`` and its training settings ``<name>.toml`` into ``folder``.

    Args:
        name: Name of the environment: lower-case letters, digits and underscores.
        folder: Target folder, created if it does not exist.
        template: One of ``TEMPLATES``.

    Returns:
        Paths of the two files.

    Raises:
        APIUsageError: The name is invalid, or one of the files exists already.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise APIUsageError(
            f"puffer new: expected a name of lower-case letters, digits and underscores, as grid_world, got {name!r}"
        )
    if name in TAKEN:
        raise APIUsageError(f"puffer new: names in the headers begin with {name}; choose another name")
    files = (folder / f"{name}.c", folder / f"{name}.toml")
    for file in files:
        if file.exists():
            raise APIUsageError(f"puffer new: {file} exists already; choose another name, or remove it")
    type_name = "".join(part.title() for part in name.split("_"))
    code = (TEMPLATES[template] / "template.c").read_text("utf-8")
    for old, new in (("template", name), ("Template", type_name), ("TEMPLATE", name.upper())):
        code = code.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    files[0].write_text(code, "utf-8")
    files[1].write_text((TEMPLATES[template] / "train.toml").read_text("utf-8"), "utf-8")
    return files
