"""Tests of the command line of ``puffer view``. The page itself is tested in ``tests/web``."""

import re
import socket
import sys

import pytest

from pufferlib.cli import main
from pufferlib.machine.commands import way_to_install
from pufferlib.web.view import Page
from tests.tiny_runs import untrained_run


@pytest.fixture
def ctrl_c(monkeypatch):
    """Press Ctrl-C when the page has shown the first frame. Return the lines of that frame."""
    shown = []

    def interrupt(_page):
        raise KeyboardInterrupt

    monkeypatch.setattr(Page, "show", lambda _page, frame, lines: shown.append(lines))
    monkeypatch.setattr(Page, "pressed", interrupt)
    return shown


def test_view_prints_the_address_until_ctrl_c(capsys, ctrl_c):
    assert main(["view", "squared", "--port", "0"]) == 0
    output, notes = capsys.readouterr()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\nsquared: no episode was finished; .*\n", output)
    assert notes == "press Ctrl-C to stop\n"
    assert ctrl_c[0][0].startswith("squared   step 0")


@pytest.mark.parametrize("name", ["run", "checkpoint", "run-of-lane.c"])
def test_view_of_a_run_watches_its_agent(name, tmp_path, capsys, ctrl_c):
    run = untrained_run(tmp_path)
    folder = run.folder.rename(run.folder.with_name(name))
    path = next((folder / "checkpoints").iterdir()) if name == "checkpoint" else folder
    assert main(["view", str(path), "--port", "0"]) == 0
    assert ctrl_c[0][0].startswith(f"squared, played by {folder}   step 0")


def test_view_for_other_machines_has_a_token(capsys, ctrl_c):
    assert main(["view", "squared", "--port", "0", "--host", "0.0.0.0"]) == 0
    assert re.match(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}\n", capsys.readouterr().out)
    assert main(["view", "squared", "--port", "0", "--token", "mine"]) == 0
    assert "/?token=mine\n" in capsys.readouterr().out


def test_port_in_use_is_reported_with_a_free_one(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", "squared", "--port", str(port)]) == 2
    assert re.search(rf"cannot listen on port {port} .*; try --port \d+", capsys.readouterr().err)


def test_missing_package_is_reported_with_its_installation(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets.sync.server", None)
    assert main(["view", "squared"]) == 1
    assert f"pages need the package websockets; {way_to_install('train')}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "puffer view: name an environment first, for example: puffer view breakout"),
        (["squared", "--player", "3"], "puffer view: --player must be at least 0 and less than 1"),
        (["nowhere"], "puffer view: unknown environment 'nowhere'"),
        (["."], "puffer view: . has no checkpoints; expected the folder of a run"),
    ],
)
def test_invalid_commands_are_reported(argv, message, capsys, here):
    assert main(["view", *argv]) in (1, 2)
    assert message in capsys.readouterr().err
