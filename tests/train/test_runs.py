"""Folders of runs: one for each, found by what one types."""

import os
from pathlib import Path

from pufferlib.train.runs import find_run, new_run


def test_two_runs_in_one_second_get_a_folder_each(tmp_path: Path) -> None:
    folders = []
    for _ in range(3):
        with new_run(tmp_path / "runs", "atari/pong") as run:
            folders.append(run.folder)
    assert len(set(folders)) == 3
    assert all(folder.name.endswith("-atari-pong") for folder in folders)


def test_an_environment_finds_its_own_latest_run(tmp_path: Path) -> None:
    for i, name in enumerate(["20260101-000000-pong", "20260101-000001-pong", "20260101-000002-atari-pong"]):
        checkpoints = tmp_path / "runs" / name / "checkpoints"
        (checkpoints / "000001").mkdir(parents=True)
        (checkpoints / "000001" / "policy.safetensors").touch()
        os.utime(checkpoints, (i, i))
    assert find_run("here", "pong", tmp_path / "runs").folder.name == "20260101-000001-pong"
