"""``puffer sweep`` with an existing search. ``tests/cli/verbs`` tests it without one."""

import re

import pytest

from pufferlib.cli import main
from pufferlib.sweeps import load_sweep
from tests.tiers import as_all
from tests.trials import ONLY, SPACES

FLAGS = [
    "--env.num-envs=32", "--train.total-timesteps=4096", "--train.horizon=16", "--train.minibatch-size=256",
    "--train.num-threads=1", "--train.device=cpu", "--policy.hidden-size=16", "--eval.episodes=4",
    f"--sweep.only={ONLY}",
    *(f"--sweep.{key}.{name}={value}" for key, table in SPACES.items() for name, value in table.items()),
]  # fmt: skip


@pytest.mark.all
def test_command_continues_search_from_python(done, capsys):
    assert main(["sweep", "squared", f"--sweeps={done.folder.parent}", "--sweep.trials=4", *FLAGS]) == 0
    printed = capsys.readouterr().out
    assert "4 of 4 trials done" in printed
    assert f"the best is trial {done.best.number}, score" in printed
    assert done.flags(done.best) in printed
    assert "report.html" in printed


def test_report_flag_writes_report(done):
    (done.folder / "report.html").unlink(missing_ok=True)
    assert main(["sweep", "squared", "--report", f"--sweeps={done.folder.parent}"]) == 0
    assert (done.folder / "report.html").is_file()
    assert main(["sweep", "squared", "--report", "--sweep.name=cube", f"--sweeps={done.folder.parent}"]) == 1


@pytest.mark.parametrize(
    ("setting", "choices", "values"),
    [
        as_all(("train.horizon", "8,32", {16, 8, 32})),  # the first trial has the default
        as_all(("train.norm-adv", "True,False", {True, False})),
        as_all(("train.norm-adv", "[true, false]", {True, False})),
        as_all(("train.learning-rate", "1e-3", {0.001, 0.004})),
        as_all(("train.optimizer", "adam", {"adam", "muon"})),
    ],
)
def test_choices_from_flags(setting, choices, values, tmp_path, monkeypatch):
    folder = tmp_path / "50% off {now}?"
    folder.mkdir()
    monkeypatch.chdir(folder)
    flags = [flag for flag in FLAGS if not re.search(r"sweep\.|horizon|timesteps", flag)]
    flags += ["--train.total-timesteps=1024"]
    space = [f"--sweep.{setting}.distribution=choice", f"--sweep.{setting}.choices={choices}"]
    only = [f"--sweep.only={setting}", "--sweep.trials=2", "--train.minibatch-size=0"]
    assert main(["sweep", "squared", "--track", "csv", *flags, *space, *only]) == 0
    result = load_sweep("squared")
    assert len(list(result.folder.rglob("*.csv"))) == 2
    found = {trial.settings[setting.replace("-", "_")] for trial in result.trials}
    assert found <= values
    assert {type(value) for value in found} <= {type(value) for value in values}
