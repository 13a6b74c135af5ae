"""Tests of ``puffer doctor``."""

import json

import pytest

from pufferlib.cli import main
from pufferlib.installation import doctor
from pufferlib.installation.doctor import Finding


@pytest.mark.parametrize(
    ("level", "code", "end"),
    [("ok", 0, "ready"), ("absent", 0, "ready"), ("advice", 0, "ready"), ("problem", 1, "see the lines marked ✗")],
)
def test_doctor_prints_findings_and_exits_with_1_for_problems(
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
    assert "✓ python              3.11.7\n" in text
    assert "wing                bent\n                      → straighten it\n" in text
    assert ("✓ wing" in text) == (level == "ok")
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
