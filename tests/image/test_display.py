"""Windows of a container on the display of its machine, with compose.display.yaml."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.image.engine import LIMIT_S, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(LIMIT_S),
    pytest.mark.skipif(
        not any(image.target == "tank" for image in images()),
        reason="image tests: the image tank is not built, or no Docker engine answers",
    ),
    pytest.mark.skipif(not shutil.which("Xvfb"), reason="needs a display to look at (Debian: apt-get install xvfb)"),
]

DISPLAY, WIDTH, HEIGHT = ":97", 1280, 1024
COMPOSE = ("docker", "compose", "-f", "compose.yaml", "-f", "compose.display.yaml")
NAME = "tank-test-display"


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Start a display. Yield the file that holds its pixels."""
    screen = f"{WIDTH}x{HEIGHT}x24"
    command = ["Xvfb", DISPLAY, "-screen", "0", screen, "-fbdir", str(tmp_path), "-nolisten", "tcp"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        monkeypatch.setenv("DISPLAY", DISPLAY)
        yield tmp_path / "Xvfb_screen0"
        run("docker", "rm", "--force", NAME)
        server.terminate()


def pixels(screen: Path) -> npt.NDArray[np.uint8]:
    """Return what the display shows. The file ends with its pixels."""
    data = np.fromfile(screen, np.uint8)[-4 * WIDTH * HEIGHT :]
    return data.reshape(HEIGHT, WIDTH, 4)[..., :3]


def test_play_opens_a_window_in_which_the_game_moves(screen: Path) -> None:
    done = run(*COMPOSE, "--progress", "quiet", "run", "--detach", "--name", NAME, "tank", "play", "breakout")
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while not (screen.exists() and pixels(screen).any()):
        assert time.monotonic() < deadline, run("docker", "logs", NAME).stderr
        time.sleep(0.5)
    first = pixels(screen)
    shown = np.argwhere(first.any(axis=2))
    assert np.ptp(shown, axis=0).min() > 300, "the window is larger"
    while np.array_equal(pixels(screen), first):
        assert time.monotonic() < deadline
        time.sleep(0.1)
