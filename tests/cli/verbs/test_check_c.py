"""``puffer check`` of a C file: each defect with its class, its place and what it means."""

import shutil
from pathlib import Path

import pytest

from pufferlib.cli import main
from pufferlib.ocean.template import write_template
from pufferlib.testing import CONTRACT


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")
def test_check_says_in_which_class_a_defect_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, _ = write_template("corridor", tmp_path)
    assert main(["check", str(source), "--fuzz", "500"]) == 0
    said = capsys.readouterr().out
    assert "500 steps in C with seed 0: no defects found" in said
    assert said.count("✓") == len(CONTRACT)
    source.write_text(source.read_text().replace("game.rewards[0] = 1", "game.rewards[env->length] = 1"))
    assert main(["check", str(source), "--fuzz", "500"]) == 1
    said, noted = capsys.readouterr()
    assert f"memory  {source}:" in said
    assert "heap-buffer-overflow, write of 4 bytes\n    in step " in said
    assert "That is, reads or writes where nothing is" in said
    assert "✓" not in said
    assert "the contract was not checked" in noted
    assert main(["check", str(source), "--fuzz", "0"]) == 2
