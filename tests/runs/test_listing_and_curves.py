"""Tests of listing runs, comparing their settings, and plotting their curves."""

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

import pufferlib
from pufferlib.cli import main
from pufferlib.runs import RunSummary, curves, differing_settings, list_runs, plot, select
from pufferlib.runs.compare import group_runs, short_names
from pufferlib.runs.folder import Run
from pufferlib.runs.status import in_training
from pufferlib.settings.config import load_config


def make_run(
    folder: Path, env: str = "squared", score: float | None = None, steps: int = 3, **settings: Any
) -> RunSummary:
    """Write the files of a run. It is finished if ``score`` is given."""
    folder.mkdir(parents=True)
    load_config(env, {key.replace("__", "."): value for key, value in settings.items()}).save(folder / "config.toml")
    rows = [
        {"agent_steps": i * 1000, "uptime_s": i * 2.0, "environment/score": i / 10, "losses/entropy": 1 / i}
        for i in range(1, steps + 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"agent_steps": 9000}]))
    if score is not None:
        summary = {"score": score, "score_std": 0.5, "agent_steps": 9000, "train_s": 7.0}
        (folder / "summary.json").write_text(json.dumps(summary))
    (run,) = select([folder])
    return run


@pytest.fixture
def kept(here: Path) -> Path:
    """Write five runs: two seeds, one with another setting, one stopped and one of another environment."""
    make_run(here / "runs/20260101-000001-squared", score=1.0, train__seed=1)
    make_run(here / "runs/20260101-000002-squared", score=3.0, train__seed=2)
    make_run(here / "runs/20260101-000003-squared-fast", score=2.0, train__learning_rate=0.5, track__name="fast",
             track__tags=["a", "b"])  # fmt: skip
    make_run(here / "runs/20260101-000004-squared/seed-7", train__seed=7, track__tags=["a"])
    make_run(here / "runs/20260101-000005-pong", "pong", score=math.nan)
    return here / "runs"


def titles(found: list[RunSummary]) -> list[str]:
    return [run.title.removeprefix("20260101-00000") for run in found]


def test_list_runs_reads_run_folders(kept: Path) -> None:
    found = list_runs(kept)
    assert titles(found) == ["5-pong", "4-squared/seed-7", "3-squared-fast", "2-squared", "1-squared"]
    pong, stopped, fast, second, _ = found
    assert math.isnan(pong.score)
    assert (stopped.state, stopped.score, stopped.is_evaluated) == ("stopped", 0.3, False)
    assert (stopped.agent_steps, stopped.train_s) == (9000, 6.0)
    assert (fast.name, fast.tags, fast.state, fast.score, fast.score_std) == ("fast", ("a", "b"), "finished", 2, 0.5)
    assert (second.agent_steps, second.train_s, second.settings["train.seed"]) == (9000, 7.0, 2)
    assert titles(list_runs(kept, ["squared"], ["a"])) == ["4-squared/seed-7", "3-squared-fast"]
    assert titles(list_runs(kept, tags=["a", "b"])) == ["3-squared-fast"]
    with in_training(Run.at(second.folder)):
        assert select([second.folder])[0].state == "running"
    assert list_runs(kept / "absent") == []


def test_damaged_run_is_listed(kept: Path) -> None:
    (kept / "20260101-000001-squared" / "config.toml").write_text("[[")
    (kept / "20260101-000002-squared" / "summary.json").write_text("{")
    (kept / "20260101-000002-squared" / "metrics.jsonl").unlink()
    second, first = list_runs(kept)[-2:]
    assert (first.env_name, first.score, first.settings) == ("", 1.0, {})
    assert math.isnan(second.score)


def test_differing_settings_compares_runs_of_same_env(kept: Path) -> None:
    found = list_runs(kept)
    assert {"train.seed", "train.learning_rate"} == {*differing_settings(found)}
    assert differing_settings(found[-2:]) == ["train.seed"]
    assert differing_settings(found[:1]) == []
    page = found._repr_html_()
    assert all(run.title in page for run in found), "in a notebook"
    assert ">train.learning_rate</th>" in page


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("runs/20260101-000002-squared", ["2-squared"]),
        ("runs/20260101-000004-squared", ["4-squared/seed-7"]),
        ("runs/*-00000[12]-*", ["1-squared", "2-squared"]),
        ("*-squared", ["1-squared", "2-squared", "4-squared/seed-7"]),
        ("fast", ["3-squared-fast"]),
        ("puffer_pong", ["5-pong"]),
    ],
)
def test_select_accepts_folder_pattern_name_and_env(target: str, found: list[str], kept: Path) -> None:
    assert titles(select([target, target])) == found


