"""Data of the board, its export, and ``puffer board``."""

import json
import math
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from pufferlib.cli import main
from pufferlib.errors import APIUsageError
from pufferlib.runs.folder import Run
from pufferlib.runs.statistics import estimate_iqm
from pufferlib.runs.status import in_training
from pufferlib.selfplay.league import SCHEMA
from pufferlib.web.board import Board
from pufferlib.web.server import Reply, Request, Server
from tests.web.boards import add_updates, make_run


@pytest.fixture
def kept(here: Path) -> Path:
    """Write runs: two seeds, one with another setting, one of another environment, one of a sweep."""
    for seed, score in ((1, 4.0), (2, 6.0)):
        make_run(here / f"runs/20260101-000001-squared/seed-{seed}", result=score, train__seed=seed)
    make_run(
        here / "runs/20260101-000002-squared-fast", train__learning_rate=0.5, track__name="fast", track__tags=["a"]
    )
    make_run(here / "runs/20260101-000003-pong", [None], math.nan, "pong")
    make_run(here / "sweeps/wide/runs/trial-0000")
    (here / "sweeps/wide/study.db").touch()
    return here


@pytest.fixture
def board(kept: Path) -> Board:
    return Board(kept)


def ask(board: Board, path: str, **query: Any) -> Reply:
    return board(Request(path, {name: str(value) for name, value in query.items()}, {}))


def answer(board: Board, name: str, **query: Any) -> dict[str, Any]:
    """Return an answer as the page reads it, in which NaN would be an error."""
    reply = ask(board, f"/data/{name}.json", **query)
    assert (reply.status, reply.kind) == (200, "application/json"), reply.body
    data: dict[str, Any] = json.loads(reply.body, parse_constant=pytest.fail)
    return data


def rows(board: Board) -> dict[str, dict[str, Any]]:
    """Return all runs by path."""
    sections = answer(board, "runs")["sections"]
    return {run["path"]: run for section in sections for group in section["groups"] for run in group["runs"]}


def score_curves(board: Board, *paths: str, **query: Any) -> dict[str, Any]:
    ids = [rows(board)[path]["id"] for path in paths]
    return answer(board, "curves/0", runs=",".join(map(str, ids)), **query)


PONG, FAST = "runs/20260101-000003-pong", "runs/20260101-000002-squared-fast"


def test_runs_are_grouped_by_environment_and_seeds(board: Board) -> None:
    sections = answer(board, "runs")["sections"]
    found = {
        (section["title"], section["sweep"]): [(group["label"], len(group["runs"])) for group in section["groups"]]
        for section in sections
    }
    assert found == {
        ("pong", None): [("20260101-000003-pong", 1)],
        ("squared", None): [("fast, learning_rate 0.5", 1), ("learning_rate 0.004", 2)],
        ("squared", 0): [("trial-0000", 1)],
    }


def test_group_has_the_interquartile_mean_of_its_evaluations(board: Board) -> None:
    (group,) = [
        group for section in answer(board, "runs")["sections"] for group in section["groups"] if len(group["runs"]) == 2
    ]
    expected = estimate_iqm([6.0, 4.0], resamples=5000)
    assert (group["score"], group["low"], group["high"]) == (expected.value, expected.low, expected.high)
    assert group["evaluated"]


def test_columns_are_the_settings_that_differ(board: Board) -> None:
    (section,) = [
        each for each in answer(board, "runs")["sections"] if each["title"] == "squared" and each["sweep"] is None
    ]
    columns = [setting["short"] for setting in section["settings"]]
    fast = section["groups"][0]["runs"][0]
    assert dict(zip(columns, fast["settings"], strict=True)) == {"seed": 42, "learning_rate": 0.5}
    assert (fast["name"], fast["tags"], fast["state"], fast["score"]) == ("fast", ["a"], "stopped", 3)


def test_unchanged_list_is_not_sent_again(board: Board, kept: Path) -> None:
    first = answer(board, "runs")
    version = first["version"]
    assert answer(board, "runs", since=version) == {"id": first["id"], "version": version}
    assert answer(Board(kept), "runs", since=version)["id"] != first["id"], "a page must notice another board"
    add_updates(kept / FAST, [9.0], first=4)
    changed = answer(board, "runs", since=version)
    assert changed["version"] > version
    assert rows(board)[FAST]["score"] == 9


def test_run_in_training_is_running(board: Board, kept: Path) -> None:
    with in_training(Run.at(kept / FAST)):
        assert rows(board)[FAST]["state"] == "running"
    assert rows(board)[FAST]["state"] == "stopped"


def test_new_runs_appear_and_deleted_ones_disappear(board: Board, kept: Path) -> None:
    number = rows(board)[FAST]["id"]
    make_run(kept / "runs/20260101-000009-pong", env="pong")
    shutil.rmtree(kept / FAST)
    assert "runs/20260101-000009-pong" in rows(board)
    assert FAST not in rows(board)
    assert answer(board, "curves/0", runs=number)["curves"] == {}
    assert ask(board, f"/data/run/{number}.json").status == 404


