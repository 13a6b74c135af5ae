"""Tests of ``puffer check-learner``: the table of results, the likely bugs and the exit codes."""

import json
from pathlib import Path

import pytest

from pufferlib.cli import main

LEARNERS = """
import numpy as np

def train(vecenv, seed, total_timesteps):
    rng = np.random.default_rng(seed)
    return lambda observations: rng.integers(0, 2, len(observations))

def fails(vecenv, seed, total_timesteps):
    raise KeyError("mine")
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """Return the path of a file with a learner that acts at random and one that fails."""
    file = tmp_path / "mine.py"
    file.write_text(LEARNERS)
    return str(file)


def test_pufferlib_trainer_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-learner", "--only", "password", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("checking the trainer of pufferlib, seed 3\n")
    assert text.count("✓") == 1
    assert text.endswith(": all learned\n")


def test_failures_are_printed_with_their_likely_bugs(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["check-learner", "--with", f"{mine}:train", "--only", "multiagent,password"]
    assert main(argv) == 1
    text = capsys.readouterr().out
    assert "✗ multiagent  tell the agents of a batch apart" in text
    assert "              agents' rows are mixed up" in text
    assert "              look at reshapes" in text
    assert "2 environments in" in text
    assert "2 not learned. Start with multiagent, because later environments build on earlier ones." in text
    assert text.endswith(f"Run it again: puffer check-learner --with {mine}:train --only multiagent\n")
    assert main([*argv, "--json"]) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["environment"], second["environment"]) == ("multiagent", "password")
    assert (first["passed"], first["error"]) == (False, None)
    assert first["bug"].startswith("agents' rows")


def test_exception_is_printed_with_traceback(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-learner", "--with", f"{mine}:fails", "--only", "bandit"]) == 1
    captured = capsys.readouterr()
    assert "raised KeyError: 'mine'" in captured.out
    assert 'raise KeyError("mine")' in captured.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--with", "mine.py"], "--with must be my_trainer.py:train or module:function, got 'mine.py'"),
        (["--with", "nowhere.py:train"], "nowhere.py"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--only", "bandid"], "unknown environment of the suite 'bandid'; did you mean 'bandit'"),
        (["--sead", "2"], "unknown flag '--sead'; did you mean"),
    ],
)
def test_invalid_arguments_exit_with_error(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-learner", *argv]) in (1, 2)
    assert message in capsys.readouterr().err
