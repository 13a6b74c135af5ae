"""The benchmarks run, and their tables show the measurements."""

import importlib
import json
import re
import runpy
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.tiers import as_nightly

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report():
    """Return the contents of benchmarks/report.py."""
    return runpy.run_path(str(FOLDER / "report.py"))


@pytest.fixture
def speed(monkeypatch):
    """Return the module benchmarks/speed.py."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("speed")


def measured(script, folder, *options):
    """Run a benchmark with ``--quick`` and return its output and the rows of its JSON files by name."""
    command = [sys.executable, FOLDER / script, "--quick", "--results", folder, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, {path.stem: json.loads(path.read_text())["rows"] for path in folder.glob("*.json")}


@pytest.mark.all
def test_engine_benchmark_measures_its_peers(tmp_path):
    done, found = measured("engine.py", tmp_path, "--only", "empty env")
    assert len(found["engine"]) >= 6
    for row in found["engine"]:
        assert row["what"] in done.stdout
        assert row["medians"]["ours"] > 0, done.stderr
    (loop,) = [row for row in found["engine"] if row["what"].startswith("worker loop")]
    assert loop["times"].keys() == {"SyncVectorEnv", "limit"}


@pytest.mark.all
@pytest.mark.parametrize(
    ("script", "only", "contestants"),
    [
        ("pools.py", ["of 64", "one environment"], [{"ours", "ours, copy=False"}, {"ours"}]),
        ("bindings.py", ["CartPole-v1"], [{"ours", "SyncVectorEnv"}, {"ours", "AsyncVectorEnv", "limit"}]),
        ("train.py", ["own settings, memory: none"], [{"ours", "limit"}]),
        ("ocean.py", ["squared"], [{"ours"}, {"ours", "one thread", "limit"}]),
        ("wrappers.py", ["ClipReward"], [{"ours", "Gymnasium"}]),
        ("export.py", [""], [{"ours", "torch"}]),
        ("acting.py", ["tanh"], [{"ours", "our engine, ReLU", "torch"}]),
        as_nightly(("baselines.py", ["CartPole"], [{"ours", "Stable-Baselines3", "script in CleanRL's style"}])),
    ],
)
def test_benchmark_measures_its_contestants(script, only, contestants, tmp_path):
    done, found = measured(script, tmp_path, "--only", *only)
    for row, names in zip(found[Path(script).stem], contestants, strict=True):
        assert row["what"] in done.stdout
        assert names <= row["medians"].keys(), done.stderr


@pytest.mark.all
def test_versions_compares_rows_of_two_checkouts(tmp_path):
    (tmp_path / "benchmarks").symlink_to(FOLDER)
    options = [tmp_path, "train", "--only", "own settings, memory: none", "--turns", "1", "--seconds", "0.02"]
    command = [sys.executable, FOLDER / "versions.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"{tmp_path} has no .venv; run there: ./scripts/test --local" in done.stderr
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert re.search(r"memory: none \| \d+\.\d+ \| \d+\.\d+ \|\n$", done.stdout), done.stderr


@pytest.mark.all
def test_paper_benchmark_fills_both_tables(tmp_path):
    done, found = measured("paper.py", tmp_path, "--only", "Squared, Python")
    (alone,), (row,) = found["alone"], found["vectorized"]
    assert alone["medians"].keys() == {"steps_per_s", "resets", "deviation", "added"}, done.stderr
    assert 0 < alone["medians"]["resets"] < 100  # its episodes have 36 steps
    ours, best = row["medians"]["ours"], min(row["medians"][name] for name in row["medians"] if "worker" in name)
    assert ours == min(best, row["medians"]["Serial"])
    assert row["times"].keys() >= {"SyncVectorEnv", "AsyncVectorEnv", "limit"}, done.stderr


@pytest.mark.all
def test_variance_benchmark_writes_rows_and_plot(tmp_path):
    done, found = measured("variance.py", tmp_path, "--only", "loop 0.1 ms ± 50")
    (row,) = found["variance"]
    ours = ("all", "all, 4 per worker", "first", "first, 4 per worker")
    assert row["medians"]["ours"] == min(row["medians"][name] for name in ours), done.stderr
    assert row["times"].keys() >= {"SyncVectorEnv", "AsyncVectorEnv", "limit"}
    assert (tmp_path / "variance.png").read_bytes().startswith(b"\x89PNG")


def test_paper_benchmark_lists_missing_environments(monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    paper = runpy.run_path(str(FOLDER / "paper.py"))
    (entry,) = paper["chosen"](["crafter"])
    (line,) = paper["lone_table"]({entry: "run: puffer install crafter"}, None, 1)
    ((row, calls),) = paper["rows"]({entry: "run: puffer install crafter"}, None)
    assert "| Crafter | run: puffer install crafter |" in capsys.readouterr().out
    assert (line.figures, row.skipped, calls) == ({}, "run: puffer install crafter", {})


@pytest.mark.parametrize("deviation", [0.0, 0.5, 1.0])
def test_delays_have_the_requested_mean_and_deviation(monkeypatch, deviation):
    monkeypatch.syspath_prepend(FOLDER)
    toys = runpy.run_path(str(FOLDER / "toys.py"))
    delays = toys["draw_delays"](np.random.default_rng(0), 0.01, deviation).tolist()
    assert min(delays) >= 0
    assert statistics.fmean(delays) == pytest.approx(0.01)
    assert statistics.pstdev(delays) / 0.01 == pytest.approx(deviation, rel=0.05)


def test_paper_tables_show_speeds_and_the_best_peer(speed, report):
    found = {"steps_per_s": 39_000.0, "deviation": 45.3, "added": 1.25}
    lone = {"what": "NetHack", "notes": {"name": "nethack/x", "paper": "39k"}, "medians": found}
    assert speed.alone([lone])[-1] == "| NetHack (`nethack/x`) | 39,000 | - | 45.3 % | 1.25 % | 39k |"
    row = report["Row"]("Pong: a step, 8 of it", "us", None, {"SyncVectorEnv": 1.0, "SB3 DummyVecEnv": 1.0}, "halves")
    row.figures = {"Serial": [2.0], "2 workers": [1.0], "SyncVectorEnv": [4.0], "SB3 DummyVecEnv": [5.0]}
    report["choose_ours"](row, ["Serial", "2 workers"])
    expected = "| Pong, 8 of it | 1,000,000, 2 workers | 250,000 / - | 200,000 / - | - | 4 × SyncVectorEnv |"
    assert speed.vectorized([row.as_dict()])[-1] == expected


def test_ocean_table_shows_rates_and_gain_of_a_second_thread(speed, report):
    alone = report["Row"]("snake, 1024 agents", "ns", figures={"ours": [10.0], "PufferLib 3.0.0": [25.0]})
    shared = report["Row"]("snake, two threads", "us", figures={"ours": [50.0], "one thread": [95.0], "limit": [48.0]})
    rows = [alone.as_dict(), shared.as_dict()]
    assert speed.ocean(rows)[-1] == "| snake | 100 million | 40 (2.5 ×) | 1.9 × (1.98 ×) |"


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"ours": [4.0, 5.0, 6.0], "theirs": [41.0, 49.0, 90.0]}, "yes"),
        ({"ours": [4.0, 5.0, 6.0], "theirs": [41.0, 49.0, 50.0]}, "NO"),
        ({"ours": [7.0], "theirs": [700.0]}, "NO"),
        ({"ours": [7.0], "theirs": [700.0], "limit": [7.5]}, "NO"),  # the limit does not matter
        ({"ours": [4.0]}, "no theirs"),
        ({}, "no ours"),
    ],
)
def test_goal_needs_our_median_and_all_ratios(report, figures, expected):
    row = report["Row"]("a step", "us", 6, {"theirs": 10}, figures=figures)
    assert report["verdict"](row.as_dict()) == expected


def test_row_without_goals_has_no_verdict(report):
    assert report["verdict"](report["Row"]("a step", "us", figures={"ours": [4.0]}).as_dict()) == ""


@pytest.mark.parametrize(("rounds", "seconds", "expected"), [(11, 0, 3), (2, 0, 2), (11, 1000, 11)])
def test_number_of_rounds_depends_on_time(report, monkeypatch, rounds, seconds, expected):
    monkeypatch.syspath_prepend(FOLDER)
    turns = runpy.run_path(str(FOLDER / "turns.py"))
    row = report["Row"]("a step", "us")
    turns["fill"](row, {"ours": lambda: 1.0, "theirs": lambda: 2.0, "absent": lambda: None}, rounds, seconds)
    assert row.figures == {"ours": [1.0] * expected, "theirs": [2.0] * expected}


def test_line_shows_measured_and_skipped_rows(report):
    measured = report["Row"](
        "a step", "us", 6, {"theirs": 10}, "the floor", {"ours": [5.0], "theirs": [60.0], "limit": [2.0]}
    )
    skipped = report["Row"]("a game", "us", skipped="could not be measured")
    expected = "| a step | <= 6, theirs >= 10 x | 5 us (5) | theirs 60: 12 x | 2: the floor | yes |"
    assert report["line"](measured) == expected
    assert report["line"](skipped) == "| a game |  | could not be measured | | | |"


@pytest.fixture
def checkout(speed, tmp_path, monkeypatch):
    """Create a repository with one commit for ``speed``, and return a function that runs git in it."""
    if shutil.which("git") is None:
        pytest.skip("git is not here; CI runs this outside the image")

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    for name in ("pufferlib", "bindings", "benchmarks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").touch()
    monkeypatch.setattr("report.ROOT", tmp_path)
    monkeypatch.setattr(speed, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(speed, "CURVES", tmp_path / "curves")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Initial commit")
    return git


def result_of(report, commit, is_whole, **medians):
    """Return the results of a benchmark with a row for each keyword."""
    machine = {"commit": commit, "date": "2026-11-26", "cpu": "fast", "cpus": 2}
    rows = [report["Row"](name, "us", figures={"ours": [us]} if us else {}) for name, us in medians.items()]
    return {"machine": machine, "is_whole": is_whole, "rows": [row.as_dict() for row in rows]}


@pytest.mark.place
def test_stored_rows_contain_commit_date_and_machine(checkout, speed, report):
    speed.keep("wrappers", result_of(report, "aaaa", True, first=1.23456789, second=2.0, third=3.0))
    speed.keep("wrappers", result_of(report, "bbbb", False, second=4.0))
    assert {row["what"]: (row["medians"]["ours"], row["commit"]) for row in speed.kept("wrappers")} == {
        "first": (1.2346, "aaaa"),
        "second": (4.0, "bbbb"),
        "third": (3.0, "aaaa"),
    }
    assert speed.measured_on(speed.kept("wrappers")) == (
        "Measured on fast, 2 cores, 2026-11-26, commit aaaa (2 rows), "
        "and on fast, 2 cores, 2026-11-26, commit bbbb (1 row)."
    )
    speed.keep("wrappers", result_of(report, "cccc", True, first=5.0, second=None))  # without a third row
    assert [(row["what"], row["commit"]) for row in speed.kept("wrappers")] == [("second", "bbbb"), ("first", "cccc")]


@pytest.mark.place
def test_keep_warns_about_missing_contestants(checkout, speed, report, capsys):
    found = result_of(report, "aaaa", True, first=1.0)
    found["rows"][0]["medians"]["theirs"] = 2.0
    speed.keep("wrappers", found)
    speed.keep("wrappers", result_of(report, "bbbb", True, first=1.0))
    assert "wrappers: first: has no figures of theirs any more" in capsys.readouterr().err


@pytest.mark.place
def test_stale_lists_figures_of_changed_code(checkout, speed, report, tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "PARTS", {"wrappers": speed.Part("wrappers.py", ("pufferlib",))})
    commit = checkout("rev-parse", "--short=10", "HEAD")
    speed.keep("wrappers", result_of(report, commit, True, first=1.0))
    (tmp_path / "bindings" / "code.py").write_text("x = 1")
    assert speed.stale() == []
    (tmp_path / "pufferlib" / "code.py").write_text("x = 1")
    (warning,) = speed.stale()
    assert "docs/speed/wrappers.json" in warning
    assert commit in warning
    assert "python benchmarks/wrappers.py --keep" in warning
    speed.keep("wrappers", result_of(report, "0123456789", True, first=1.0))
    assert "which this clone does not have" in speed.stale()[0]


@pytest.mark.place
@pytest.mark.parametrize(("options", "message"), [(["--quick"], "poor ones"), ([], "pufferlib/code.py differs")])
def test_keep_rejects_quick_runs_and_uncommitted_code(checkout, tmp_path, speed, options, message):
    turns = importlib.import_module("turns")
    (tmp_path / "pufferlib" / "code.py").write_text("x = 1")
    parsed = turns.parser(None, "engine", 1, 1, 1).parse_args(["--keep", *options])
    with pytest.raises(SystemExit, match=message):
        turns.begin(parsed)


def test_every_benchmark_has_a_table(speed):
    page = (FOLDER.parent / "docs" / "speed.md").read_text()
    assert [name for name in speed.PARTS if f"<!-- {name}: made by benchmarks/speed.py -->" not in page] == []
    assert [part.command for part in speed.PARTS.values() if not (FOLDER / part.command.split()[0]).exists()] == []
    paths = {path.partition("*")[0] for part in speed.PARTS.values() for path in part.code}
    assert [path for path in paths if not (FOLDER.parent / path).exists()] == []


@pytest.mark.parametrize("script", ["learning.py", "speed.py"])
def test_generated_pages_are_up_to_date(script):
    done = subprocess.run([sys.executable, FOLDER / script, "--check"], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"run python benchmarks/{script}; {done.stderr}"


def test_training_results_exceed_random_play():
    page = runpy.run_path(str(FOLDER / "learning.py"))
    records = [json.loads(path.read_text()) for path in sorted(page["CURVES"].glob("*.json"))]
    low = {r["env_name"]: r["score"] - page["half_width"](r, "score") for r in records}
    high = {r["env_name"]: r["random_score"] + page["half_width"](r, "random_score") for r in records}
    assert [r["env_name"] for r in records if r["episodes"] < 16] == []  # too few for a confidence interval
    assert [name for name in low if low[name] <= high[name]] == []
