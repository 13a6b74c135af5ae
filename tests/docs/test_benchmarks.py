"""The benchmarks run, and their tables say what was measured."""

import json
import re
import runpy
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
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


@pytest.mark.all
def test_pools_are_measured(tmp_path):
    results = tmp_path / "envpool.json"
    command = [
        sys.executable,
        FOLDER / "envpool.py",
        "--quick",
        "--only",
        "of 64",
        "one environment",
        "--json",
        results,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(results.read_text())["rows"]
    assert len(rows) == 2
    assert all(row["medians"]["ours"] > 0 for row in rows), done.stderr


@pytest.mark.all
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
    command = [
        sys.executable,
        FOLDER / "train.py",
        "--quick",
        "--only",
        "own settings, memory: none",
        "--json",
        results,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(results.read_text())["rows"]
    assert row["what"] in done.stdout
    assert row["medians"].keys() == {"ours", "limit"}, done.stderr


@pytest.mark.all
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


@pytest.mark.all
def test_an_environment_is_in_both_tables_of_the_paper(tmp_path):
    command = [sys.executable, FOLDER / "paper.py", "--quick", "--only", "Squared, Python", "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (alone,) = json.loads((tmp_path / "alone.json").read_text())["rows"]
    assert alone["medians"].keys() == {"steps_per_s", "resets", "deviation", "added"}, done.stderr
    assert 0 < alone["medians"]["resets"] < 100  # its episodes have 36 steps
    (row,) = json.loads((tmp_path / "vectorized.json").read_text())["rows"]
    ours, best = row["medians"]["ours"], min(row["medians"][name] for name in row["medians"] if "worker" in name)
    assert ours == min(best, row["medians"]["Serial"])
    assert row["measured_ratios"].keys() >= {"SyncVectorEnv", "AsyncVectorEnv", "limit"}, done.stderr


def test_an_environment_that_is_not_installed_is_named_and_left_out(monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    paper = runpy.run_path(str(FOLDER / "paper.py"))
    (entry,) = paper["chosen"](["crafter"])
    (line,) = paper["lone_table"]({entry: "run: puffer install crafter"}, None, 1)
    ((row, calls),) = paper["rows"]({entry: "run: puffer install crafter"}, None)
    assert "| Crafter | run: puffer install crafter |" in capsys.readouterr().out
    assert (line.figures, row.skipped, calls) == ({}, "run: puffer install crafter", {})


@pytest.mark.all
def test_unequal_steps_are_measured_and_drawn(tmp_path):
    command = [sys.executable, FOLDER / "variance.py", "--quick", "--only", "loop 0.1 ms ± 50", "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "variance.json").read_text())["rows"]
    ours = ("all", "all, 4 per worker", "first", "first, 4 per worker")
    assert row["medians"]["ours"] == min(row["medians"][name] for name in ours), done.stderr
    assert row["measured_ratios"].keys() >= {"SyncVectorEnv", "AsyncVectorEnv", "limit"}
    assert (tmp_path / "variance.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("deviation", [0.0, 0.5, 1.0])
def test_a_delayed_step_has_the_mean_and_the_deviation_that_are_asked_for(monkeypatch, deviation):
    monkeypatch.syspath_prepend(FOLDER)
    toys = runpy.run_path(str(FOLDER / "toys.py"))
    delays = toys["draw_delays"](np.random.default_rng(0), 0.01, deviation).tolist()
    assert min(delays) >= 0
    assert statistics.fmean(delays) == pytest.approx(0.01)
    assert statistics.pstdev(delays) / 0.01 == pytest.approx(deviation, rel=0.05)


def test_the_tables_of_the_paper_show_speeds_and_the_best_of_others(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    speed = runpy.run_path(str(FOLDER / "speed.py"))
    medians = {"steps_per_s": 39_000.0, "deviation": 45.3, "added": 1.25}
    lone = {"what": "NetHack", "name": "nethack/x", "paper": "39k", "figures": medians, "medians": medians}
    cells = {"resets": "-", "deviation": "45.3 %", "added": "1.25 %"}
    assert speed["alone_row"](lone) == {"what": "NetHack (`nethack/x`)", "measured": "39,000", **cells, "paper": "39k"}
    row = speed["Row"]("Pong: a step, 8 of it", "us", None, {"SyncVectorEnv": 1.0, "SB3 DummyVecEnv": 1.0}, "halves")
    row.figures = {
        "Serial": [2.0],
        "2 workers": [1.0],
        "SyncVectorEnv": [4.0],
        "SB3 DummyVecEnv": [5.0],
        "limit": [1.0],
    }
    row.figures["ours"] = row.figures["2 workers"]
    assert speed["vectorized_row"](row.as_dict()) == {
        "what": "Pong, 8 of it",
        "measured": "1,000,000, 2 workers",
        "gymnasium": "250,000 / -",
        "sb3": "200,000 / -",
        "limit": "1,000,000",
        "ratio": "4 × SyncVectorEnv",
    }


def test_a_goal_is_reached_only_with_all_of_its_ratios(report):
    row = report["Row"]("a step", "us", 6, {"theirs": 10})
    assert not row.is_reached()
    row.figures = {"ours": [4.0, 5.0, 6.0], "theirs": [41.0, 49.0, 90.0]}
    assert row.ratio("theirs") == 10.25
    assert row.verdict() == "yes"
    row.figures["theirs"][2] = 50.0
    assert row.verdict() == "NO"
    row.figures = {"ours": [7.0], "theirs": [700.0]}
    assert row.verdict() == "NO"
    row.figures = {"ours": [4.0]}
    assert not row.is_reached()
    assert row.verdict() == "no theirs"


@pytest.mark.parametrize(("rounds", "seconds", "expected"), [(11, 0, 3), (2, 0, 2), (11, 1000, 11)])
def test_a_row_has_as_many_rounds_as_its_time_allows(report, monkeypatch, rounds, seconds, expected):
    monkeypatch.syspath_prepend(FOLDER)
    turns = runpy.run_path(str(FOLDER / "turns.py"))
    row = report["Row"]("a step", "us")
    turns["fill"](row, {"ours": lambda: 1.0, "theirs": lambda: 2.0, "absent": lambda: None}, rounds, seconds)
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


def test_results_of_training_lie_above_random_play():
    page = runpy.run_path(str(FOLDER / "learning.py"))
    records = [json.loads(path.read_text()) for path in sorted(page["CURVES"].glob("*.json"))]
    low = {r["env_name"]: r["score"] - page["half_width"](r, "score") for r in records}
    high = {r["env_name"]: r["random_score"] + page["half_width"](r, "random_score") for r in records}
    assert [r["env_name"] for r in records if r["episodes"] < 16] == []  # so few make no interval
    assert [name for name in low if low[name] <= high[name]] == []
