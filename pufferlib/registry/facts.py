"""Schema and parser of ``binding.toml``, which declares the packages, versions and requirements of a binding."""

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, NewType, TypeVar, get_args, get_origin, get_type_hints

from pufferlib.errors import APIUsageError, UnknownNameError

__all__ = ["Facts", "Metadata", "all_facts", "read_facts"]

Reason = NewType("Reason", str)  # why a Debian package is needed
T = TypeVar("T")

_PYTHON_NAMES = {"apt-build": "apt_build"}  # keys of the file that are not Python identifiers
_EXPECTED = {str: "a string", bool: "true or false", Reason: "its reason"}


@dataclass(frozen=True)
class Metadata:
    """Corrected requirements of a package with outdated metadata.

    Attributes:
        version: Release that this correction applies to.
        requires: Correct requirements, in pip's syntax.
        why: Error in the declared requirements.
    """

    version: str
    requires: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Build:
    """Table ``[build]``."""

    packages: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Validated contents of one ``binding.toml``.

    Attributes:
        name: Name of the binding, equal to the name of its folder.
        title: Human-readable name.
        about: Description in one sentence.
        homepage: URL of the project.
        licence: Licence of the package, as an SPDX identifier if there is one.
        requires: Pinned requirements, ``package==version``.
        modules: Modules that must be importable.
        example: Environment to show and play first.
        conformance: Environments for the conformance tests. Together they cover every kind in the binding.
        extra: Whether plain pip can install ``pufferlib[name]``.
        extra_why: Why pip cannot install it, if ``extra`` is False.
        common: Whether the extra can be installed together with all other common extras and the newest numpy and
            gymnasium. Equal to ``extra`` by default.
        unavailable: Why no package index has the package and what the user must provide, or "" if one has it.
        seeding: Why results are not fully determined by the seed, or "" if they are.
        deterministic: Environments in ``conformance`` that ignore the seed.
        both_sides: Keyword arguments, as TOML, that let agents play both sides of a game, or "" if there are none.
        isolated: Stack that needs a separate Python environment, such as "jax", or "" for none.
        prepare: Functions, ``module:function``, to call once after the installation in an image. They write files
            into site-packages, which users of the image have no permission to do.
        strip: Folders in site-packages whose compiled modules contain debug symbols, which images remove.
        metadata: Corrected requirements, by package.
        build: Packages to install before the binding is compiled from source.
        apt: Debian packages needed at run time, with reasons.
        apt_build: Debian packages needed to compile, with reasons.
    """

    name: str
    title: str
    about: str
    homepage: str
    licence: str
    requires: tuple[str, ...]
    modules: tuple[str, ...]
    example: str
    conformance: tuple[str, ...]
    extra: bool
    extra_why: str = ""
    common: bool = False
    unavailable: str = ""
    seeding: str = ""
    deterministic: tuple[str, ...] = ()
    both_sides: str = ""
    isolated: str = ""
    prepare: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    metadata: Mapping[str, Metadata] = field(default_factory=dict)
    build: tuple[str, ...] = ()
    apt: Mapping[str, Reason] = field(default_factory=dict)
    apt_build: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def extra_name(self) -> str:
        """Name of the extra, with hyphens, because older releases of pip only accept ``pokemon-red``."""
        return self.name.replace("_", "-")

    @property
    def image(self) -> str:
        """Name of the smallest image with this binding, which is also the name of its Compose service."""
        return "tank" if self.common else "tank-full"

    @property
    def command(self) -> str:
        """Command that installs the binding."""
        return f"puffer install {self.name}"


def all_facts(folder: Path | None = None) -> dict[str, Facts]:
    """Read the ``binding.toml`` of every binding, by name.

    Args:
        folder: Folder with the bindings, by default ``pufferlib/bindings`` of this installation.
    """
    if folder is None:
        (installed,) = importlib.import_module("pufferlib.bindings").__path__
        folder = Path(installed)
    files = sorted(folder.glob("*/binding.toml"))
    return {file.parent.name: read_facts(file) for file in files}


def read_facts(file: Path) -> Facts:
    """Read and check one ``binding.toml``.

    Raises:
        UnknownNameError: A key is unknown. The message suggests similar ones.
        APIUsageError: The file is missing or not valid TOML, a key is missing, a value has the wrong type, or two
            values contradict each other.
    """
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise APIUsageError(f"{file}: cannot be read as TOML: {error}; see docs/add-a-binding.md") from error
    where = f"{file.parent.name}/{file.name}"
    data = {_PYTHON_NAMES.get(key, key): value for key, value in data.items()}
    if "build" in data:
        data["build"] = list(_parse_table(f"{where}: build", _Build, data["build"]).packages)
    data.setdefault("common", data.get("extra", False))
    facts = _parse_table(where, Facts, data, name=file.parent.name)
    _check_consistency(where, facts)
    return facts


def _parse_table(where: str, kind: type[T], data: Any, **given: str) -> T:
    """Make a dataclass from a table, after checking for unknown keys, missing keys and wrong types."""
    if not isinstance(data, dict):
        raise APIUsageError(f"{where} must be a table, got {data!r}")
    known = {item.name: item for item in fields(kind) if item.name not in given}  # type: ignore[arg-type]
    for key in data:
        if key not in known:
            raise UnknownNameError.of(where, "key", key, known)
    for name, item in known.items():
        if name not in data and item.default is MISSING and item.default_factory is MISSING:
            raise APIUsageError(f"{where}: {name} is missing; see docs/add-a-binding.md")
    hints = get_type_hints(kind)
    inside = f"{where}: " if given else f"{where}."
    return kind(**given, **{key: _parse_value(inside + key, hints[key], value) for key, value in data.items()})


def _parse_value(where: str, hint: Any, value: Any) -> Any:
    """Convert ``value`` to the type ``hint``, or raise APIUsageError if it has another type."""
    if isinstance(hint, type) and is_dataclass(hint):
        return _parse_table(where, hint, value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise APIUsageError(f"{where} must be a list of strings, got {value!r}")
        return tuple(value)
    if get_origin(hint) is Mapping:
        if not isinstance(value, dict):
            raise APIUsageError(f"{where} must be a table, got {value!r}")
        return {name: _parse_value(f"{where}.{name}", get_args(hint)[1], entry) for name, entry in value.items()}
    if type(value) is not getattr(hint, "__supertype__", hint):
        raise APIUsageError(f"{where} must be {_EXPECTED[hint]}, got {value!r}")
    return value


def _check_consistency(where: str, facts: Facts) -> None:
    """Raise APIUsageError if values contradict each other."""
    problems = {
        "requires must pin every package, as name==version": any("==" not in pin for pin in facts.requires),
        "extra_why must explain why pip cannot install it if extra is false": not facts.extra
        and not (facts.extra_why or facts.unavailable),
        "extra_why contradicts extra = true": facts.extra and bool(facts.extra_why),
        "common needs extra = true": facts.common and not facts.extra,
        "conformance must name 1 to 4 environments": not (facts.unavailable or 1 <= len(facts.conformance) <= 4),
        "deterministic must be some of conformance": not set(facts.deterministic) <= set(facts.conformance),
        "modules must name at least one": not facts.modules,
    }
    for problem, found in problems.items():
        if found:
            raise APIUsageError(f"{where}: {problem}; see docs/add-a-binding.md")