@pytest.mark.parametrize("name", ["my_env.py", "my_env.py:Forage"])
def test_select_accepts_both_names_of_an_env_in_a_file(name: str, here: Path) -> None:
    (here / "my_env.py").write_text("import gymnasium\n\n\nclass Forage(gymnasium.Env): ...\n")
    for env in ("my_env.py", "my_env.py:Forage"):
        make_run(here / "runs" / env, str(here / env))
    assert len(select([name])) == len(list_runs(here / "runs", [name])) == 2


def test_folder_without_a_run_does_not_hide_env(kept: Path, here: Path) -> None:
    (here / "pong").mkdir()
    assert titles(select(["pong"])) == ["5-pong"]


def test_select_of_unknown_run_raises(kept: Path) -> None:
    with pytest.raises(pufferlib.UnknownNameError, match=r"'squard' is not a run, .*; did you mean 'squared'"):
        select(["squard"])
    (kept / "empty").mkdir()
    with pytest.raises(pufferlib.APIUsageError, match=r"runs/empty: is not a run: it has no metrics.jsonl; expected"):
        select(["runs/empty"])


def test_group_runs_groups_seeds_by_settings(kept: Path) -> None:
    lines = group_runs(select(["squared"]))
    assert {label: titles(members) for label, members in lines.items()} == {
        "learning_rate 0.004": ["1-squared", "2-squared", "4-squared/seed-7"],
        "fast, learning_rate 0.5": ["3-squared-fast"],
    }
    assert [len(members) for members in group_runs(select(["squared"]), "train.gamma").values()] == [4]
    assert list(group_runs(select(["fast"]))) == ["fast"]
    assert list(group_runs(select(["pong"]))) == ["20260101-000005-pong"]


def test_group_runs_counts_each_seed_once(kept: Path) -> None:
    make_run(kept / "20260101-000006-squared/seed-7", score=1.0, train__seed=7, train__device="cpu")
    make_run(kept / "20260101-000006-squared/seed-8", score=1.0, train__seed=8)
    make_run(kept / "20260101-000007-squared/seed-8", score=1.0, steps=2, train__seed=8)
    make_run(kept / "20260101-000008-squared", score=1.0, train__seed=8, train__total_timesteps=5000)
    lines = group_runs(select(["*-00000[4678]-squared*"]))
    assert [titles(members) for members in lines.values()] == [["6-squared/seed-7", "7-squared/seed-8"], ["8-squared"]]
    assert len(group_runs(select(["*-00000[4678]-squared*"]), "train.learning_rate")["learning_rate 0.004"]) == 3


def test_plot_has_panel_per_env_and_band_over_seeds(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="needs the extra 'train'")
    drawn: list[Any] = []
    save = figures.Figure.savefig
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *path: drawn.append(figure) or save(figure, *path))
    plot(["squared", "pong"], kept / "a.png")
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *_: drawn.append(figure))  # drawing is slow
    assert (kept / "a.png").stat().st_size > 5000
    squared, pong = drawn[0].axes
    assert (squared.get_title(), pong.get_title()) == ("squared", "pong")
    assert squared.get_xlabel() == "agent steps (thousands)"
    assert [text.get_text() for text in squared.get_legend().get_texts()] == [
        "learning_rate 0.004 (3 runs)", "fast, learning_rate 0.5"
    ]  # fmt: skip
    assert len(squared.collections) == 1, "one band"
    (kept / "20260101-000005-pong" / "metrics.jsonl").write_text("")
    for path in kept.glob("*-squared/metrics.jsonl"):
        path.write_text('{"agent_steps": 5}\n')
    plot(["squared", "pong"], kept / "c.png")
    labels = [text.get_text() for axes in drawn[1].axes for text in axes.get_legend().get_texts()]
    assert labels[0] == "learning_rate 0.004 (3 runs)"
    assert labels[2] == "20260101-000005-pong: no episode ended"
    plot(["squared"], kept / "b.svg", x="time", by="learning-rate")
    assert drawn[2].axes[0].get_xlabel() == "time of training (seconds)"
    for path in kept.rglob("metrics.jsonl"):
        path.write_text('{"agent_steps": 5, "uptime_s": 1, "environment/score": 0.5}\n')
    plot(["squared"], kept / "d.png")
    assert drawn[3].axes[0].lines[0].get_marker() == "o", "a line through one point is invisible"
    plot(["pong"], kept / "e.png", levels={"theirs": 0.25, "unknown": math.nan})
    (axes,) = drawn[4].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()][1:] == ["theirs"]
    assert list(axes.lines[-1].get_ydata()) == [0.25, 0.25]
    assert axes.get_xlabel() == "agent steps"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out": "a.jpg"}, "plot: out must end in .png, .svg, .pdf, got a.jpg"),
        ({"out": "no/a.png"}, "plot: out must be in a folder that exists, got no/a.png"),
        ({"x": "days"}, "plot: x must be steps or time, got 'days'"),
        ({"by": "gama"}, "unknown setting 'gama'; did you mean 'train.gamma'"),
    ],
)
def test_invalid_plot_raises(options: dict[str, Any], message: str, kept: Path) -> None:
    with pytest.raises(pufferlib.APIUsageError, match=message):
        plot(["squared"], **options)


