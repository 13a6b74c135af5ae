"""What a binding's ``binding.toml`` says: the one place for its packages, versions and needs."""

import importlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError, UnknownNameError

__all__ = ["Facts", "Metadata", "all_facts", "read_facts"]

_SPELLED = {"apt-build": "apt_build"}  # keys of the file that are no Python names


@dataclass(frozen=True)
class Metadata:
    """What a package needs in truth, where what it says itself is stale.

    Attributes:
        version: The release of which this is true.
        requires: Its requirements, as pip writes them.
        why: What is wrong with those that it declares.
    """

    version: str
    requires: tuple[str, ...]
    why: str


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
    isolated: str = ""
    prepare: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    metadata: Mapping[str, Metadata] = field(default_factory=dict)
    build: tuple[str, ...] = ()
    apt: Mapping[str, str] = field(default_factory=dict)
    apt_build: Mapping[str, str] = field(default_factory=dict)

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
    """The facts of every binding, by name.

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
    data.setdefault("common", data.get("extra", False))
    _check_keys(where, data, Facts, given=("name",))
    values = {key: _checked(f"{where}: {key}", key, value) for key, value in data.items()}
    facts = Facts(name=file.parent.name, **values)
    _check_sense(where, facts)
    return facts


def _check_keys(where: str, data: Iterable[str], kind: type, given: tuple[str, ...] = ()) -> None:
    """Every key of ``data`` is one of the dataclass ``kind``, and none that it needs is missing."""
    known = {item.name: item for item in fields(kind) if item.name not in given}
    for key in data:
        if key not in known:
            raise UnknownNameError.of(where, "key", key, known)
    for name, item in known.items():
        if name not in data and item.default is MISSING and item.default_factory is MISSING:
            raise APIUsageError(f"{where}: {name} is missing; see docs/add-a-binding.md")


def _checked(where: str, key: str, value: Any) -> Any:
    """``value`` as the type of the field ``key``."""
    if key in ("extra", "common"):
        return _of_type(where, value, bool, "true or false")
    if key in ("requires", "modules", "conformance", "deterministic", "prepare", "strip"):
        return _strings(where, value)
    if key in ("apt", "apt_build"):
        return {name: _of_type(f"{where}.{name}", why, str, "its reason") for name, why in _table(where, value).items()}
    if key == "build":
        for name in _table(where, value).keys() - {"packages"}:
            raise UnknownNameError.of(where, "key", name, ["packages"])
        return _strings(f"{where}.packages", value.get("packages"))
    if key == "metadata":
        return {name: _metadata(f"{where}.{name}", entry) for name, entry in _table(where, value).items()}
    return _of_type(where, value, str, "a string")


def _metadata(where: str, entry: Any) -> Metadata:
    _check_keys(where, _table(where, entry), Metadata)
    return Metadata(
        version=_of_type(f"{where}.version", entry["version"], str, "a string"),
        requires=_strings(f"{where}.requires", entry["requires"]),
        why=_of_type(f"{where}.why", entry["why"], str, "a string"),
    )


def _table(where: str, value: Any) -> dict[str, Any]:
    table: dict[str, Any] = _of_type(where, value, dict, "a table")
    return table


def _strings(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise APIUsageError(f"{where} must be a list of strings, got {value!r}")
    return tuple(value)


def _of_type(where: str, value: Any, kind: type, expected: str) -> Any:
    if type(value) is not kind:
        raise APIUsageError(f"{where} must be {expected}, got {value!r}")
    return value


def _check_sense(where: str, facts: Facts) -> None:
    """What holds between the values."""
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
