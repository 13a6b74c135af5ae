"""ViZDoom: names, images, continuous buttons, ends of episodes, and files of the engine."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import vizdoom
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("vizdoom"):
    pytest.skip(reason, allow_module_level=True)

import gymnasium
from vizdoom import scenarios_path

from pufferlib.bindings.vizdoom.env import Doom
from pufferlib.bindings.vizdoom.scenario import Scenario


def test_names_match_vizdoom() -> None:
    known = {id_ for id_ in gymnasium.registry if id_.startswith("Vizdoom")}
    left_out = ("VizdoomDoom", "VizdoomBasicAudio", "VizdoomBasicNotifications")
    assert set(vizdoom.names()) == {id_ for id_ in known if not id_.startswith(left_out)}


def test_prefix_and_version_are_optional() -> None:
    for short, name in (("MyWayHome", "VizdoomMyWayHome-v1"), ("Freedoom2MAP01-S3", "VizdoomFreedoom2MAP01-S3-v0")):
        assert vizdoom.env_creator(short).args[-1] == name  # type: ignore[attr-defined]
    with pytest.raises(UnknownNameError, match="did you mean 'VizdoomBasic-v1'"):
        vizdoom.env_creator("VizdoomBasics-v1")


def test_screens_are_small_and_stacked() -> None:
    env = Doom("VizdoomBasic-v1", height=40, width=50, stack=2)
    first = env.reset(seed=1)[0]["screen"].copy()
    assert first.shape == (6, 40, 50)
    assert np.array_equal(first[:3], first[3:])
    second = env.step(1)[0]["screen"]
    assert np.array_equal(second[:3], first[3:])
    assert not np.array_equal(second[3:], first[3:])
    env.close()


def test_continuous_buttons_have_three_values() -> None:
    env = Doom("VizdoomDeathmatch-MultiBinary-v1")
    assert env.action_space.nvec.tolist() == [2] * 17 + [3] * 3
    pressed = env._pressed(np.array([1, *[0] * 16, 0, 1, 2]))
    assert pressed["binary"].tolist() == [1, *[0] * 16]
    assert pressed["continuous"].tolist() == [-10, 0, 10]
    assert env._doom.action_space.contains(pressed)
    env.close()


def test_time_limit_truncates_and_keeps_the_last_screen() -> None:
    env = Doom("VizdoomBasic-v1", frame_skip=50)
    env.reset(seed=3)
    for _ in range(6):  # 300 frames in all
        observation, _, terminated, truncated, _ = env.step(0)
        if truncated:
            break
        last = observation["screen"].copy()
    assert truncated
    assert not terminated
    assert np.array_equal(observation["screen"], last)
    assert observation["gamevariables"] == pytest.approx([0.5])  # 50 bullets
    env.close()


def test_close_removes_files_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    env: Any = pufferlib.make("vizdoom/Basic")
    env.reset(seed=0)
    assert len(list(temporary.iterdir())) == 1
    env.close()
    env.close()
    assert list(here.iterdir()) == list(temporary.iterdir()) == []


def test_engine_stops_if_its_process_is_killed(tmp_path: Path) -> None:
    play = "import pufferlib; env = pufferlib.make('vizdoom/Basic'); env.reset(seed=0); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", play], env=os.environ | {"TMPDIR": str(tmp_path)}, **pipes) as player:
        player.stdout.readline()
        (engine,) = children(player.pid)
        command = Path(f"/proc/{engine}/cmdline").read_text()
        player.kill()
    for file in Path("/dev/shm").glob("ViZDoom*"):  # left because the process was killed
        if re.sub("^ViZDoom(SM|MQCtr|MQDoom)", "", file.name) in command:
            file.unlink()
    deadline = time.monotonic() + 60
    while is_running(engine) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(engine)


def children(pid: int) -> set[int]:
    return {int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()}


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a zombie has ended


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame_skip": 0}, "frame_skip must be an int >= 1, got 0"),
        ({"width": 1.5}, "width must be an int >= 1, got 1.5"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=f"vizdoom/VizdoomBasic-v1: {message}"):
        pufferlib.make("vizdoom/Basic", **options)


def test_scenario_files_are_found_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = Path(scenarios_path)
    (tmp_path / "mine.wad").write_bytes((brought / "basic.wad").read_bytes())
    (tmp_path / "mine.cfg").write_text((brought / "basic.cfg").read_text().replace("basic.wad", "mine.wad"))
    monkeypatch.chdir(tmp_path)
    for paths in ({"cfg_path": "mine.cfg"}, {"cfg_path": "basic.cfg", "wad_path": "mine.wad"}):
        with Scenario("scenario", **paths) as env:
            assert env.reset(seed=0)[0].any()
    for wrong, given in (({"cfg_path": "yours.cfg"}, "yours.cfg"), ({}, "")):
        with pytest.raises(
            APIUsageError, match=f"cfg_path must be the path of an existing file, got '{given}', and {tmp_path}"
        ):
            Scenario("scenario", **wrong)
