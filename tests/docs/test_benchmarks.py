"""The benchmarks run, and their tables say what was measured."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch):
    """The module that makes the tables."""
    return runpy.run_path(str(FOLDER / "report.py"))


def test_the_engine_is_measured_beside_its_peers(tmp_path):
    results = tmp_path / "engine.json"
    command = [sys.executable, FOLDER / "engine.py", "--quick", "--only", "empty env", "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(results.read_text())["rows"]
    assert len(rows) >= 6
    for row in rows:
        assert row["what"] in done.stdout
        assert row["medians"]["ours"] > 0, done.stderr
    (loop,) = [row for row in rows if row["what"].startswith("worker loop")]
    assert loop["measured_ratios"].keys() == {"SyncVectorEnv", "limit"}


def test_a_binding_is_measured_beside_its_bare_environment(tmp_path):
    results = tmp_path / "bindings.json"
    command = [sys.executable, FOLDER / "bindings.py", "--quick", "--only", "CartPole-v1", "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    added, stepped = json.loads(results.read_text())["rows"]
    assert added["medians"].keys() == {"ours", "SyncVectorEnv"}, done.stderr
    assert stepped["measured_ratios"].keys() > {"bare environments, one process", "AsyncVectorEnv", "limit"}


@pytest.mark.all
def test_training_is_measured_beside_the_products_alone(tmp_path):
    results = tmp_path / "train.json"
    command = [sys.executable, FOLDER / "train.py", "--quick", "--only", "own settings, MLP", "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(results.read_text())["rows"]
    assert row["what"] in done.stdout
    assert row["medians"].keys() == {"ours", "limit"}, done.stderr


def test_environments_in_c_are_measured_with_one_thread_and_two(tmp_path, monkeypatch):
    results = tmp_path / "ocean.json"
    command = [sys.executable, FOLDER / "ocean.py", "squared", "rware", "--quick", "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = json.loads(results.read_text())
    for row in measured["threads"]:
        assert row["what"] in done.stdout
        assert row["medians"].keys() == {"ours", "one thread", "limit"}
    monkeypatch.syspath_prepend(FOLDER)
    squared, rware = runpy.run_path(str(FOLDER / "speed.py"))["ocean_rows"](measured)
    assert (squared["what"], rware["what"]) == ("squared", "rware")
    assert re.fullmatch(r"[\d.]+ × \([\d.]+ ×\)", squared["threads"])


def test_a_goal_is_reached_only_with_all_of_its_ratios(report):
    row = report["Row"]("a step", "us", 6, {"theirs": 10, "absent": 2})
    assert not row.is_reached()
    row.figures = {"ours": [4.0, 5.0, 6.0], "theirs": [41.0, 49.0, 90.0]}
    assert row.ratio("theirs") == 10.25
    assert row.is_reached()
    row.figures["theirs"][2] = 50.0
    assert not row.is_reached()
    row.figures = {"ours": [7.0], "theirs": [700.0]}
    assert not row.is_reached()


@pytest.mark.parametrize(("rounds", "seconds", "expected"), [(11, 0, 3), (2, 0, 2), (11, 1000, 11)])
def test_a_row_has_as_many_rounds_as_its_time_allows(report, monkeypatch, rounds, seconds, expected):
    monkeypatch.syspath_prepend(FOLDER)
    engine = runpy.run_path(str(FOLDER / "engine.py"))
    row = report["Row"]("a step", "us")
    engine["fill"](row, {"ours": lambda: 1.0, "theirs": lambda: 2.0, "absent": lambda: None}, rounds, seconds)
    assert row.figures == {"ours": [1.0] * expected, "theirs": [2.0] * expected}


def test_the_table_says_what_was_measured_and_what_was_not(report):
    measured = report["Row"](
        "a step", "us", 6, {"theirs": 10}, "the floor", {"ours": [5.0], "theirs": [60.0], "limit": [2.0]}
    )
    skipped = report["Row"]("a game", "us", skipped="could not be measured")
    expected = "| a step | <= 6, theirs >= 10 x | 5 us (5) | theirs 60: 12 x | 2: the floor | yes |"
    assert report["line"](measured) == expected
    assert report["line"](skipped) == "| a game |  | could not be measured | | | |"


@pytest.mark.parametrize("script", ["learning.py", "speed.py"])
def test_the_page_of_results_is_what_its_script_writes(script):
    done = subprocess.run([sys.executable, FOLDER / script, "--check"], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"run python benchmarks/{script}; {done.stderr}"
