"""Tests of ``puffer check`` for C files, which reports the class, the place and the meaning of a defect."""

import shutil
from pathlib import Path

import pytest

from pufferlib.cli import main
from pufferlib.ocean.files import write_template
from pufferlib.testing import CONTRACT


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")
def test_defect_of_c_file_is_reported_with_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, _ = write_template("corridor", tmp_path)
    assert main(["check", str(source), "--fuzz", "500"]) == 0
    output = capsys.readouterr().out
    assert "500 steps in C with seed 0: no defects found" in output
    assert output.count("✓") == len(CONTRACT)
    source.write_text(source.read_text().replace("game.rewards[0] = 1", "game.rewards[env->length] = 1"))
    assert main(["check", str(source), "--fuzz", "500"]) == 1
    output, errors = capsys.readouterr()
    assert f"memory  {source}:" in output
    assert "heap-buffer-overflow, write of 4 bytes\n    in step " in output
    assert "That is, reads or writes outside of its memory" in output
    assert "✓" not in output
    assert "the contract was not checked" in errors
    assert main(["check", str(source), "--fuzz", "0"]) == 2
