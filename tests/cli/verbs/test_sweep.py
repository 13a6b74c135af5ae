"""Tests of the command line of ``puffer sweep``."""

from pathlib import Path

import pytest

from pufferlib.cli import main


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ([], 2, "name an environment first"),
        (["--report"], 2, "name a sweep first"),
        (
            ["--resume", "sw"],
            2,
            "it again under the same name with the same settings: puffer sweep ENV --sweep.name sw",
        ),
        (["squared", "--resume=sweeps/sw"], 2, "puffer sweep squared --sweep.name sw"),
        (["squared", "--report"], 1, "no sweep 'squared' in sweeps; there is none yet; start it: puffer sweep squared"),
        (["squared", "--sweep.trails", "5"], 2, "unknown flag '--sweep.trails'; did you mean '--sweep.trials'"),
        (["squared", "--sweep.trials"], 2, "--sweep.trials: expected a value"),
        (["squared", "--sweep.trials", "0"], 2, "sweep.trials must be at least 1, got 0"),
        (["squared", "--sweep.train.gamma", "0.9"], 2, "a space is --sweep.SECTION.NAME.KEY"),
        (["squared", "--sweep.train.gama.min", "0.9"], 2, "unknown setting 'train.gama'; did you mean 'train.gamma'"),
        (["squared", "--train.gama", "0.9"], 2, "unknown flag '--train.gama'; did you mean '--train.gamma'"),
        (["squared", "--train.gamma", "0.9", "--sweep.train.gamma.min", "0.8"], 2, "leave one out"),
        (
            ["squared", "--train.no-norm-adv", "--sweep.train.norm_adv.choices", "true,false"],
            2,
            "is given a space, and train.norm_adv a value of its own (False)",
        ),
    ],
)
def test_invalid_arguments_exit_with_error(
    here: Path, argv: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tyro", reason="the train extra is not installed")
    assert main(["sweep", *argv]) == code
    assert message in capsys.readouterr().err
    assert not list(here.iterdir())


def test_choices_are_separated_by_commas(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tyro", reason="the train extra is not installed")
    space = ["--sweep.train.optimizer.distribution=choice", "--sweep.train.optimizer.choices=adam,sgd"]
    assert main(["sweep", "squared", *space]) == 2
    assert "sweep.train.optimizer: choices must be 'adam' or 'muon', got 'sgd'" in capsys.readouterr().err


def test_help_lists_sweep_settings(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tyro", reason="the train extra is not installed")
    assert main(["sweep", "--help"]) == 0
    printed = capsys.readouterr().out
    for flag in ("--sweep.trials", "--sweep.prune-after", "--sweep.storage", "--train.learning-rate", "--report"):
        assert flag in printed
