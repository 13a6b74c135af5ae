"""Tests of CSV, TensorBoard, Weights & Biases and custom trackers."""

import csv
import json
import resource
import struct
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pufferlib.errors import APIUsageError, BindingMissing, UnknownNameError
from pufferlib.machine.commands import way_to_install
from pufferlib.settings.config import WandbConfig, load_config
from pufferlib.training.launch import train
from pufferlib.training.loggers import CsvLogger, Logger, TensorBoardLogger, WandbLogger, check_trackers
from pufferlib.training.loggers.base import Result
from pufferlib.training.loggers.tracking import BackgroundTracker
from tests.needs import missing_extra
from tests.tiers import once

SCORE = "environment/score"
needs_track = pytest.mark.skipif(bool(missing_extra("track")), reason=missing_extra("track"))
QUICK = {
    "env.num_envs": 16, "train.total_timesteps": 4096, "train.horizon": 16, "train.minibatch_size": 256,
    "train.device": "cpu", "policy.hidden_size": 8, "eval.episodes": 2,
}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def log_all(logger: Logger, rows: list[dict[str, float]], close: int = 0) -> None:
    for row in rows:
        logger.log(row)
    for _ in range(close):
        logger.close()


def test_csv_logger_adds_columns_for_new_metrics(tmp_path: Path) -> None:
    logger = CsvLogger(tmp_path / "metrics.csv")
    logger.log({"agent_steps": 10, "sps": 2.5})
    logger.log({"agent_steps": 20, "sps": float("nan"), 'a,"b': 1.0})
    logger.log({"agent_steps": 30})
    assert table(tmp_path / "metrics.csv") == [
        {"agent_steps": "10", "sps": "2.5", 'a,"b': ""},
        {"agent_steps": "20", "sps": "nan", 'a,"b': "1.0"},
        {"agent_steps": "30", "sps": "", 'a,"b': ""},
    ]
    logger.close()
    logger.close()


