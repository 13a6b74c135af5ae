"""The service notebook: JupyterLab with a token, and the example notebook."""

import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.image.engine import LIMIT_S, ROOT, docker, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(2 * LIMIT_S),
    pytest.mark.skipif(
        not any(image.target == "tank" for image in images()),
        reason="image tests: the image tank is not built, or no Docker engine answers",
    ),
]

NAME, PORT = "tank-test-notebook", 18888
EXAMPLE = ROOT / "examples/08_notebook.ipynb"


@pytest.fixture(scope="module")
def image() -> str:
    """Build the image of the service and return its name."""
    done = run("docker", "compose", "--profile", "notebook", "build", "--quiet", "notebook")
    assert done.returncode == 0, done.stderr
    return image_of("notebook")


def html_of(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"])


def test_example_notebook_runs_and_shows_every_object(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / EXAMPLE.name).write_bytes(EXAMPLE.read_bytes())
    command = ["jupyter", "execute", "--output=done.ipynb", EXAMPLE.name]
    docker("run", "--rm", "--network", "none", "-v", f"{tmp_path}:/workspace", image, *command)
    cells = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    env, trained, runs, _, search, played, _ = (html_of(cell) for cell in cells if cell["cell_type"] == "code")
    assert "data:image/png" in env
    assert re.search(r"<progress[^>]* value=\"1.000\"", trained), "the last state of the progress bar"
    assert "<video" in trained
    assert "train.learning_rate" in runs
    assert "Sweep of" in search
    assert "data:image/png" in played
    errors = [output for cell in cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"]
    assert not errors


def test_service_asks_for_its_token(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANK_NOTEBOOK_PORT", str(PORT))
    try:
        done = run("docker", "compose", "run", "--detach", "--service-ports", "--name", NAME, "notebook")
        assert done.returncode == 0, done.stderr
        deadline, address = time.monotonic() + 120, None
        while address is None:
            assert time.monotonic() < deadline, run("docker", "logs", NAME).stderr
            time.sleep(1)
            logs = run("docker", "logs", NAME)
            address = re.search(rf"http://127\.0\.0\.1:{PORT}/lab\?token=\w+", logs.stdout + logs.stderr)
        base, _, token = address[0].partition("/lab?token=")
        with urllib.request.urlopen(f"{base}/api/contents?token={token}", timeout=30) as reply:
            names = {entry["name"] for entry in json.load(reply)["content"]}
        assert {"examples", "pufferlib"} <= names
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{base}/api/contents", timeout=30)
    finally:
        run("docker", "rm", "--force", NAME)
