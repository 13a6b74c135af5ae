"""Tests of new_run and find_run."""

import os
from pathlib import Path

import pytest

from pufferlib.errors import APIUsageError
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import Run, new_run, removed_if_empty
from pufferlib.runs.status import in_training


def test_runs_of_same_second_get_distinct_folders(tmp_path: Path) -> None:
    folders = []
    for _ in range(3):
        with new_run(tmp_path / "runs", "atari/pong") as run:
            folders.append(run.folder)
    assert len(set(folders)) == 3
    assert all(folder.name.endswith("-atari-pong") for folder in folders)


def test_child_that_an_env_forked_does_not_remove_folder(tmp_path: Path) -> None:
    try:
        with new_run(tmp_path, "squared") as run:
            if os.fork() == 0:
                raise SystemExit
            os.wait()
    except SystemExit:
        os._exit(0)  # the child, which must not go on with the tests
    assert run.folder.exists()


def test_refused_second_training_does_not_remove_folder(tmp_path: Path) -> None:
    with new_run(tmp_path, "squared") as run, in_training(run):
        with pytest.raises(APIUsageError, match="is being trained by process"), removed_if_empty(run), in_training(run):
            pass
        assert run.folder.exists()


def test_name_that_is_too_long_raises(tmp_path: Path) -> None:
    message = r"at most 255 bytes, got 'squared-nnn.*; choose a shorter"
    with pytest.raises(APIUsageError, match=message), new_run(tmp_path, "squared", "n" * 300):
        pass


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "null"])
def test_result_of_missing_or_damaged_summary_is_empty(text: str | None, tmp_path: Path) -> None:
    run = Run.at(tmp_path)
    if text is not None:
        run.summary.write_text(text)
    assert run.result() == {}
    assert str(tmp_path) in run._repr_html_()


def test_result_is_the_summary(tmp_path: Path) -> None:
    run = Run.at(tmp_path)
    run.summary.write_text('{"score": null, "agent_steps": 32}')
    assert run.result() == {"score": None, "agent_steps": 32}


def test_find_run_returns_latest_run_of_env(tmp_path: Path) -> None:
    for i, name in enumerate(["20260101-000000-pong", "20260101-000001-pong", "20260101-000002-atari-pong"]):
        checkpoints = tmp_path / "runs" / name / "checkpoints"
        (checkpoints / "000001").mkdir(parents=True)
        (checkpoints / "000001" / "policy.safetensors").touch()
        os.utime(checkpoints, (i, i))
    assert find_run("here", "pong", tmp_path / "runs").folder.name == "20260101-000001-pong"


def test_folder_and_file_do_not_hide_env(here: Path) -> None:
    Path("breakout").mkdir()
    Path("pong").touch()
    for name in ("breakout", "pong"):
        assert find_run("here", name, Path("runs")).checkpoint.name == "agent.safetensors"
    Path("mine").mkdir()
    with pytest.raises(APIUsageError, match="mine has no checkpoints"):
        find_run("here", "mine", Path("runs"))


def test_find_run_of_resumed_checkpoint_returns_its_run(tmp_path: Path) -> None:
    alone = tmp_path / "000007"
    later = alone / "checkpoints" / "000009"
    later.mkdir(parents=True)
    (alone / "policy.safetensors").touch()
    assert find_run("here", str(alone), tmp_path).chosen == alone  # the resumed run has no checkpoint yet
    (later / "policy.safetensors").touch()
    assert find_run("here", str(alone), tmp_path) == Run(alone)
    assert find_run("here", str(alone / "policy.safetensors"), tmp_path).chosen == alone


def test_find_run_accepts_checkpoints_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run" / "checkpoints" / "000001").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "000001" / "policy.safetensors").touch()
    assert find_run("here", str(tmp_path / "run" / "checkpoints"), tmp_path) == Run(tmp_path / "run")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(APIUsageError, match="no complete checkpoint"):
        Run(tmp_path / "run").checkpoint  # noqa: B018 - the property searches the folder
    monkeypatch.chdir(tmp_path / "run" / "checkpoints")
    assert find_run("here", ".", tmp_path).folder.resolve() == tmp_path / "run"
