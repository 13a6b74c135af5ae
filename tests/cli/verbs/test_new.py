"""Tests of ``puffer new``, which writes the template of a C environment."""

from pathlib import Path

import pytest

from pufferlib.cli import main


def test_new_writes_template_and_keeps_existing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "grid_world"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid_world.c", "grid_world.toml"]
    code = Path("grid_world.c").read_text()
    assert "PUFFER_ENV(GridWorld, grid_world, PUFFER_KEYS(grid_world_keys))" in code
    assert "template" not in code.lower()
    assert "\ngrid_world.toml            the training settings\n" in (output := capsys.readouterr().out)
    assert "\npuffer train grid_world.c  train an agent\n" in output
    assert main(["new", "grid_world.c", "--folder", "."]) == 1
    assert "grid_world.c exists already; choose another name, or remove it" in capsys.readouterr().err


def test_new_writes_a_level_of_minigrid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "ball_room", "--template", "minigrid", "--folder", str(tmp_path)]) == 0
    assert "#define MINIGRID_OWN_LEVELS ball_room_levels" in (tmp_path / "ball_room.c").read_text()
    assert "the level: how it is made, and what ends an episode" in capsys.readouterr().out
    assert main(["new", "other", "--template", "maze", "--folder", str(tmp_path)]) == 2
    assert "invalid choice: 'maze' (choose from 'corridor', 'minigrid')" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Corridor", "my-game", "2048", "a/b"])
def test_new_rejects_invalid_c_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--folder", str(tmp_path)]) == 1
    assert f"expected a name of lower-case letters, digits and underscores, as grid_world, got {name!r}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["puffer", "minigrid"])
def test_new_rejects_prefixes_of_its_headers(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--template", "minigrid", "--folder", str(tmp_path)]) == 1
    assert f"names in the headers begin with {name}; choose another name" in capsys.readouterr().err
