"""Lock files of the bindings, which scripts/lock makes from bindings/*/binding.toml.

bindings/NAME/lock.txt holds everything that the binding needs beyond the required dependencies of pufferlib. build.txt
holds the packages that compile its sources. All of them use the versions of the image locks. Wrong metadata of
packages is corrected for the resolution. Bindings in an isolated stack are resolved separately and completely.
"""

import hashlib
import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resolver import PLATFORM, PYTHON_VERSION, ROOT, LockError, locked_versions, resolve

BINDINGS = ROOT / "bindings"


def load_facts() -> dict[str, Any]:
    """Return the facts of every binding by name, read with pufferlib/registry/facts.py."""
    sys.path.insert(0, str(ROOT))  # the facts module works without an installation
    all_facts = importlib.import_module("pufferlib.registry.facts").all_facts
    try:
        facts: dict[str, Any] = all_facts(BINDINGS)
    except ValueError as error:
        raise LockError(str(error)) from error
    return facts


def known(facts: dict[str, Any], name: str) -> Any:
    """Return the facts of a binding. Raise LockError if there is none with this name."""
    if name not in facts:
        raise LockError(f"there is no binding {name!r}; known: {', '.join(facts)}")
    return facts[name]


def shared(facts: dict[str, Any]) -> list[Any]:
    """Return the bindings that share one Python environment with everything else."""
    return [entry for entry in facts.values() if not entry.isolated and not entry.unavailable]


