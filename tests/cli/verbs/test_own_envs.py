"""Tests of all verbs with environments, settings and networks in files of the user."""

import json
import os
import re
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from pufferlib.cli import main
from pufferlib.settings.config import Config
from tests.tiny_runs import only_run

pytestmark = pytest.mark.usefixtures("blank_curves")

FORAGE = """
import gymnasium
import numpy as np


class Forage(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3, render_mode=None):
        self.length, self.render_mode = length, render_mode

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.random(2, dtype=np.float32), {}

    def step(self, action):
        self.time += 1
        return np.zeros(2, np.float32), float(action), self.time >= self.length, False, {}

    def render(self):
        return np.zeros((16, 16, 3), np.uint8)
"""
NET = """
import torch
from pufferlib.models import Policy


class Net(Policy):
    def __init__(self, env, hidden_size=8):
        super().__init__(env, hidden_size)
        self.layer = torch.nn.Linear(2, hidden_size)

    def encode_observations(self, observations):
        return self.layer(observations)
"""
SETTINGS = """
env_name = "my_env.py:Forage"
[env]
length = 5
[policy]
name = "my_net.py:Net"
hidden_size = 8
[vec]
backend = "Serial"
[train]
total_timesteps = 2048
num_threads = 1
device = "cpu"
[eval]
episodes = 2
"""


@pytest.fixture
def own(here: Path) -> Path:
    """Return the current folder, which has an environment, a network and a config file."""
    for name, text in (("my_env.py", f"# of {here}\n{FORAGE}"), ("my_net.py", NET), ("my.toml", SETTINGS)):
        (here / name).write_text(text)
    return here


def test_custom_env_and_network_are_trained_evaluated_and_resumed(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "my_env.py:Forage", "--config", "my.toml", "--env.length", "4"]) == 0
    run = only_run(own)
    assert run.name.endswith("-my_env-Forage")
    names = {"config.toml", "metrics.jsonl", "learning_curve.png", "checkpoints", "evaluation.mp4", "summary.json"}
    assert {path.name for path in run.iterdir()} == names
    config = Config.load(run / "config.toml")
    assert (config.env_name, config.policy.name) == (f"{own}/my_env.py:Forage", f"{own}/my_net.py:Net")
    assert (config.env, config.policy.hidden_size, config.eval.episodes) == ({"length": 4}, 8, 2)
    assert json.loads((run / "summary.json").read_text())["episode_length"] == 4
    printed = capsys.readouterr().out
    assert "my_env.py:Forage: score" in printed
    assert re.search(
        r"network: Net, \d+ parameters\nnormalized: rewards\nupdate: \d+ agents?, \d+ steps each, ", printed
    )

    assert main(["eval", "my_env.py:Forage"]) == 0
    assert main(["train", "my_env.py:Forage", "--resume", str(run), "--train.total-timesteps=4096"]) == 0
    elsewhere = own / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["eval", str(run)]) == 0
    (own / "my_env.py").unlink()
    capsys.readouterr()
    assert main(["eval", str(run)]) == 1
    error = capsys.readouterr().err
    assert f"there is no file {own}/my_env.py; if it was moved, give its new path" in error
    assert "env_name, policy.name or track.loggers of its config.toml" in error


@pytest.mark.all
@pytest.mark.filterwarnings("ignore:.* is not there; .* is used as")
def test_moved_run_is_resumed_evaluated_and_exported(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "my_env.py:Forage", "--config", "my.toml", "--vec.backend", "Serial"]) == 0
    home = own.parent / "home" / own.name
    home.parent.mkdir()
    own.rename(home)
    monkeypatch.chdir(home)
    run = next(Path("runs").iterdir())
    shutil.copy(next(run.glob("checkpoints/*/policy.safetensors")), "handed.safetensors")
    with pytest.warns(UserWarning, match=f"my_env.py:Forage is not there; {home}/my_env.py:Forage is used as env_name"):
        assert main(["eval", str(run)]) == 0
    assert main(["eval", "my_env.py:Forage"]) == 0
    assert main(["eval", "handed.safetensors"]) == 0
    assert main(["export", str(run), "--to", "torch"]) == 0
    capsys.readouterr()
    assert main(["train", "my_env.py:Forage", "--resume", str(run), "--train.total-timesteps", "4096"]) == 0
    assert "episodes continue where they were saved" in capsys.readouterr().out
    assert Config.load(run / "config.toml").env_name == f"{home}/my_env.py:Forage"
    monkeypatch.chdir("/")
    assert main(["train", "--resume", str(home / run), "--train.total-timesteps", "6144"]) == 0


