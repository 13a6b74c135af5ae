"""Tests of ``puffer train`` with a name and with several seeds."""

import json
import re
from pathlib import Path

import pytest

from pufferlib.cli import main
from tests.tiny_runs import TINY, only_run

pytestmark = pytest.mark.usefixtures("blank_curves")

CALLBACKS = """
from pufferlib.training.callbacks import Callback

class Count(Callback):
    seen = 0

    def on_update_end(self, trainer, metrics):
        self.seen += 1
        metrics["mine"] = self.seen

def keep(trainer, metrics):
    metrics["mine"] *= 1
"""


def test_resume_adds_seeds_to_named_group(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "callbacks_of_seeds.py").write_text(CALLBACKS)  # a module name that no other test imports
    flags = ["--name", "wide", "--tag", "a", "--tag", "b", "--track", "csv", "--train.total-timesteps=512"]
    flags += ["--callback", "callbacks_of_seeds.py:Count", "--callback", "callbacks_of_seeds:keep"]
    command = ["train", "squared", *TINY, *flags, "--eval.video-seconds=1", "--train.seeds", "1"]
    assert main(command) == 0
    output, folder = capsys.readouterr().out, only_run(here)
    assert folder.name.endswith("-squared-wide")
    assert {path.name for path in folder.iterdir()} == {
        "config.toml", "seeds.json", "seed-42", "summary.json", "learning_curve.png"
    }  # fmt: skip
    assert "seed 42, 1 of 1\n" in output
    assert re.search(r"squared: score \S+ \(\S+ to \S+\), the interquartile mean of 1 seed and its 95 % int", output)
    assert (folder / "seed-42" / "metrics.csv").exists()
    assert 'tags = ["a", "b"]' in (folder / "seed-42" / "config.toml").read_text()
    more = ["--train.seeds", "42,7", "--callback", "callbacks_of_seeds.py", "--eval.episodes", "1"]
    with pytest.warns(UserWarning, match="seed-42.* was trained with the callback keep, which this training does not"):
        assert main(["train", "--resume", "wide", *more]) == 0
    assert "seed 7, 2 of 2\n" in capsys.readouterr().out
    assert json.loads((folder / "seed-42" / "summary.json").read_text())["episodes"] == 1, "evaluated again"
    counts = [json.loads((folder / seed / "metrics.jsonl").read_text())["mine"] for seed in ("seed-42", "seed-7")]
    assert counts == [1, 1], "each seed has its own callback"
    assert json.loads((folder / "summary.json").read_text())["seeds"] == [42, 7]
    assert main(["train", "--resume", f"runs/{folder.name}/seed-7", "--train.seeds", "2"]) == 2
    assert "is the run of one seed; leave out --train.seeds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--train.seeds", "0"], "train.seeds must be a number of seeds, such as 5, or different seeds"),
        (["--track", "wandbb"], "track.loggers: unknown tracker 'wandbb'; did you mean 'wandb'"),
        (["--track.wandb.mod", "x"], "unknown flag '--track.wandb.mod'; did you mean '--track.wandb.mode'"),
        (["--track.wandb.mode", "on"], "expected auto or online or offline or disabled, got 'on'"),
        (["--callback", "mine"], "puffer train: --callback: expected module:Class, file.py:Class, or a function"),
        (["--callback", "pufferlib.env:PufferEnvs"], "unknown attribute 'PufferEnvs'; did you mean 'PufferEnv'"),
        (["--callback", "pathlib:Path"], "the class pathlib:Path must have one of the methods wrap_envs, on_tr"),
        (["--callback", "pufferlib:__version__"], "must be a function of trainer and metrics, or have one of"),
        (["--nam", "x"], "unknown flag '--nam'; did you mean '--name'?"),
    ],
)
def test_invalid_flags_exit_with_error(
    flags: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "squared", *flags]) in (1, 2)
    assert sentence in capsys.readouterr().err
    assert not list(here.glob("runs/*"))