def stacks(facts: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the isolated bindings by the name of their stack."""
    found: dict[str, list[Any]] = {}
    for entry in facts.values():
        if entry.isolated and not entry.unavailable:
            found.setdefault(entry.isolated, []).append(entry)
    return found


def wanted(entries: Iterable[Any]) -> list[str]:
    """Return all requirements of these bindings, including those for building."""
    return [requirement for entry in entries for requirement in (*entry.requires, *entry.build)]


def corrections(facts: dict[str, Any]) -> str:
    """Return the text of a uv.toml that corrects wrong package metadata."""
    tables = []
    for entry in facts.values():
        for package, truth in entry.metadata.items():
            tables.append(
                f"[[dependency-metadata]]\nname = {json.dumps(package)}\nversion = {json.dumps(truth.version)}\n"
                f'requires-dist = {json.dumps(list(truth.requires))}\nrequires-python = ">={PYTHON_VERSION}"\n'
            )
    return "\n".join(dict.fromkeys(tables))


def fingerprint(entry: Any, core: list[str]) -> str:
    """Return a hash of everything that the binding's locks were made from."""
    metadata = [f"{name} {truth.version} {truth.requires}" for name, truth in entry.metadata.items()]
    parts = [PYTHON_VERSION, PLATFORM, entry.isolated, *core, *entry.requires, "build", *entry.build, *metadata]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def lock_bindings(folder: Path, facts: dict[str, Any], pins: str, core: list[str]) -> dict[Path, str]:
    """Return the text of every binding's locks by file.

    Args:
        folder: Folder for temporary files.
        facts: Facts of all bindings.
        pins: Pinned versions of the shared resolution.
        core: Required dependencies of pufferlib.
    """
    config = folder / "uv.toml"
    config.write_text(corrections(facts))
    constraints = folder / "binding-constraints.txt"
    constraints.write_text(pins)
    check_extras(facts, core, constraints)
    below = locked_versions(resolve(core, "--constraints", constraints))
    locks: dict[Path, str] = {}
    for entry in shared(facts):
        locks.update(_cut(entry, core, config, constraints, below))
    for stack, entries in stacks(facts).items():
        stack_pins = folder / f"{stack}.txt"
        stack_pins.write_text(resolve([*core, *wanted(entries)], "--config-file", config, build=True))
        for entry in entries:
            locks.update(_cut(entry, core, config, stack_pins, (), whole=True))
    return locks


def lock_binding(
    folder: Path, facts: dict[str, Any], entry: Any, layers: Iterable[Path], core: list[str], upgrade: bool
) -> dict[Path, str]:
    """Return the text of one binding's locks by file. All packages in other locks keep their versions.

    Args:
        folder: Folder for temporary files.
        facts: Facts of all bindings.
        entry: Facts of the binding.
        layers: Locks of the image layers.
        core: Required dependencies of pufferlib.
        upgrade: Whether to use the newest versions instead of those in the binding's lock.
    """
    config, fixed, pins = folder / "uv.toml", folder / "fixed.txt", folder / "pins.txt"
    config.write_text(corrections(facts))
    neighbours = stacks(facts)[entry.isolated] if entry.isolated else shared(facts)
    locks = [BINDINGS / other.name / "lock.txt" for other in neighbours if other is not entry]
    fixed.write_text(pins_of([*(() if entry.isolated else layers), *locks]))
    if not upgrade:
        pins.write_text(pins_of([BINDINGS / entry.name / "lock.txt"]))
    try:
        options = ["--config-file", config, "--constraints", fixed, "--output-file", pins]
        resolve([*core, *wanted([entry])], *options, build=True)
        if not entry.isolated:
            check_extras(facts, core, fixed, entry)
    except LockError as error:
        advice = "other locks keep their versions; if they must change too, run scripts/lock without a name"
        raise LockError(f"bindings/{entry.name}: {advice}: {error}") from error
    if entry.isolated:
        return _cut(entry, core, config, pins, (), whole=True)
    return _cut(entry, core, config, pins, locked_versions(resolve(core, "--constraints", pins)))


def pins_of(locks: Iterable[Path]) -> str:
    """Return the versions in those locks that exist, without hashes. Later locks take precedence."""
    pins: dict[str, str] = {}
    for lock in locks:
        pins.update(locked_versions(lock.read_text()) if lock.exists() else {})
    return "".join(f"{name}=={version}\n" for name, version in pins.items())


def check_extras(facts: dict[str, Any], core: list[str], constraints: Path, only: Any = None) -> None:
    """Raise LockError unless pip can install each extra alone and all common extras together.

    Pip uses the packages' own metadata, without our corrections.

    Args:
        facts: Facts of all bindings.
        core: Required dependencies of pufferlib.
        constraints: File with the versions of the images, which the common extras must be compatible with.
        only: Facts of the binding to check. None checks all.
    """
    chosen = [only] if only else list(facts.values())
    together = [pin for entry in facts.values() if entry.common for pin in entry.requires]
    cases = [("bindings with common = true", together, ["--constraints", constraints])]
    cases = cases if any(entry.common for entry in chosen) else []
    cases += [(f"bindings/{entry.name}, extra = true", entry.requires, []) for entry in chosen if entry.extra]
    for where, pins, options in cases:
        try:
            resolve([*core, *pins], *options, build=True)
        except LockError as error:
            raise LockError(f"{where}: pip could not install this: {error}") from error


def _cut(
    entry: Any, core: list[str], config: Path, constraints: Path, below: Iterable[str], whole: bool = False
) -> dict[Path, str]:
    head = f"# Made by scripts/lock from binding.toml\n# inputs sha256:{fingerprint(entry, core)}\n"
    options = ["--generate-hashes", "--config-file", config, "--constraints", constraints]
    options += [f"--no-emit-package={name}" for name in below]
    wanted = [*(core if whole else ()), *entry.requires]
    locks = {}
    if entry.build:
        locks["build.txt"] = resolve(list(entry.build), *options)
    else:
        options += ["--only-binary", ":all:"]
    try:
        locks["lock.txt"] = resolve(wanted, *options, build=True) if wanted else ""
    except LockError as error:
        advice = "" if entry.build else "; if a package has no wheel, list its build requirements under [build]"
        raise LockError(f"bindings/{entry.name}: {error}{advice}") from error
    return {BINDINGS / entry.name / name: head + text for name, text in locks.items()}


def stale_bindings(facts: dict[str, Any], core: list[str]) -> list[str]:
    """Return the locks that do not match the current binding.toml files. Needs no network."""
    stale = []
    for entry in (*shared(facts), *(entry for entries in stacks(facts).values() for entry in entries)):
        for name in ("lock.txt", *(["build.txt"] if entry.build else [])):
            path = BINDINGS / entry.name / name
            if not path.exists() or f"sha256:{fingerprint(entry, core)}\n" not in path.read_text():
                stale.append(str(path.relative_to(ROOT)))
    return stale


def disagreements(facts: dict[str, Any], locks: Iterable[Path]) -> list[str]:
    """Return the packages that have two versions in the locks of one environment."""
    paths = [*locks, *(BINDINGS / entry.name / "lock.txt" for entry in shared(facts))]
    found: dict[str, dict[str, Path]] = {}
    for path in paths:
        for name, version in locked_versions(path.read_text()).items():
            found.setdefault(name, {})[version.partition("+")[0]] = path
    return [f"{name} {' and '.join(versions)}" for name, versions in found.items() if len(versions) > 1]