def test_runs_verb_shows_differing_settings(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "squared", "--sort", "score"]) == 0
    heads, *rows, end = capsys.readouterr().out.splitlines()
    assert heads.split() == ["run", "environment", "tags", "state", "score", "steps", "time", "seed", "learning_rate"]
    assert [row.split()[0][-9:] for row in rows] == ["2-squared", "ared-fast", "1-squared", "ed/seed-7"]
    assert " ".join(rows[1].split()[1:]) == "squared a, b finished 2 ± 0.500 9.00k 0:07 42 0.5"
    assert " stopped   0.300 in training" in rows[3]
    assert end == "Plot their curves: puffer plot RUN RUN ..."
    assert main(["runs", "--json", "--tag", "b"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["score"], found["settings"]["train.learning_rate"]) == ("fast", 2.0, 0.5)
    assert main(["runs", "--json", "fast"]) == 0
    assert [run["name"] for run in json.loads(capsys.readouterr().out)] == ["fast"]
    assert main(["runs", "snake"]) == 0
    assert capsys.readouterr().err == "there is no run of snake in runs; train one: puffer train snake\n"


def test_plot_verb_prints_lines_and_file(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'train'")
    assert main(["plot", "squared", "--out", "all.png"]) == 0
    assert capsys.readouterr().out == (
        "squared  learning_rate 0.004: 3 runs\nsquared  fast, learning_rate 0.5: 1 run\nplot: all.png\n"
    )
    assert main(["plot"]) == 2
    assert "puffer plot: name runs or environments, for example: puffer plot breakout" in capsys.readouterr().err
    assert main(["plot", "squard"]) == 2
    assert "puffer plot: 'squard' is not a run" in capsys.readouterr().err


@pytest.mark.all
def test_listing_500_runs_is_fast(here: Path) -> None:
    make_run(here / "runs/20260101-000000-squared", score=1.0)
    source = here / "runs/20260101-000000-squared"
    for i in range(1, 500):
        folder = here / f"runs/20260101-{i:06}-squared"
        folder.mkdir()
        for name in ("config.toml", "summary.json", "metrics.jsonl"):
            (folder / name).write_bytes((source / name).read_bytes())
    start = time.process_time()
    assert len(list_runs(here / "runs")) == 500
    assert time.process_time() - start < 5, "takes less than a second on a quiet machine"


@pytest.mark.parametrize("metric", ["losses/entropy", "entropy"])
def test_metric_flag_selects_any_metric(
    metric: str, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    read = curves.read_curve
    monkeypatch.setattr(curves, "read_curve", lambda *args: drawn.append(read(*args)) or drawn[-1])
    assert main(["plot", "squared", "--metric", metric, "--out", "x.png"]) == 0
    assert drawn[0].score.tolist() == [1, 1 / 2, 1 / 3]
    assert main(["runs", "squared", "--metric", metric]) == 0
    text = capsys.readouterr().out
    assert "losses/entropy" in text
    assert "0.333" in text
    assert main(["plot", "squared", "--metric", "losses/entrpy"]) == 2
    assert "unknown metric 'losses/entrpy'; did you mean 'losses/entropy'?" in capsys.readouterr().err


def test_policy_name_keeps_its_section_in_tables() -> None:
    assert short_names(["policy.name", "train.gamma"]) == {"policy.name": "policy.name", "train.gamma": "gamma"}
