"""Tests of runs with several seeds, and of the status of runs."""

import json
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.runs import seeds as seeds_module
from pufferlib.runs.curves import Curve, band_of
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import Run, removed_if_empty
from pufferlib.runs.seeds import find_group, parse_seeds, report_group
from pufferlib.runs.status import in_training, status_of
from pufferlib.settings.config import load_config
from pufferlib.training.launch import train

pytestmark = pytest.mark.usefixtures("blank_curves")

QUICK: dict[str, Any] = {
    "env.num_envs": 16, "train.total_timesteps": 1024, "train.horizon": 16, "train.minibatch_size": 256,
    "train.device": "cpu", "policy.hidden_size": 8, "eval.episodes": 2, "eval.video_seconds": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (42, 43, 44)), (2, (42, 43)), ("1,2,7", (1, 2, 7)), ("7,", (7,)), (" 1, 2", (1, 2))]
)
def test_parse_seeds_accepts_number_or_list(text: str | int, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text, 42) == seeds


@pytest.mark.parametrize("text", ["0", "-1", "x", "1,1", "1,x", ",", "1,-2"])
def test_parse_seeds_of_invalid_text_raises(text: str) -> None:
    with pytest.raises(UsageError, match=r"a number of seeds, such as 5, or different seeds .*, such as 1,2,3; got '"):
        parse_seeds(text, 42)


@pytest.mark.parametrize("seeds", [2.0, "2.0", [1.5], np.float32(2), np.array([1, 1])])
def test_train_with_invalid_seeds_raises(tmp_path: Path, seeds: Any) -> None:
    with pytest.raises(UsageError, match=r"train\.seeds must be a number of seeds"):
        pufferlib.train("squared", QUICK, runs=tmp_path, seeds=seeds)


def test_seeds_are_trained_in_one_folder_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt_second_seed(run: Run) -> AbstractContextManager[Run]:
        if run.folder.name == "seed-43":
            raise KeyboardInterrupt
        return removed_if_empty(run)

    monkeypatch.setattr(seeds_module, "removed_if_empty", interrupt_second_seed)
    with pytest.raises(KeyboardInterrupt):
        pufferlib.train("squared", QUICK, runs=tmp_path, seeds=2, track="csv")
    monkeypatch.setattr(seeds_module, "removed_if_empty", removed_if_empty)
    (folder,) = tmp_path.iterdir()
    first = (folder / "seed-42" / "summary.json").read_bytes(), (folder / "seed-42" / "summary.json").stat().st_mtime_ns
    done = train(resume=folder, seeds=[44], settings={"track.tags": ["more"]})
    assert done.group.seeds == (42, 43, 44)
    summary = folder / "seed-42" / "summary.json"
    assert (summary.read_bytes(), summary.stat().st_mtime_ns) == first, "finished seeds are not trained again"
    scores = [json.loads((folder / f"seed-{seed}" / "summary.json").read_text())["score"] for seed in (42, 43, 44)]
    summary_of_group = json.loads((folder / "summary.json").read_text())
    assert summary_of_group["scores"] == scores
    assert summary_of_group["score_iqm"] == pytest.approx(sum(scores) / 3)
    assert summary_of_group["score_iqm_low"] <= summary_of_group["score_iqm"] <= summary_of_group["score_iqm_high"]
    assert (folder / "learning_curve.png").stat().st_size > 1000
    assert [Run.at(folder / f"seed-{seed}").settings().train.seed for seed in (42, 43, 44)] == [42, 43, 44]
    assert (folder / "seed-44" / "metrics.csv").exists()
    assert re.search("(?s)seed 42.*seed 44.*<img", done._repr_html_()), "in a notebook"
    best = folder / f"seed-{42 + summary_of_group['scores'].index(max(summary_of_group['scores']))}"
    for target in ("squared", str(folder)):
        assert find_run("here", target, tmp_path).folder == best
    (summary.parent / "summary.json").unlink()
    with pytest.raises(APIUsageError, match="expected the result of a finished run"):
        report_group(done.group)


def test_failed_group_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(pufferlib.APIUsageError, match="size must be an int"):
        pufferlib.train("squared", {**QUICK, "env.size": 1000}, runs=tmp_path, seeds=2)
    assert list(tmp_path.iterdir()) == []


def test_damaged_seeds_file_raises(tmp_path: Path) -> None:
    (tmp_path / "seeds.json").write_text("nonsense")
    with pytest.raises(
        APIUsageError, match=r"seeds.json: expected a list of seeds, such as \[42, 43\], got 'nonsense'"
    ):
        find_group(tmp_path)


def test_band_covers_curves_of_different_lengths() -> None:
    from numpy import array, isfinite, isnan

    band = band_of([Curve(array([0.0, 10.0]), array([s, s])) for s in (1.0, 2.0, 3.0)] + [Curve(array([]), array([]))])
    assert (band.middle == 2).all()
    assert (band.low >= 1).all()
    assert (band.high <= 3).all()
    longer = band_of([Curve(array([0.0, 10.0]), array([1.0, 1.0])), Curve(array([0.0, 20.0]), array([3.0, 3.0]))])
    assert longer.middle[0] == 2
    assert longer.middle[-1] == 3
    assert isfinite(longer.low[0])
    assert isnan(longer.low[-1]), "a single curve has no interval"


def test_name_selects_latest_run(tmp_path: Path) -> None:
    first = train("squared", QUICK, runs=tmp_path, name="wide net", tags=["a"])
    assert first.run.folder.name.endswith("-squared-wide-net")
    assert first.config.track.tags == ("a",)
    second = train("squared", QUICK, runs=tmp_path, name="wide net")
    assert second.run.folder != first.run.folder
    assert find_run("here", "wide net", tmp_path) == second.run
    assert load_config("squared", QUICK).track.name == ""


def test_status_of_returns_state_of_run(tmp_path: Path) -> None:
    run = Run.at(tmp_path)
    with in_training(run):
        assert status_of(run).state == "running"
        with (
            pytest.raises(APIUsageError, match=r"is being trained by process \d+ on .*; wait for it"),
            in_training(run),
        ):
            pass
    assert status_of(run).state == "stopped", "has no summary"
    run.summary.write_text("{}")
    assert status_of(run).state == "finished"
    with pytest.raises(KeyboardInterrupt), in_training(run):
        raise KeyboardInterrupt
    assert status_of(run).state == "stopped"
    with pytest.raises(ValueError, match="NaN"), in_training(run):
        raise ValueError("NaN\nin a layer")
    assert (status_of(run).state, status_of(run).reason) == ("failed", "ValueError: NaN")
    with pytest.raises(KeyError), in_training(run):
        raise KeyError("score")
    assert status_of(run).reason == "KeyError: 'score'"
    run.status.write_text('{"state": "running", "pid": 1, "host": "gone"}')  # as after kill -9
    assert status_of(run).state == "stopped"
