"""The ``puffer`` command: what it prints, what it refuses, and how it exits."""

import json
import subprocess
import sys

import pytest

import pufferlib
from pufferlib import doctor
from pufferlib.cli import main
from pufferlib.doctor import Finding


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pufferlib {pufferlib.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_verb(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {verb}" in text for verb in ("train", "eval", "list", "doctor"))


@pytest.mark.parametrize("verb", ["list", "doctor"])
def test_each_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"puffer {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["trian"], "puffer: unknown verb 'trian'; did you mean 'train'?"),
        (["--jsn"], "puffer: unknown verb '--jsn'"),
        (["list", "--jsn"], "puffer list: unknown flag '--jsn'; did you mean '--json'?"),
        (["list", "breakout"], "puffer list: takes no argument 'breakout'"),
        (["doctor", "--runs"], "puffer doctor: argument --runs: expected one argument"),
    ],
)
def test_what_is_not_understood_gets_a_sentence(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_list_json_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == pufferlib.list_envs()
    assert all(entry["about"] for entry in entries if entry["source"] == "ocean")


def test_list_prints_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(pufferlib.list_envs()) <= set(words)


@pytest.mark.parametrize(
    ("level", "code", "end"), [("ok", 0, "ready"), ("advice", 0, "ready"), ("problem", 1, "see the lines marked ✗")]
)
def test_doctor_prints_findings_and_tells_whether_they_stop_us(
    level: doctor.Level,
    code: int,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [Finding("python", "3.11.7", data={"version": "3.11.7"}), Finding("wing", "bent", level, "straighten it")]
    monkeypatch.setattr(doctor, "examine", lambda runs: found)
    assert main(["doctor"]) == code
    text = capsys.readouterr().out
    assert "✓ python            3.11.7\n" in text
    assert "wing              bent\n                    → straighten it\n" in text
    assert text.endswith(end + "\n")
    assert main(["doctor", "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["usable"] is (code == 0)
    assert report["findings"][0] == {
        "name": "python",
        "value": "3.11.7",
        "level": "ok",
        "advice": "",
        "data": {"version": "3.11.7"},
    }


@pytest.mark.parametrize("argv", ["--version", "list", "list --json", "lst"])
def test_short_verbs_leave_torch_alone(argv: str) -> None:
    code = (
        "import sys; from pufferlib.cli import main\n"
        f"code = main({argv.split()!r})\n"
        "heavy = {'torch', 'tyro', 'rich', 'matplotlib', 'ale_py', 'cv2', 'av'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_ends_without_a_traceback() -> None:
    command = f'{sys.executable} -c \'from pufferlib.cli import main; main(["list", "--json"])\' | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
