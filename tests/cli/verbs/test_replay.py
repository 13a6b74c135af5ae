"""``puffer replay``: the same end, shown or filmed."""

from pathlib import Path

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.cli import main
from pufferlib.vector import Bundle


@pytest.fixture
def bundle(here: Path) -> Path:
    """A bundle of 20 steps of a game."""
    with pufferlib.vector.make(pufferlib.env_creator("squared"), seed=4, record=here) as env:
        env.reset()
        for step in range(20):
            env.step(np.full(1, step % 4))
    return here / "env0-seed4.npz"


def test_it_comes_to_the_same_end(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pufferlib.ocean.env.OceanEnv('squared')",
        "environment 0, seed 4, all 20 steps, 0 finished episodes",
        "same outcome after 20 of 20 steps: no error, return 1",
    ]


def test_another_environment_comes_to_another_end(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle), "--env", "squared", "--env.size", "5"]) == 1
    assert "different outcome after" in capsys.readouterr().out


def test_it_is_filmed(bundle: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle), "--video", "film.mp4"]) == 0
    assert (here / "film.mp4").stat().st_size > 1000
    assert capsys.readouterr().out.endswith("video: film.mp4\n")


def test_another_version_is_told(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
            ["env0-seed4.npz", "--video", "no/film.mp4"],
            2,
            "--video must be a file in a folder that exists",
        ),
        (["env0-seed4.npz", "--show"], 2, "there is neither a display nor an interactive terminal; record it with"),
        (["env0-seed4.npz", "--env", "squarred"], 2, "puffer replay: unknown environment 'squarred'; did you mean"),
    ],
)
def test_what_cannot_be_replayed(
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