def test_curves_have_only_what_changed_since_a_version(board: Board, kept: Path) -> None:
    first = score_curves(board, FAST, PONG)
    (curve,) = first["curves"].values()
    assert curve == {"steps": [1000, 2000, 3000], "seconds": [2, 4, 6], "mean": [1, 2, 3], "damaged": 0}
    assert score_curves(board, FAST, since=first["version"])["curves"] == {}
    add_updates(kept / FAST, [9.0], first=4)
    (curve,) = score_curves(board, FAST, since=first["version"])["curves"].values()
    assert curve["mean"] == [1, 2, 3, 9]


def test_any_metric_has_curves(board: Board) -> None:
    number = answer(board, "runs")["metrics"].index("losses/entropy")
    (curve,) = answer(board, f"curves/{number}", runs=rows(board)[FAST]["id"])["curves"].values()
    assert curve["mean"] == [1, 0.5, 0.333333]


def test_self_play_shows_the_rating_first(here: Path) -> None:
    run = make_run(here / "runs/20260101-000001-connect4", env="connect4")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"agent_steps": 9000, "uptime_s": 9.0, "selfplay/elo": 1100.0}\n')
    (section,) = answer(Board(here), "runs")["sections"]
    assert section["metric"] == "selfplay/elo"


def test_details_have_settings_commands_and_videos(board: Board, kept: Path) -> None:
    (kept / PONG / "evaluation.mp4").write_bytes(b"video")
    (kept / PONG / "checkpoints/000001").mkdir(parents=True)
    (kept / PONG / "checkpoints/000001/policy.safetensors").touch()
    details = answer(board, f"run/{rows(board)[PONG]['id']}")
    assert details["videos"] == ["evaluation.mp4"]
    assert details["settings"]["train.seed"] == 42
    assert details["settings"]["stop.score"] == "inf"
    assert details["result"]["score"] is None
    assert list(details["commands"]) == ["watch", "evaluate", "train again"]
    assert details["commands"]["watch"].startswith("puffer play --watch ")


def test_only_videos_of_runs_are_sent(board: Board, kept: Path) -> None:
    number = rows(board)[PONG]["id"]
    (kept / PONG / "evaluation.mp4").write_bytes(b"video")
    (kept / "secret.mp4").write_bytes(b"secret")
    assert ask(board, f"/files/{number}/evaluation.mp4").body == b"video"
    for path in (
        f"/files/{number}/config.toml", f"/files/{number}/../../secret.mp4", f"/files/{number}/other.mp4",
        "/files/99/evaluation.mp4", "/files/x/evaluation.mp4", "/files/evaluation.mp4",
        "/static/../board.py", "/static/nothing.js", "/data/other.json", "/data/curves/99.json", "/data/sweep/7.json",
    ):  # fmt: skip
        assert ask(board, path).status == 404, path


def test_links_out_of_the_folder_are_ignored(
    board: Board, kept: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "video.mp4").write_bytes(b"secret")
    make_run(outside / "20260101-000008-pong", env="pong")
    (kept / "runs/20260101-000008-pong").symlink_to(outside / "20260101-000008-pong")
    (kept / PONG / "evaluation.mp4").symlink_to(outside / "video.mp4")
    linked = "runs/20260101-000009-pong"
    make_run(kept / linked, env="pong")
    (kept / linked / "metrics.jsonl").unlink()
    (kept / linked / "metrics.jsonl").symlink_to(outside / "20260101-000008-pong/metrics.jsonl")
    assert not {"runs/20260101-000008-pong", linked} & rows(board).keys()
    assert ask(board, f"/files/{rows(board)[PONG]['id']}/evaluation.mp4").status == 404


@pytest.mark.parametrize("name", ["config.toml", "summary.json", "metrics.jsonl", "status.json"])
def test_damaged_files_hide_no_other_run(kept: Path, name: str) -> None:
    (kept / PONG / name).write_bytes(b'{"agent_steps": "x", \xff\x00[[')
    found = rows(Board(kept))
    assert FAST in found
    assert PONG in found


@pytest.mark.parametrize("place", ["runs", "runs/20260101-000001-squared", FAST, "sweeps", "sweeps/wide"])
def test_folder_may_be_of_runs_or_sweeps_or_one_run(kept: Path, place: str) -> None:
    expected = {"runs": 4, "runs/20260101-000001-squared": 2}.get(place, 1)
    assert len(rows(Board(kept / place))) == expected


def test_empty_folder_says_what_to_type(here: Path) -> None:
    listed = answer(Board(here), "runs")
    assert listed["sections"] == []
    assert listed["example"] == "puffer train breakout"
    make_run(here / "runs/20260101-000001-squared")


