"""Tests of bindings in clean environments: with newer releases of their packages, and installed by plain pip.

scripts/lock --check-updates tests each newer release separately, with our wheel and the locked versions of the
binding's other packages where these are still compatible. scripts/lock --check-extras installs pufferlib[NAME] for
each extra, and pufferlib[common]. Both run the conformance tests of the installed bindings.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import binding_locks as bindings
from resolver import PYTHON_VERSION, ROOT, LockError, find_uv, locked_versions, package_name, resolve

TRIAL_TIMEOUT_S = 3600
COMMON = "common"  # extra with all bindings that pip can install together
TESTS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")


@dataclass(frozen=True)
class Update:
    """Newer release of a package that a binding pins, and the result of its test.

    `problem` is "" if the conformance tests passed, and None if they were not run.
    """

    binding: str
    package: str
    pinned: str
    newest: str
    problem: str | None = None

    def __str__(self) -> str:
        """Return one line for the report."""
        outcome = {None: "not tried", "": "works"}.get(self.problem) or f"BROKEN: {self.problem}"
        return f"{self.binding:<12} {self.package} {self.pinned} -> {self.newest}: {outcome}"


def check_updates(facts: dict[str, Any], names: Iterable[str]) -> list[Update]:
    """Test every newer release of packages that these bindings (default: all) pin, and print each result."""
    chosen = [_entry(facts, name) for name in names] or bindings.shared(facts)
    tried = []
    with tempfile.TemporaryDirectory() as folder:
        wheel: Path | None = None
        for update in found(chosen):
            wheel = wheel or build_wheel(Path(folder))
            entry = facts[update.binding]
            with tempfile.TemporaryDirectory(dir=folder) as place:
                tried.append(replace(update, problem=trial(entry, update, facts, wheel, Path(place))))
            print(tried[-1], flush=True)
    broken = sum(bool(update.problem) for update in tried)
    print(f"lock: {len(tried)} newer releases, {broken} of them broken; to use one, change its binding.toml")
    return tried


def check_extras(facts: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Install each of these extras (default: all) with plain pip and test it.

    Prints each result, and returns the names of the extras that failed.
    """
    chosen = [*names] or [*(entry.name for entry in facts.values() if entry.extra), COMMON]
    extras = {name: _bindings_of(facts, name) for name in chosen}
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        for name, entries in extras.items():
            extra = COMMON if name == COMMON else entries[0].extra_name
            with tempfile.TemporaryDirectory(dir=folder) as place:
                problem = _install_extra(extra, wheel, Path(place) / "venv") or _play(entries, Path(place))
            print(f"pufferlib[{extra}]: {f'BROKEN: {problem}' if problem else 'works'}", flush=True)
            broken += [name] if problem else []
    return broken


def _bindings_of(facts: dict[str, Any], extra: str) -> list[Any]:
    """Return the bindings that an extra installs."""
    if extra == COMMON:
        return [entry for entry in facts.values() if entry.common]
    entry = _entry(facts, extra)
    if not entry.extra:
        raise LockError(f"{extra} has no extra: {entry.extra_why}")
    return [entry]


def _entry(facts: dict[str, Any], name: str) -> Any:
    entry = bindings.known(facts, name)
    if entry.isolated or entry.unavailable:
        raise LockError(f"{name} is not part of the shared environment; test it by hand")
    return entry


def found(entries: Iterable[Any]) -> Iterator[Update]:
    """Yield the pinned packages whose newest release in the index differs from the pin."""
    newest: dict[str, str] = {}
    for entry in entries:
        for pin in entry.requires:
            package, _, pinned = pin.partition("==")
            name = package_name(package)
            if name not in newest:
                newest[name] = locked_versions(resolve([package], "--no-deps", build=True))[name]
            if newest[name] != pinned:
                yield Update(entry.name, package, pinned, newest[name])


def trial(entry: Any, update: Update, facts: dict[str, Any], wheel: Path, place: Path) -> str:
    """Test the binding with the newer release, and return the first problem, or ""."""
    old, new = f"{update.package}=={update.pinned}", f"{update.package}=={update.newest}"
    lock, config = place / "lock.txt", place / "uv.toml"
    config.write_text(bindings.corrections(facts))
    # The resolver keeps versions from an existing output file if they still fit.
    kept = locked_versions((bindings.BINDINGS / entry.name / "lock.txt").read_text())
    kept.pop(package_name(update.package), None)
    lock.write_text("".join(f"{name}=={version}\n" for name, version in kept.items()))
    wanted = [str(wheel), *(new if pin == old else pin for pin in entry.requires)]
    try:
        resolve(wanted, "--config-file", config, "--output-file", lock, build=True)
    except LockError as error:
        return f"cannot be resolved: {_summary(str(error))}"
    return _install(entry, lock, place / "venv") or _play([entry], place)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of pufferlib that all trials install."""
    _run([find_uv(), "build", "--quiet", "--wheel", "--out-dir", folder, ROOT])
    return next(folder.glob("*.whl"))


def _install(entry: Any, lock: Path, venv: Path) -> str:
    pip = [find_uv(), "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
    isolation = ["--no-build-isolation"] if entry.build else []
    return _run_all(
        [find_uv(), "venv", "--quiet", "--python", PYTHON_VERSION, venv],
        [*pip, *TESTS, *entry.build],
        [*pip, "--no-deps", *isolation, "-r", lock],
    )


def _install_extra(extra: str, wheel: Path, venv: Path) -> str:
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return _run_all([sys.executable, "-m", "venv", venv], [*pip, f"{wheel}[{extra}]"], [*pip, *TESTS])


def _run_all(*steps: list[Any]) -> str:
    """Run the steps until one fails, and return its error, or ""."""
    for step in steps:
        try:
            _run(step)
        except LockError as error:
            return f"cannot be installed: {error}"
    return ""


def _play(entries: Iterable[Any], place: Path) -> str:
    """Run the conformance tests of the bindings in the new environment, and return the first problem, or ""."""
    # -P: import the installed package, not the sources in the working folder.
    command = [place / "venv" / "bin" / "python", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    chosen = " or ".join(f"[{entry.name}/" for entry in entries)
    command += [ROOT / "tests" / "conformance" / "test_bindings.py", "-k", chosen]
    # COLUMNS keeps the lines about failures whole. TANK_BINDINGS turns skips of missing bindings into failures.
    env = {**os.environ, "COLUMNS": "300", "TANK_BINDINGS": "all"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TRIAL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"its tests took longer than {TRIAL_TIMEOUT_S} s"
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (?:\S+::)?(.*)$", done.stdout)
    if failed:
        return f"{len(failed)} tests, first: {failed[0]}"
    if done.returncode == 0 and re.search(r"\d+ passed", done.stdout):
        return ""
    return f"no test ran: {_summary(done.stdout)}"


def _run(command: list[Any]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LockError(_summary(done.stderr))


def _summary(text: str) -> str:
    """Return the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")