def test_csv_logger_starts_deleted_file_with_header(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    logger = CsvLogger(path)
    log_all(logger, [{"agent_steps": 10, "sps": 1.0}])
    path.unlink()
    log_all(logger, [{"agent_steps": 20, "sps": 2.0}, {"agent_steps": 30, SCORE: 3.0}], close=1)
    assert [list(row.values()) for row in table(path)] == [["20", "2.0", ""], ["30", "", "3.0"]]


def test_csv_logger_continues_from_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("agent_steps,sps\n10,1.0\n20,1.0\n30,1.0\n4")  # killed while writing, the checkpoint was at 10
    logger = CsvLogger(path)
    logger.log({"agent_steps": 20, "sps": 2.0, SCORE: 3.0})
    logger.close()
    assert [(row["agent_steps"], row["sps"], row[SCORE]) for row in table(path)] == [
        ("10", "1.0", ""), ("20", "2.0", "3.0")
    ]  # fmt: skip


def test_csv_logger_keeps_rows_while_disk_is_full(tmp_path: Path) -> None:
    path, before = tmp_path / "metrics.csv", resource.getrlimit(resource.RLIMIT_FSIZE)
    logger = CsvLogger(path)
    logger.log({"agent_steps": 10})
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1, before[1]))
    try:
        with pytest.warns(UserWarning, match=r"metrics.csv: metrics could not be written \(File too large\)") as warned:
            log_all(logger, [{"agent_steps": 20, "sps": 1.0}, {"agent_steps": 30, "sps": 1.0}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(warned) == 1
    logger.close()
    assert [row["agent_steps"] for row in table(path)] == ["10", "20", "30"]


@pytest.fixture
def result(tmp_path: Path) -> Result:
    image = pytest.importorskip("PIL.Image", reason="needs the extra 'train'")
    image.new("RGB", (4, 4)).save(tmp_path / "curve.png")
    return Result({"score": 0.5, "env_name": "squared", "greedy": False}, tmp_path / "curve.png", None)


@needs_track
def test_tensorboard_logger_writes_metrics_settings_and_result(tmp_path: Path, result: Result) -> None:
    logger = TensorBoardLogger(tmp_path, {"train.learning_rate": 0.5, "env.sizes": [1, 2]}, "mine")
    for steps in (100, 200, 300):
        logger.log({"agent_steps": steps, SCORE: steps / 100})
    logger.close()
    logger.close()
    again = TensorBoardLogger(tmp_path, {"train.learning_rate": 0.5})
    again.log({"agent_steps": 200, SCORE: 9.0})  # resumed from a checkpoint at 100
    again.finish(result)
    again.close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    events = EventAccumulator(str(tmp_path), purge_orphaned_data=True).Reload()
    assert [(event.step, event.value) for event in events.Scalars(SCORE)] == [(100, 1.0), (200, 9.0)]
    assert [(event.step, event.value) for event in events.Scalars("result/score")] == [(200, 0.5)]
    assert events.Images("learning curve")[0].encoded_image_string == result.curve.read_bytes()
    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    started = metadata.parse_session_start_info_plugin_data(content)
    assert started.hparams["train.learning_rate"].number_value == 0.5
    assert started.hparams["env.sizes"].string_value == "[1, 2]"


def wandb_records(file: Path) -> Iterator[Any]:
    """Yield the records of a W&B file, which has a header of 7 bytes and blocks of 32 KiB in LevelDB's log format."""
    from wandb.proto import wandb_internal_pb2

    data, place, whole = file.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or its last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def wandb_metrics(folder: Path) -> tuple[Any, list[dict[str, Any]], dict[str, Any]]:
    """Return the run, its history and its summary from the folder of an offline run."""
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    records = list(wandb_records(file))
    (run,) = (record.run for record in records if record.WhichOneof("record_type") == "run")
    rows = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    summary = {
        item.key or "/".join(item.nested_key): json.loads(item.value_json)
        for record in records
        if record.WhichOneof("record_type") == "summary"
        for item in record.summary.update
    }
    return run, rows, summary


@pytest.mark.all
@needs_track
def test_all_trackers_get_metrics_and_result(tmp_path: Path) -> None:
    done = train(
        "squared", {**QUICK, "track.wandb": {"mode": "offline", "project": "tests"}, "track.interval": 0},
        runs=tmp_path,
        track="csv,tensorboard,wandb", name="wide", tags=["a", "b"],
    )  # fmt: skip
    folder = done.run.folder
    rows = [json.loads(line) for line in done.run.metrics.read_text().splitlines()]
    steps = [row["agent_steps"] for row in rows]
    score = json.loads(done.run.summary.read_text())["score"]
    assert folder.name.endswith("-squared-wide")
    assert [int(row["agent_steps"]) for row in table(done.run.table)] == steps
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("losses/policy")] == steps
    assert [event.value for event in events.Scalars("result/score")] == [pytest.approx(score)]
    assert events.Images("evaluation")[0].encoded_image_string.startswith(b"GIF89a")
    run, history, summary = wandb_metrics(folder)
    assert (run.project, run.display_name, list(run.tags)) == ("tests", "wide", ["a", "b"])
    settings = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert settings["train"]["total_timesteps"] == 4096
    logged = [row for row in history if "losses/policy" in row]
    assert [(row["agent_steps"], row["losses/policy"]) for row in logged] == [
        (row["agent_steps"], row["losses/policy"]) for row in rows
    ]
    assert {"learning curve/_type", "evaluation/_type"} <= {key for row in history for key in row}
    assert summary["score"] == score


def test_wandb_without_account_raises_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := missing_extra("track"):
        pytest.skip(reason)
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("pufferlib.training.loggers.wandb.in_image", lambda: False)
    with pytest.raises(APIUsageError, match=r"needs an account.* run: wandb login, or add --track.wandb.mode offline"):
        train("squared", QUICK, runs=tmp_path / "runs", track="wandb")
    assert not (tmp_path / "runs").exists()
    monkeypatch.setattr("pufferlib.training.loggers.wandb.in_image", lambda: True)
    with pytest.raises(
        APIUsageError, match=r"WANDB_API_KEY is not set in this container; set it on the host or in .env"
    ):
        train("squared", QUICK, runs=tmp_path / "runs", track="wandb")


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_missing_tracker_names_install_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(BindingMissing) as raised:
        check_trackers(load_config("squared", {"track.loggers": name}))
    assert str(raised.value).endswith(f'the logger "{name}" needs it; {way_to_install("track")}')


OWN = """
import json
class Mine:
    def __init__({arguments}):
        self.lines = open({place!r}, "w")
    def log(self, metrics):
        print(json.dumps(metrics["agent_steps"]), file=self.lines)
    def finish(self, result):
        print("score" in result.scores, file=self.lines)
    def close(self):
        self.lines.close()
"""


@pytest.mark.parametrize("arguments", once(["self", "self, run", "self, run=None, color='red'"], ["self, run"]))
@pytest.mark.parametrize("attribute", ["", ":Mine"])
def test_custom_tracker_gets_metrics_and_result(tmp_path: Path, arguments: str, attribute: str) -> None:
    place = tmp_path / "lines.txt"
    (tmp_path / "mine.py").write_text(OWN.format(arguments=arguments, place=str(place)))
    done = train("squared", QUICK, runs=tmp_path / "runs", track=["csv", f"{tmp_path}/mine.py{attribute}"])
    metrics = [json.loads(line) for line in done.run.metrics.read_text().splitlines()]
    assert place.read_text().split() == [*(str(line["agent_steps"]) for line in metrics), "True"]
    assert done.run.table.exists()


@pytest.mark.parametrize(
    ("track", "error", "message"),
    [
        ("wandv", UnknownNameError, r"track.loggers: unknown tracker 'wandv'; did you mean 'wandb'\?"),
        ("mine.py:Other", UnknownNameError, "unknown attribute 'Other'"),
        ("absent.py:Mine", APIUsageError, "absent.py"),
        ("mine.py:Empty", APIUsageError, r"Empty must have the methods log\(metrics\) and close\(\), got Empty"),
        ("mine.py:Two", APIUsageError, r"the class .*Two must need no arguments, or one, the run"),
    ],
)
def test_invalid_tracker_raises_before_training(
    tmp_path: Path, track: str, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "class Mine:\n  def log(self, metrics): pass\n  def close(self): pass\nclass Empty: pass\n"
        "class Two(Mine):\n  def __init__(self, run, other): pass\n"
    )
    with pytest.raises(error, match=message):
        train("squared", QUICK, runs=tmp_path / "runs", track=track)
    assert not (tmp_path / "runs").exists()


class Broken:
    """Tracker whose third call fails."""

    def __init__(self) -> None:
        self.got: list[float] = []

    def log(self, metrics: dict[str, float]) -> None:
        if len(self.got) == 2:
            raise OSError("the network is gone\nTraceback ...")
        self.got.append(metrics["agent_steps"])

    def finish(self, result: Result) -> None: ...

    def close(self) -> None:
        raise AssertionError("called after it had failed")


def test_failing_tracker_warns_once() -> None:
    broken = Broken()
    tracker = BackgroundTracker("Broken", broken, 0)
    with pytest.warns(UserWarning, match=r"Broken failed \(the network is gone\) and receives nothing more") as warned:
        log_all(tracker, [{"agent_steps": steps} for steps in range(100)], close=2)
    assert len(warned) == 1
    assert broken.got == [0, 1]


def test_slow_tracker_gets_every_row_without_blocking() -> None:
    held, got = threading.Event(), []

    class Slow(Broken):
        def log(self, metrics: dict[str, float]) -> None:
            held.wait()
            got.append(metrics["agent_steps"])

        def close(self) -> None: ...

    tracker, metrics = BackgroundTracker("Slow", Slow(), 0), {"agent_steps": 0.0}
    for steps in range(100):
        metrics["agent_steps"] = steps
        tracker.log(metrics)
    held.set()
    with warnings.catch_warnings():
        tracker.close()
    assert got == list(range(100))


def test_interval_keeps_latest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    now, got = [100.0], []

    class Kept(Broken):
        def log(self, metrics: dict[str, float]) -> None:
            got.append(metrics["agent_steps"])

        def close(self) -> None: ...

    monkeypatch.setattr("pufferlib.training.loggers.tracking.time", SimpleNamespace(monotonic=lambda: now[0]))
    tracker = BackgroundTracker("Kept", Kept(), interval_s=0.25)
    for steps in range(10):
        tracker.log({"agent_steps": steps})
        now[0] += 0.125
    tracker.close()
    assert got == [0, 2, 4, 6, 8, 9]


@needs_track
@pytest.mark.all
def test_unreachable_wandb_server_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("pufferlib.training.loggers.wandb.TIMEOUT_S", 2.0)
    with pytest.raises(Exception, match=r"wandb: the run could not be started: .*; add --track.wandb.mode offline"):
        WandbLogger(tmp_path, WandbConfig(mode="online"))
