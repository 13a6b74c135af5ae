"""Tests of ``puffer check``, which checks an environment against the contract."""

import functools
import sys

import pytest

from pufferlib import registry
from pufferlib.cli import main
from pufferlib.testing import CONTRACT
from tests.envs import ScriptedPufferEnv


def test_valid_env_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "squared", "--env.size", "5", "--steps", "20"]) == 0
    text = capsys.readouterr().out
    assert text.count("✓") == len(CONTRACT)
    assert text.endswith("squared, 20 steps at random with seed 0: no problems\n")


def test_broken_env_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    printing = functools.partial(ScriptedPufferEnv, on_step=lambda: print("stepping"))
    monkeypatch.setattr(registry, "env_creator", lambda *names: printing)
    assert main(["check", "mine", "--steps", "5", "--continuing"]) == 1
    text = capsys.readouterr().out
    assert "✗ 14  reset and step write nothing to the terminal.\n" in text
    assert "got 'stepping'" in text
    assert "1 of 14 lines of the contract are broken" in text


def test_missing_episode_end_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "squared", "--steps", "2"]) == 0
    text = capsys.readouterr().out
    assert "-  5  An episode ends with" in text
    assert "(no episode ended: use more" in text
    assert "at least " in text


def test_continuing_flag_allows_endless_episodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "env_creator", lambda *names: ScriptedPufferEnv)
    monkeypatch.setattr("pufferlib.testing.check.LONGEST_EPISODE", 1000)  # saves a second
    assert main(["check", "mine", "--steps", "5"]) == 1
    assert "✗  5  An episode ends with" in capsys.readouterr().out
    assert main(["check", "mine", "--steps", "5", "--continuing"]) == 0
    assert "-  5  An episode ends with" in capsys.readouterr().out


def test_exception_of_env_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising = functools.partial(ScriptedPufferEnv, on_step=lambda: 1 // 0)
    monkeypatch.setattr(registry, "env_creator", lambda *names: raising)
    assert main(["check", "mine", "--steps", "5"]) == 1
    captured = capsys.readouterr()
    assert "mine raised ZeroDivisionError; the check was stopped" in captured.out
    assert "ZeroDivisionError" in captured.err


def test_sys_exit_of_env_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        registry, "env_creator", lambda *names: functools.partial(ScriptedPufferEnv, on_step=lambda: sys.exit())
    )
    assert main(["check", "mine", "--steps", "5"]) == 1
    assert "error: the environment must not exit, got SystemExit(None)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "puffer check: name an environment, for example: puffer check breakout"),
        (["brekout"], "puffer check: unknown environment 'brekout'; did you mean 'breakout'"),
        (["squared", "--steps", "0"], "puffer check: --steps must be at least 1, got 0"),
        (["squared", "--stepps", "9"], "puffer check: unknown flag '--stepps'; did you mean '--steps'?"),
    ],
)
def test_invalid_arguments_exit_with_error(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *argv]) == 2
    assert message in capsys.readouterr().err
