"""Tests of the learning curve, the metrics file and the summary of a run."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.runs import report
from pufferlib.runs.report import (
    CURVE,
    SCORE,
    XAxis,
    last_score,
    plot_learning_curve,
    read_metrics,
    smooth,
    unit_of,
    write_summary,
)
from tests.tiers import once

NAN = math.nan


def rows(count: int) -> list[dict[str, float]]:
    return [
        {"agent_steps": i * 65536.0, "uptime_s": i * 0.4, "environment/score": 100 * i / count} for i in range(count)
    ]


def picture(path: Path) -> np.ndarray:
    image = pytest.importorskip("matplotlib.image", reason="needs the extra 'train'")
    pixels: np.ndarray = image.imread(path)
    return pixels


@pytest.mark.parametrize("count", once([0, 1, 2, 500], [0, 500]))
@pytest.mark.parametrize("random_score", [1.5, NAN])
def test_learning_curve_is_drawn(tmp_path: Path, count: int, random_score: float) -> None:
    path = tmp_path / "curve.png"
    plot_learning_curve(path, rows(count), "breakout, seed 42: score 99.8", random_score)
    pixels = picture(path)
    assert pixels.shape[0] > 400
    assert pixels.shape[1] > 1000
    colours = {tuple(colour) for colour in (pixels[::2, ::2, :3].reshape(-1, 3) * 255).astype(int)}
    has_baseline = any(red > 200 and 60 < green < 140 and blue < 60 for red, green, blue in colours)
    assert has_baseline == math.isfinite(random_score)


def test_learning_curve_labels_its_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="needs the extra 'train'")
    drawn = []
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *args, **kwargs: drawn.append(figure))
    plot_learning_curve(tmp_path / "curve.png", rows(5), "a", 1.0)
    left, right = drawn[0].axes
    assert left.get_ylabel() == "score in training (sampled actions)"
    assert (left.get_xlabel(), right.get_xlabel()) == ("agent steps (thousands)", "time of training (seconds)")
    assert [text.get_text() for text in left.get_legend().get_texts()] == [
        "in training, each update", "in training, smoothed", "random play"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("x", "longest", "unit", "label"),
    [
        ("steps", 900, 1, "agent steps"),
        ("steps", 2e6, 1e6, "agent steps (millions)"),
        ("steps", 3e9, 1e9, "agent steps (billions)"),
        ("time", 100, 1, "time of training (seconds)"),
        ("time", 1000, 60, "time of training (minutes)"),
        ("time", 9e4, 3600, "time of training (hours)"),
    ],
)
def test_axis_unit_follows_longest_run(x: XAxis, longest: float, unit: float, label: str) -> None:
    assert unit_of(x, longest) == (unit, label)


def test_rows_without_score_are_skipped(tmp_path: Path) -> None:
    some = [{"agent_steps": 1.0, "uptime_s": 1.0}, *rows(5), {"agent_steps": 9e9, "environment/score": NAN}]
    plot_learning_curve(tmp_path / "a.png", some, "a")
    plot_learning_curve(tmp_path / "b.png", rows(5), "a")
    assert (picture(tmp_path / "a.png") == picture(tmp_path / "b.png")).all()


def test_single_score_is_visible(tmp_path: Path) -> None:
    plot_learning_curve(tmp_path / "curve.png", rows(1), "a")
    pixels = picture(tmp_path / "curve.png")[..., :3] * 255
    right = pixels[:, pixels.shape[1] // 2 :]  # the legend is on the left
    assert (right.round() == list(bytes.fromhex(CURVE[1:]))).all(-1).any()


def test_last_score_is_last_finite_score() -> None:
    assert last_score([{"agent_steps": 1.0}]) is None
    assert last_score([*rows(5), {"agent_steps": 9e9, SCORE: NAN}]) == 80


def test_smooth_keeps_constants_and_lines() -> None:
    assert np.allclose(smooth(np.full(300, 7.0)), 7)
    line = np.arange(300.0)
    assert np.allclose(smooth(line)[20:-20], line[20:-20])
    assert smooth(np.array([3.0])).tolist() == [3.0]


def test_read_metrics_skips_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"agent_steps": 1, "losses/value": null}\n{"agent_steps": 2}\n{"agent_st')
    first, second = read_metrics(path)
    assert first["agent_steps"] == 1
    assert math.isnan(first["losses/value"])
    assert second == {"agent_steps": 2}


def test_read_metrics_drops_rows_repeated_after_crash(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    steps = [10, 20, 30, 40, 30, 40, 50]  # resumed from the checkpoint at 20, after a crash at 40
    path.write_text("".join(json.dumps({"agent_steps": step, "uptime_s": i}) + "\n" for i, step in enumerate(steps)))
    assert [(row["agent_steps"], row["uptime_s"]) for row in read_metrics(path)] == [
        (10, 0), (20, 1), (30, 4), (40, 5), (50, 6)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("nonsense\n{}\n", "line 1: expected a JSON"),
        ('{"é": 1}\n', "expected lines of JSON in UTF-8"),
    ],
)
def test_invalid_metrics_file_raises(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "metrics.jsonl"
    if text is not None:
        path.write_text(text, "latin-1")
    with pytest.raises(APIUsageError, match=message):
        read_metrics(path)


def test_summary_writes_nan_as_null(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_summary(path, {"env_name": "breakout", "score": 3.5, "random_score": NAN, "episodes": 32})
    assert json.loads(path.read_text()) == {"env_name": "breakout", "score": 3.5, "random_score": None, "episodes": 32}


def test_learning_curve_of_self_play_shows_elo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"agent_steps": i, "uptime_s": i, "environment/score": 0.0, "selfplay/elo": 1000 + i} for i in range(3)]
    drawn: list[list[float]] = []
    monkeypatch.setattr(report, "smooth", lambda values: drawn.append(values.tolist()) or values)
    report.plot_learning_curve(tmp_path / "curve.png", rows, "title")
    assert drawn == [[1000, 1001, 1002]] * 2