@pytest.mark.all
def test_resume_accepts_new_path_of_moved_env_file(own: Path) -> None:
    assert main(["train", "my_env.py:Forage", "--config", "my.toml"]) == 0
    (own / "other place").mkdir()
    (own / "my_env.py").rename(own / "other place" / "my_env.py")
    run = only_run(own)
    resume = ["--resume", str(run), "--train.total-timesteps", "4096"]
    assert main(["train", "other place/my_net.py:Forage", *resume]) == 2
    assert main(["train", "other place/my_env.py:Forage", *resume]) == 0
    assert Config.load(run / "config.toml").env_name == f"{own}/other place/my_env.py:Forage"


@pytest.mark.filterwarnings("ignore:.*versions have changed", "ignore:.*new episodes start")
def test_resume_accepts_new_name_of_file_and_class_that_the_run_left_out(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "my_env.py", "--config", "my.toml"]) == 0
    run = only_run(own)
    assert main(["eval", "my_env.py:Forage", "--eval.episodes", "2"]) == 0
    file = (own / "my_env.py").rename(own / "forage.py")
    file.write_text(file.read_text() + "\n\nclass Hunt(gymnasium.Env): pass\n")
    resume = ["--resume", str(run), "--train.total-timesteps", "4096"]
    assert main(["train", "forage.py", *resume]) == 1
    assert "forage.py:Forage, for a run in env_name of its config.toml" in capsys.readouterr().err
    assert main(["train", "forage.py:Forage", *resume]) == 0
    assert Config.load(run / "config.toml").env_name == f"{file}:Forage"
    assert main(["train", "forage.py:Hunt", *resume]) == 2