def test_missing_folder_is_an_error(here: Path) -> None:
    with pytest.raises(APIUsageError, match="expected a folder of runs, got nowhere, which does not exist"):
        Board("nowhere")


def test_damaged_sweep_is_a_problem_in_the_page(board: Board, kept: Path) -> None:
    (kept / "sweeps/wide/study.db").write_bytes(b"no database" * 100)
    assert "study.db" in answer(board, "sweep/0")["problem"]


def make_league(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        for statement in SCHEMA:
            database.execute(statement)
        database.executemany("INSERT INTO agents VALUES (?, ?, ?, '')", [(1, "weak", "a"), (2, "strong", "b")])
        database.execute("INSERT INTO results VALUES (1, 2, 0, 3, 2, 15)")


def test_league_has_ratings_and_results(here: Path) -> None:
    make_league(here / "leagues/chess.db")
    board = Board(here)
    assert answer(board, "runs")["leagues"] == ["chess"]
    strong, weak = answer(board, "league/0")["players"]
    assert (strong["name"], strong["points"], strong["games"]) == ("strong", 16, 20)
    assert weak["results"] == [[3, 2, 15], [0, 0, 0]]
    assert strong["rating"] > 1000 > weak["rating"]


def test_other_databases_are_not_changed(here: Path) -> None:
    (here / "leagues").mkdir()
    with sqlite3.connect(here / "leagues/other.db") as database:
        database.execute("CREATE TABLE mine (id INTEGER)")
    before = (here / "leagues/other.db").read_bytes()
    assert "is not a league" in answer(Board(here), "league/0")["problem"]
    assert (here / "leagues/other.db").read_bytes() == before


def test_load_has_a_sample_for_each_second(board: Board) -> None:
    load = answer(board, "load")
    answer(board, "load")
    assert len(load["samples"]) == 1
    assert 0 <= load["samples"][0]["memory"] <= 100
    assert load["cores"] >= 1


def test_several_pages_can_ask_at_once(board: Board, kept: Path) -> None:
    ids = ",".join(str(run["id"]) for run in rows(board).values())
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(20):
                answer(board, "runs")
                answer(board, "curves/0", runs=ids)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(20):
        add_updates(kept / FAST, [9.0], first=4 + i)
    for thread in threads:
        thread.join()
    assert not failed
    (curve,) = score_curves(board, FAST)["curves"].values()
    assert len(curve["mean"]) == 23


def test_export_has_the_answers_of_the_board(board: Board, kept: Path) -> None:
    (kept / PONG / "evaluation.mp4").write_bytes(b"video")
    assert board.export(kept / "page") == 5
    exported = json.loads((kept / "page/data/runs.json").read_text())
    assert exported["sections"] == answer(board, "runs")["sections"]
    assert not exported["live"]
    ids = {run["path"]: run["id"] for run in rows(board).values()}
    curves = json.loads((kept / "page/data/curves/0.json").read_text())["curves"]
    assert set(curves) == {str(number) for path, number in ids.items() if path != PONG}
    assert (kept / f"page/files/{ids[PONG]}/evaluation.mp4").read_bytes() == b"video"
    assert {path.name for path in (kept / "page").iterdir()} == {"index.html", "static", "data", "files"}
    page = (kept / "page/index.html").read_text()
    assert 'src="static/board.js"' in page, "addresses are relative, so that the page may be in any folder of a server"


def test_export_again_replaces_the_earlier_one(board: Board, kept: Path) -> None:
    board.export(kept / "page")
    shutil.rmtree(kept / PONG)
    assert board.export(kept / "page") == 4


def test_export_leaves_other_folders_alone(board: Board, kept: Path) -> None:
    with pytest.raises(APIUsageError, match=r"--export needs a new or an empty folder, got .*runs, which has files"):
        board.export(kept / "runs")
    (kept / "file").touch()
    with pytest.raises(APIUsageError, match="--export must be a folder that can be written to"):
        board.export(kept / "file")


def test_command_exports(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "--export", "page"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "exported 5 runs to page; any web server can serve this folder, for example:",
        "python -m http.server --directory page",
    ]


def test_command_serves_until_it_is_stopped(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    monkeypatch.setattr(Server, "wait", lambda self: None)
    assert main(["board", "runs", "--port", "0", "--open", "--token", "s3cret"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"board: {opened[0]}"
    assert opened[0].endswith("/?token=s3cret")


def test_port_in_use_is_an_error(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Server(Board(kept), port=0) as server:
        port = server.url.rpartition(":")[2].strip("/")
        assert main(["board", "--port", port]) == 2
    assert f"cannot listen on port {port}" in capsys.readouterr().err


def test_missing_folder_of_the_command_is_an_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "rnus"]) == 1
    assert "train an agent first: puffer train breakout" in capsys.readouterr().err
