"""Every example runs with the command in its docstring, and is short."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import once

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
SMALL_BUDGETS = {
    "01_first_environment": ["--steps", "200"],
    "02_wrap_your_gymnasium_env": ["--steps", "40"],
    "03_vectorize": ["--steps", "20"],
    "04_train_breakout": ["--timesteps", "16384"],
    "05_many_agents": ["--steps", "20"],
    "06_use_an_agent": ["--timesteps", "2048", "--steps", "50"],
    "07_check_a_learner": ["--scale", "0.02"],
}
EXPECTED = {
    "01_first_environment": "episodes ended: score",
    "02_wrap_your_gymnasium_env": "score ",
    "03_vectorize": "same observations: True",
    "04_train_breakout": "random play: ",
    "05_many_agents": "present 5",
    "06_use_an_agent": "50 steps in 16 environments: ",
    "07_check_a_learner": "memory: ",
}
NEEDS = {
    "03_vectorize": "ale_py",
    "04_train_breakout": "torch",
    "06_use_an_agent": "torch",
    "07_check_a_learner": "torch",
}


def run(example: Path, arguments: list[str]) -> str:
    command = [sys.executable, "-W", "error", str(example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("example", "package", "sentence"),
    [
        ("03_vectorize", "ale_py", "needs the package ale_py, which is not installed; "),
        ("04_train_breakout", "torch", "pufferlib.training.Trainer: the package torch is not installed; "),
    ],
)
def test_missing_package_of_an_example_is_named(example: str, package: str, sentence: str) -> None:
    path = FOLDER / f"{example}.py"
    code = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    extra = {"ale_py": "atari", "torch": "train"}[package]
    assert f": puffer install {extra}\n" in path.read_text()


def test_every_example_has_a_budget() -> None:
    assert [example.stem for example in EXAMPLES] == list(SMALL_BUDGETS) == list(EXPECTED)


@pytest.mark.parametrize("example", once(EXAMPLES, EXAMPLES[:2]), ids=lambda example: example.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    arguments = SMALL_BUDGETS[example.stem]
    if example.stem == "04_train_breakout":
        arguments = [*arguments, "--run-dir", str(tmp_path)]
    assert EXPECTED[example.stem] in run(example, arguments)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example_is_short_and_documents_its_command(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = example.read_text()
    assert len(text.splitlines()) < 80
    command = re.search(r"^Run it: python (\S+) (.*)$", text, re.MULTILINE)
    assert command is not None
    assert command[1] == f"examples/{example.name}"
    monkeypatch.setattr(sys, "argv", [str(example), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(example), run_name="__main__")
    assert ended.value.code == 0
    assert command[2].split()[0] in capsys.readouterr().out
