"""scripts/lock --check-updates and --check-extras, with a fake package index and fake test runs."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NEWEST = {"ale-py": "0.13.0", "opencv-python-headless": "5.0.0.93"}
RESULTS = {
    "2 passed in 1.0s": "",
    "FAILED tests/x.py::test_seed[atari/pong] - assert\n1 failed": "1 tests, first: test_seed[atari/pong] - assert",
    "2 skipped in 0.1s": "no test ran: 2 skipped in 0.1s",
}


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    names = ("resolver", "binding_locks", "binding_trials")
    yield importlib.import_module("binding_trials")
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def asked(updates: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replace the package index by a fake with the releases of NEWEST, and return the list of its requests."""
    seen: list[list[str]] = []

    def resolve(wanted: list[str], *options: Any, **more: Any) -> str:
        seen.append(wanted)
        return "".join(f"{name}=={NEWEST[name]} \\\n" for name in wanted if name in NEWEST)

    monkeypatch.setattr(updates, "resolve", resolve)
    return seen


def atari(updates: Any) -> dict[str, Any]:
    return {"atari": updates.bindings.load_facts()["atari"]}


def test_found_yields_only_newer_releases(updates: Any, asked: Any) -> None:
    (update,) = updates.found(atari(updates).values())
    assert (update.package, update.newest) == ("ale-py", "0.13.0")
    assert str(update) == f"atari        ale-py {update.pinned} -> 0.13.0: not tried"


@pytest.mark.parametrize("shown", RESULTS)
def test_check_updates_installs_the_newer_release_and_reports_failed_tests(
    shown: str, updates: Any, asked: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    commands: list[str] = []

    def run(command: list[Any], **options: Any) -> Any:
        commands.append(" ".join(map(str, command)))
        failed = "-m" in command and "FAILED" in shown
        return subprocess.CompletedProcess(command, int(failed), stdout=shown if "-m" in command else "", stderr="")

    monkeypatch.setattr(updates, "build_wheel", lambda folder: tmp_path / "ours.whl")
    monkeypatch.setattr(updates.subprocess, "run", run)
    monkeypatch.setattr(updates, "find_uv", lambda: "uv")
    (tried,) = updates.check_updates(atari(updates), [])
    assert tried.problem == RESULTS[shown]
    assert any("ale-py==0.13.0" in wanted and str(tmp_path / "ours.whl") in wanted for wanted in asked)
    assert "-k [atari/" in commands[-1]
    assert "1 newer releases" in capsys.readouterr().out


def test_check_extras_installs_with_plain_pip(
    updates: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    commands: list[list[str]] = []

    def run(command: list[Any], **options: Any) -> Any:
        commands.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, 0, stdout="2 passed in 1.0s", stderr="")

    monkeypatch.setattr(updates, "build_wheel", lambda folder: tmp_path / "ours.whl")
    monkeypatch.setattr(updates.subprocess, "run", run)
    assert updates.check_extras(atari(updates), ["atari"]) == []
    assert capsys.readouterr().out == "pufferlib[atari]: works\n"
    assert commands[1][1:4] == ["-m", "pip", "install"]
    assert commands[1][-1] == f"{tmp_path / 'ours.whl'}[atari]"


def test_check_extras_tests_every_binding_of_common(
    updates: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    commands: list[tuple[list[str], dict[str, Any]]] = []

    def run(command: list[Any], **options: Any) -> Any:
        commands.append(([str(word) for word in command], options))
        return subprocess.CompletedProcess(command, 0, stdout="2 passed in 1.0s", stderr="")

    monkeypatch.setattr(updates, "build_wheel", lambda folder: tmp_path / "ours.whl")
    monkeypatch.setattr(updates.subprocess, "run", run)
    facts = updates.bindings.load_facts()
    assert updates.check_extras(facts, ["common"]) == []
    assert capsys.readouterr().out == "pufferlib[common]: works\n"
    assert commands[1][0][-1] == f"{tmp_path / 'ours.whl'}[common]"
    (*_, chosen), options = commands[-1]
    assert chosen.split(" or ") == [f"[{entry.name}/" for entry in facts.values() if entry.common]
    assert options["env"]["TANK_BINDINGS"] == "all"


def test_check_extras_rejects_a_binding_without_an_extra() -> None:
    command = [sys.executable, ROOT / "scripts/lock", "--check-extras", "griddly"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("lock: error: griddly has no extra: it asks for gym")


def test_check_updates_rejects_unknown_names() -> None:
    command = [sys.executable, ROOT / "scripts/lock", "--check-updates", "atary"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("lock: error: there is no binding 'atary'; known: atari, ")
