"""Tests of the versions in checkpoints, and of the warning for different ones."""

import linecache
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

import pufferlib
from pufferlib.registry.outside import REGISTERED
from pufferlib.runs.versions import versions_of, warn_of_differences


def test_versions_of_records_all_dependencies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "abc\n"))
    monkeypatch.setattr(pufferlib, "__file__", str(tmp_path / "pufferlib" / "__init__.py"))
    common = {"Python", "pufferlib", "torch", "numpy", "gymnasium"}
    assert versions_of("breakout").keys() == {*common, "C code"}, "no checkout"
    assert versions_of(f"{tmp_path}/my_env.py:Forage")["git commit"] == "abc"
    (tmp_path / ".git").touch()
    common.add("git commit")
    assert versions_of("breakout").keys() == {*common, "C code"}
    assert versions_of("atari/pong").keys() == {*common, "ale-py", "opencv-python-headless"}
    assert versions_of("objects of a script").keys() == common
    assert versions_of("breakout")["git commit"] == "abc"
    assert "+" not in versions_of("breakout")["torch"]


def test_class_that_a_file_stands_for_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "my_env.py"
    text = "import gymnasium\nclass Forage(gymnasium.Env): pass\n"
    file.write_text(text)
    assert versions_of(str(file))["class of the environment"] == "Forage"
    assert "class of the environment" not in versions_of(f"{file}:Forage")
    file.write_text(text + "class Hunt(Forage): pass\n")
    assert versions_of(str(file))["class of the environment"] == "Hunt"


def test_equal_versions_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_differences("x", {"torch": "2", "gone": "1"}, {"torch": "2", "new": "1"})


@pytest.mark.parametrize(
    ("here", "sentence"),
    [
        (
            {"torch": "3", "C code": "a"},
            r"^x: versions have changed .*: torch 3 \(was 2\); numbers may differ in the last",
        ),
        (
            {"torch": "3", "C code": "b"},
            r": torch 3 \(was 2\), C code b \(was a\); the environment may behave differently, so scores may differ",
        ),
    ],
)
def test_differing_versions_warn_once(here: dict[str, str], sentence: str) -> None:
    with pytest.warns(UserWarning, match=sentence) as warned:
        warn_of_differences("x", {"torch": "2", "C code": "a"}, here)
    assert len(warned) == 1


CELL = """
class Forage:
    size = 5

    @property
    def area(self): return self.size**2

    @staticmethod
    def reward(): return 1.0

    def step(self, action): return action
"""


def test_code_of_a_class_in_a_notebook_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = types.ModuleType("notebook_cells")
    monkeypatch.setitem(sys.modules, "notebook_cells", notebook)

    def run_cell(number: int, text: str) -> str:
        file = f"<cell {number}>"  # each run of a cell has another name
        monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(keepends=True), file))
        exec(compile(text, file, "exec"), vars(notebook))
        monkeypatch.setitem(REGISTERED, "notebook/forage", None)  # monkeypatch removes the name after the test
        pufferlib.register("notebook/forage", notebook.Forage)
        return versions_of("notebook/forage")["code of the environment"]

    first = run_cell(1, CELL)
    assert run_cell(2, CELL) == first
    for number, text in enumerate(["self.size**2", "1.0", "return action"], 3):
        assert run_cell(number, CELL.replace(text, f"{text} + 1")) != first
