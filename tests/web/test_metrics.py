"""Curves that are read from growing files, and thinned for a page."""

import math
import time
from pathlib import Path

import numpy as np
import pytest

from pufferlib.runs.report import read_scores
from pufferlib.web import metrics
from pufferlib.web.metrics import GrowingCurve, thin
from tests.web.boards import add_updates, make_run

SCORE = "environment/score"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [1.5, None, 2.5])


def curve_of(run: Path, metric: str = SCORE) -> GrowingCurve:
    curve = GrowingCurve(run / "metrics.jsonl", metric)
    curve.read()
    return curve


def test_curve_equals_that_of_a_plot(run: Path) -> None:
    for metric in (SCORE, "losses/entropy", "update"):
        curve = curve_of(run, metric)
        steps, values = read_scores(run / "metrics.jsonl", y=metric)
        assert curve.steps.tolist() == steps.tolist()
        assert curve.values.tolist() == values.tolist()
    assert curve_of(run).seconds.tolist() == [2.0, 6.0]


def test_only_added_lines_are_read(run: Path) -> None:
    curve = curve_of(run)
    assert not curve.read()
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text.replace("1.5", "9.9"))  # the same file, which would show another reading
    add_updates(run, [7.0], first=4)
    assert curve.read()
    assert curve.values.tolist() == [1.5, 2.5, 7.0]


def test_incomplete_line_is_read_when_it_is_complete(run: Path) -> None:
    curve = curve_of(run)
    add_updates(run, [7.0], first=4)
    whole = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(whole[:-30])
    curve.read()
    assert curve.values.tolist() == [1.5, 2.5]
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(whole[-30:])
    curve.read()
    assert curve.values.tolist() == [1.5, 2.5, 7.0]
    assert curve.damaged == 0


def test_damaged_lines_are_counted(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 1000)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'"uptime_s": 4}\n\x00\xff\n\n' + b"x" * 2500 + b"\n")
    add_updates(run, [7.0], first=4)
    curve = curve_of(run)
    assert curve.values.tolist() == [1.5, 2.5, 7.0]
    assert curve.damaged == 5  # the long line counts once per block


def test_steps_that_a_resumed_run_repeats_count_once(run: Path) -> None:
    add_updates(run, [20.0, 30.0], first=2)
    assert curve_of(run).steps.tolist() == [1000, 2000, 3000]
    assert curve_of(run).values.tolist() == [1.5, 20.0, 30.0]


def test_another_file_replaces_the_curve(run: Path) -> None:
    curve = curve_of(run)
    (run / "metrics.jsonl").unlink()
    with pytest.raises(FileNotFoundError):
        curve.read()
    add_updates(run, [5.0] * 9)
    curve.read()
    assert curve.values.tolist() == [5.0] * 9
    (run / "metrics.jsonl").write_bytes(b"")
    curve.read()
    assert not curve.values


def test_reading_stops_at_a_deadline(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_updates(run, [4.0] * 100, first=4)
    monkeypatch.setattr(metrics, "BLOCK", 1000)
    curve = GrowingCurve(run / "metrics.jsonl", SCORE)
    curve.read(deadline=time.monotonic())
    assert not curve.is_complete
    assert 0 < curve.share < 0.2
    curve.read()
    assert (curve.is_complete, curve.share, len(curve.values)) == (True, 1, 102)


def test_short_curve_is_not_thinned(run: Path) -> None:
    assert thin(curve_of(run), 2) == {"steps": [1000, 3000], "seconds": [2, 6], "mean": [1.5, 2.5]}


def test_spikes_remain_in_a_thinned_curve(tmp_path: Path) -> None:
    scores = np.sin(np.arange(1000))
    scores[[333, 777]] = 50, -60
    curve = curve_of(make_run(tmp_path / "run", scores.tolist()))
    points = thin(curve, 100)
    assert len(points["mean"]) == 100
    assert (max(points["high"]), min(points["low"])) == (50, -60)
    assert points["steps"] == [10_000 * i for i in range(1, 101)]
    assert np.allclose(points["mean"], scores.reshape(100, 10).mean(1), rtol=1e-5)


def test_last_point_of_a_thinned_curve_stands_for_the_rest(tmp_path: Path) -> None:
    points = thin(curve_of(make_run(tmp_path / "run", [1.0] * 10 + [4.0])), 4)
    assert points["steps"] == [3000, 6000, 9000, 11_000]
    assert points["mean"] == [1, 1, 1, 2.5]


@pytest.mark.parametrize("value", [0.0, 1 / 3, -1e-12 / 3, 123456789.0, 2e300 / 3])
def test_values_keep_six_digits(tmp_path: Path, value: float) -> None:
    (sent,) = thin(curve_of(make_run(tmp_path / "run", [value])), 10)["mean"]
    assert math.isclose(sent, value, rel_tol=1e-5)
