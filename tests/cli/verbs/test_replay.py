"""Tests of ``puffer replay``."""

from pathlib import Path

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.cli import main
from pufferlib.vector import Bundle


@pytest.fixture
def bundle(here: Path) -> Path:
    """Return the path of a bundle with 20 steps of squared."""
    with pufferlib.vector.make(pufferlib.env_creator("squared"), seed=4, record=here) as env:
        env.reset()
        for step in range(20):
            env.step(np.full(1, step % 4))
    return here / "env0-seed4.npz"


def test_replay_reports_same_outcome(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pufferlib.ocean.env.OceanEnv('squared')",
        "environment 0, seed 4, all 20 steps, 0 finished episodes",
        "same outcome after 20 of 20 steps: no error, return 1",
    ]


def test_replay_in_other_env_reports_different_outcome(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle), "--env", "squared", "--env.size", "5"]) == 1
    assert "different outcome after" in capsys.readouterr().out


def test_replay_writes_video(bundle: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle), "--video", "video.mp4"]) == 0
    assert (here / "video.mp4").stat().st_size > 1000
    assert capsys.readouterr().out.endswith("video: video.mp4\n")


def test_replay_warns_about_other_version(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Bundle.load(bundle)
    old.versions["numpy"] = "1.0"
    old.save(bundle)
    assert main(["replay", str(bundle)]) == 0
    assert f"version differs: numpy 1.0, here {np.__version__}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ([], 2, "puffer replay: name a bundle, for example: puffer replay env3-seed7.npz"),
        (["none.npz"], 1, "none.npz: No such file or directory"),
        (["env0-seed4.npz", "--fps", "0"], 2, "puffer replay: --fps must be from 1 to 1000, got 0"),
        (
            ["env0-seed4.npz", "--video", "no/video.mp4"],
            2,
            "--video must be a file in a folder that exists",
        ),
        (["env0-seed4.npz", "--show"], 2, "there is neither a display nor an interactive terminal; record it with"),
        (["env0-seed4.npz", "--env", "squarred"], 2, "puffer replay: unknown environment 'squarred'; did you mean"),
    ],
)
def test_invalid_arguments_exit_with_error(
    bundle: Path,
    argv: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["replay", *argv]) == code
    assert message in capsys.readouterr().err
