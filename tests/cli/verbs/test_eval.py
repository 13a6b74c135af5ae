"""Tests of ``puffer eval``."""

import json
import re
import shutil
from pathlib import Path

import pytest

import pufferlib
from pufferlib.cli import main
from pufferlib.runs import checkpoint, shipped_agent
from pufferlib.text import short
from pufferlib.vector import factory
from tests.tiny_runs import TINY, only_run

pytestmark = pytest.mark.usefixtures("blank_curves")


def test_eval_accepts_run_checkpoint_policy_file_and_env(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY]) == 0
    run = only_run(here)
    score = json.loads((run / "summary.json").read_text())["score"]
    capsys.readouterr()
    (latest, *_) = sorted((run / "checkpoints").iterdir())
    shutil.copy(latest / "policy.safetensors", "agent.safetensors")  # a policy file alone
    for target in (str(run), str(latest), str(latest / "policy.safetensors"), "agent.safetensors", "squared"):
        assert main(["eval", target, "--video", "video.mp4"]) == 0
        output = capsys.readouterr().out
        assert f"score {short(score)} ±" in output
        assert "video: video.mp4" in output
        assert re.search(rf"\nWatch it: puffer play --watch \S*({run.name}\S*|agent.safetensors)\n", output)
        assert Path("video.mp4").stat().st_size > 1000
    for count, words in (("1", "over 1 episode, "), ("2", "over 2 episodes, ")):
        assert main(["eval", str(run), "--eval.episodes", count]) == 0
        assert words in capsys.readouterr().out
    assert main(["eval", str(run), "--video", "video.mp4", "--eval.video-seconds", "0.3", "--eval.greedy", "True"]) == 0
    output = capsys.readouterr().out
    assert "played greedily; random play" in output
    assert re.search(
        r"at \d+ frames per second; cut, since the episode lasts 0:\d\d: --eval.video-seconds 0 records all", output
    )
    assert main(["eval", str(run), "--policy.hidden-size", "8"]) == 1
    assert "checkpoint does not fit" in capsys.readouterr().err
    (latest / "policy.safetensors").write_bytes(b"no checkpoint")
    assert main(["eval", str(latest)]) == 1
    assert "policy.safetensors: is not a safetensors file: its header cannot be read" in capsys.readouterr().err


SENDS_SIGTERM = """
import os, signal
from tests.envs import FunctionEnv
import numpy as np

class Ended(FunctionEnv):
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        super().__init__(length=100)
        self.render_mode = render_mode

    def render(self):
        if os.path.exists("video.mp4.part"):
            os.kill(os.getpid(), signal.SIGTERM)
        return np.zeros((32, 32, 3), np.uint8)
"""


def test_sigterm_completes_video(here: Path) -> None:
    Path("mine.py").write_text(SENDS_SIGTERM)
    few = ["--train.total-timesteps=64", "--train.horizon=16", "--train.minibatch-size=0", "--eval.episodes=1"]
    assert main(["train", "mine.py:Ended", "--vec.backend=Serial", "--vec.num-envs=2", *few]) == 0
    assert main(["eval", "mine.py:Ended", "--eval.episodes=1", "--video", "video.mp4"]) == 143
    assert [path.name for path in here.glob("video*")] == ["video.mp4"]


NO_RENDER = """
from tests.envs import FunctionEnv

class Plain(FunctionEnv):
    def __init__(self):
        super().__init__(length=1)
"""


def test_env_without_render_has_no_video(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(NO_RENDER)
    few = ["--train.total-timesteps=64", "--train.horizon=16", "--train.minibatch-size=0", "--eval.episodes=2"]
    assert main(["train", "mine.py:Plain", "--vec.backend=Serial", "--vec.num-envs=2", *few]) == 0
    assert main(["eval", "mine.py:Plain", "--video", "video.mp4"]) == 0
    assert "video: none, because no frames were rendered" in capsys.readouterr().out
    assert not Path("video.mp4").exists()


def test_best_flag_selects_best_checkpoint(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    often = ["--train.checkpoint-interval", "2", "--train.keep-checkpoints", "1", "--env.size", "5"]
    assert main(["train", "squared", *TINY, *often]) == 0
    folder = only_run(here) / "checkpoints"
    best = checkpoint.best(folder)
    assert best
    capsys.readouterr()
    assert main(["eval", "squared", "--best"]) == 0
    assert f"{best.relative_to(here)}\n" in capsys.readouterr().out
    assert main(["eval", str(best), "--best"]) == 1
    assert "best needs a run with a checkpoint that has a score" in capsys.readouterr().err
    assert main(["play", "squared", "--best"]) == 2
    assert "--best selects a checkpoint of a run; name a run" in capsys.readouterr().err


def test_eval_warns_about_other_versions(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["train", "squared", *TINY]) == 0
    monkeypatch.setattr(pufferlib, "__version__", "99")
    with pytest.warns(UserWarning, match=r"/000008: versions have changed since it was saved: pufferlib 99 \(was"):
        assert main(["eval", "squared", "--eval.episodes", "1"]) == 0


def test_eval_starts_no_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["train", "squared", *TINY]) == 0
    monkeypatch.setitem(factory.BACKENDS, "Multiprocessing", None)  # type: ignore[arg-type]
    workers = ["--vec.backend", "Multiprocessing", "--vec.num-envs", "4", "--vec.num-workers", "2"]
    assert main(["eval", str(only_run(here)), "--eval.episodes", "1", *workers]) == 0


def test_agent_flag_selects_the_agent_that_ships(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY]) == 0
    for name in ("squared", "classic/CartPole-v1", "classic/CartPole"):
        capsys.readouterr()
        assert main(["eval", name, "--agent", "--eval.episodes=2"]) == 0
        file = shipped_agent("test", name.removesuffix("-v1")).checkpoint
        assert f"playing 2 episodes with {file}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["eval", "squared", "--agent", "--best"], "--best selects a checkpoint of a run; leave out --agent or --best"),
        (["eval", "CartPole-v1", "--agent"], "no agent ships with CartPole-v1; train one: puffer train CartPole-v1"),
        (["eval", "Carpole-v1", "--agent"], "unknown environment 'Carpole-v1'; did you mean"),
        (["play", "CartPole-v1", "--agent"], "no agent ships with CartPole-v1; train one: puffer train CartPole-v1"),
        (["play", "squared", "--agent", "--best"], "--agent is the agent that ships with the environment"),
        (
            ["play", "squared", "--agent", "--watch", "x"],
            "--agent is the agent that ships with the environment; remove",
        ),
        (["play", "snake", "--agent", "--checkpoint", "snake"], "--watch and --agent let one agent play for all"),
    ],
)
def test_agent_flag_errors(here: Path, capsys: pytest.CaptureFixture[str], command: list[str], message: str) -> None:
    assert main(command) != 0
    assert message in capsys.readouterr().err