def test_eval_warns_about_edited_env_file(own: Path) -> None:
    assert main(["train", "my_env.py:Forage", "--config", "my.toml", "--vec.backend", "Serial"]) == 0
    file = own / "my_env.py"
    before = file.stat()
    file.write_text(file.read_text().replace("float(action)", "float(1.5   )"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # keeps size and time
    with pytest.warns(
        UserWarning, match="code of the environment [0-9a-f]{12} .was [0-9a-f]{12}.; the environment may"
    ):
        assert main(["eval", "my_env.py"]) == 0  # has no other environment


@pytest.mark.filterwarnings("ignore:.*code of the environment")
def test_agent_of_other_spaces_is_refused(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", "my.toml"]) == 0
    file = own / "my_env.py"
    file.write_text(file.read_text().replace("Discrete(2)", "Discrete(2, start=1)"))
    for given in (["eval"], ["train", "--train.total-timesteps", "4096", "--resume"]):
        assert main([*given, str(only_run(own))]) == 1
        assert "was trained with other actions of" in capsys.readouterr().err


def test_config_file_can_name_env(own: Path) -> None:
    assert main(["train", "--config", "my.toml"]) == 0
    assert Config.load(only_run(own) / "config.toml").env == {"length": 5}


def test_same_file_name_in_other_folder_is_another_env(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", "my.toml", "--eval.episodes", "1"]) == 0
    (own / "the other").mkdir()
    (own / "the other" / "my_env.py").write_text(FORAGE)
    assert main(["eval", "the other/my_env.py:Forage"]) == 1
    name = f"{own}/the other/my_env.py:Forage"
    assert f"no run of {name} in runs; train one: puffer train '{name}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["train", "my_env.py:Forag"], 2, "my_env.py: unknown attribute 'Forag'; did you mean 'Forage'?"),
        (["train", "nowhere.py"], 1, "nowhere.py; if it was moved, give its new path"),
        (["play", "absent:Forage", "--terminal"], 2, "there is no module absent"),
        (["train", "my_env.py", "--length", "3"], 2, "unknown flag '--length'; did you mean '--env.length'?"),
        (["train", "my_env.py", "--env.lenght", "3"], 2, "keyword argument 'lenght'; did you mean 'length'?"),
        (["train", "my_env.py", "--env.length", "abc"], 1, "length must be int, got 'abc'; its default is"),
        (["train", "my_env.py", "--policy.name", "my_net.py:Nett"], 2, "policy.name: "),
        (["train", "my_env.py", "--config", "no.toml"], 1, "no.toml: cannot be read: No such file or directory"),
        (["train", "my_env.py", "--vec", "fast"], 2, "argument --vec: invalid choice: 'fast' (choose from 'auto')"),
        (
            ["train", "CartPole-v9"],
            2,
            "did you mean 'classic/CartPole-v1' or 'cartpole' or 'CartPole-v1'? Name your own as",
        ),
    ],
)
def test_invalid_argument_exits_with_error(
    argv: list[str],
    code: int,
    sentence: str,
    own: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pufferlib.render.viewer.is_terminal", lambda: True)
    extra = ["--vec.backend", "Serial"] if argv[0] == "train" else []
    assert main([*argv, *extra]) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    notes = captured.err.splitlines()[1:]
    assert notes in ([], ["while building environment 0, seed 42"])


def test_autotune_result_can_be_pasted_and_reused(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own / "cache"))
    rest = ["--config", "my.toml", "--env.length=2"]
    assert main(["train", "my_env.py", *rest, "--vec", "auto"]) == 1
    assert f"got none; run: puffer autotune {own}/my_env.py --env.length 2\n" in capsys.readouterr().err
    quick = ["--batch-size=2", "--max-envs=2", "--time-per-test=0.02"]
    assert main(["autotune", "my_env.py", "--env.length", "2", *quick]) == 0
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith("Train with:"))
    flags = line.partition("my_env.py ")[2].split()
    assert flags[:2] in (["--vec.backend", "Serial"], ["--vec.backend", "Multiprocessing"])
    assert flags[-2:] == ["--env.length", "2"]
    assert "puffer train my_env.py --env.length 2 --vec auto" in shown
    assert main(["train", "my_env.py", *rest, "--vec", "auto"]) == 0
    config = Config.load(only_run(own) / "config.toml")
    assert [config.vec.backend, str(config.vec.num_envs)] == [flags[1], flags[3]]
    capsys.readouterr()
    assert main(["train", "my_env.py", *rest, "--vec", "auto", "--vec.num-envs", "64", "--show-settings"]) == 2
    assert f"vec 'auto' sets vec.num_envs to {flags[3]}, got 64; leave out one of them" in capsys.readouterr().err
    assert main(["train", "my_env.py", *rest, "--vec", "auto", *flags[:2], "--show-settings"]) == 0


def test_custom_env_is_checked_and_played(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    monkeypatch.setattr("pufferlib.render.viewer.is_terminal", lambda: True)
    monkeypatch.setattr("pufferlib.render.viewer.Screen", Mock)
    monkeypatch.setattr("pufferlib.cli.verbs.play.play", lambda session, *_: shown.append(session.picture()))
    assert main(["check", "my_env.py:Forage", "--steps", "20"]) == 0
    assert main(["play", "my_env.py:Forage", "--terminal", "--env.length", "9"]) == 0
    assert shown[0].shape == (16, 16, 3)
    assert "no episode was finished" in capsys.readouterr().out


def test_help_lists_env_keywords(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "my_env.py:Forage", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--env.length: default 3\n" in text
    assert "pydoc" not in text
    assert main(["train", "CartPole-v1", "--help"]) == 0
    assert "--env.sutton-barto-reward: default False\n" in capsys.readouterr().out
