"""Facts of a binding, as its ``binding.toml`` says: the one place for its packages, versions and needs."""

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, NewType, TypeVar, get_args, get_origin, get_type_hints

from pufferlib.errors import APIUsageError, UnknownNameError

__all__ = ["Facts", "Metadata", "all_facts", "read_facts"]

Reason = NewType("Reason", str)  # for a Debian package
T = TypeVar("T")

_SPELLED = {"apt-build": "apt_build"}  # keys of the file that are no Python names
_EXPECTED = {str: "a string", bool: "true or false", Reason: "its reason"}


@dataclass(frozen=True)
class Metadata:
    """Corrected requirements of a package whose own metadata are stale.

    Attributes:
        version: The release of which this is true.
        requires: Its requirements, as pip writes them.
        why: What is wrong with those that it declares.
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
    """One ``binding.toml``, checked.

    Attributes:
        name: Of the binding: its folder.
        title: What people call it.
        about: One sentence.
        homepage: Address of its project.
        licence: Of the package, as SPDX writes it where it can.
        requires: Pinned requirements, ``package==version``.
        modules: What must be importable.
        example: The environment that is shown and played first.
        conformance: Those that the conformance tests play; together they are of all its kinds.
        extra: Whether plain pip can install ``pufferlib[name]``.
        extra_why: If not, why.
        common: Whether its extra can be installed together with all the others that say so, with the
            newest numpy and gymnasium; unless it is set, whatever ``extra`` is.
        unavailable: Why no package index has it, and what a user must provide; "" for all others.
        seeding: Why a seed cannot decide everything; "" where it does, as it should.
        deterministic: Those of ``conformance`` that play the same whatever the seed.
        both_sides: Keywords, as TOML, with which agents play both sides of its games; "" where there are none.
        isolated: The stack that needs a Python environment of its own, such as "jax"; "" for none.
        prepare: Functions, ``module:function``, to call once after the installation in an image: they write
            files beside themselves, which whoever runs the image may not.
        strip: Folders in site-packages whose compiled modules come with debug symbols; images take them out.
        metadata: Corrections, by package.
        build: Packages that must be there to compile sources: ``pip`` installs them first.
        apt: Debian packages needed to run, with reasons.
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
        """Name of its extra as metadata spell it, since older releases of pip know ``pokemon-red`` only."""
        return self.name.replace("_", "-")

    @property
    def image(self) -> str:
        """The smallest image that has it, and its service of Compose."""
        return "tank" if self.common else "tank-full"

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"puffer install {self.name}"


def all_facts(folder: Path | None = None) -> dict[str, Facts]:
    """Read the facts of every binding, by name.

    Args:
        folder: That of the bindings, by default the installed ones.
    """
    if folder is None:
        (installed,) = importlib.import_module("pufferlib.bindings").__path__
        folder = Path(installed)
    files = sorted(folder.glob("*/binding.toml"))
    return {file.parent.name: read_facts(file) for file in files}


def read_facts(file: Path) -> Facts:
    """Read and check one ``binding.toml``.

    Raises:
        UnknownNameError: A key that does not exist; the nearest are suggested.
        APIUsageError: The file is missing or no TOML, a key is missing, a value has the wrong type, or
            two of them contradict each other.
    """
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise APIUsageError(f"{file}: cannot be read as TOML: {error}; see docs/add-a-binding.md") from error
    where = f"{file.parent.name}/{file.name}"
    data = {_SPELLED.get(key, key): value for key, value in data.items()}
    if "build" in data:
        data["build"] = list(_built(f"{where}: build", _Build, data["build"]).packages)
    data.setdefault("common", data.get("extra", False))
    facts = _built(where, Facts, data, name=file.parent.name)
    _check_sense(where, facts)
    return facts


def _built(where: str, kind: type[T], data: Any, **given: str) -> T:
    """Make a dataclass of a table: all its keys are known, none that is needed is missing, each has its type."""
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
    return kind(**given, **{key: _checked(inside + key, hints[key], value) for key, value in data.items()})


def _checked(where: str, hint: Any, value: Any) -> Any:
    """Return ``value`` as the type that ``hint`` asks for."""
    if isinstance(hint, type) and is_dataclass(hint):
        return _built(where, hint, value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise APIUsageError(f"{where} must be a list of strings, got {value!r}")
        return tuple(value)
    if get_origin(hint) is Mapping:
        if not isinstance(value, dict):
            raise APIUsageError(f"{where} must be a table, got {value!r}")
        return {name: _checked(f"{where}.{name}", get_args(hint)[1], entry) for name, entry in value.items()}
    if type(value) is not getattr(hint, "__supertype__", hint):
        raise APIUsageError(f"{where} must be {_EXPECTED[hint]}, got {value!r}")
    return value


def _check_sense(where: str, facts: Facts) -> None:
    """Raise APIUsageError where values contradict each other."""
    problems = {
        "requires must pin every package, as name==version": any("==" not in pin for pin in facts.requires),
        "extra_why must say why pip cannot install it, when extra is false": not facts.extra
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
