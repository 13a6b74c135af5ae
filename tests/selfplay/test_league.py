"""Tests of leagues, including leagues shared by processes."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.selfplay import League


@pytest.fixture
def league(runs, tmp_path):
    """Make a league of the runs "old" and "new" and the random player."""
    made = League(tmp_path / "leagues" / "four.db")
    assert made.add([runs / "old", runs / "new", "random"]) == (["old", "new", "random"], [])
    return made


def test_agents_and_games_are_added_once(league, runs, tmp_path):
    shutil.copytree(runs / "old", tmp_path / "copy")
    assert league.add([tmp_path / "copy", "random"]) == ([], ["old", "random"])
    assert league.play(games=20) == 60
    table = league.table()
    assert league.play(games=20) == 0
    assert League(league.path).play(games=30) == 60  # rounded up to whole rounds
    more = league.table()
    assert more.games.tolist() == [80, 80, 80]
    assert (more.wins >= table.wins).all()
    assert table.games.tolist() == [40, 40, 40]


def test_agents_of_same_name_get_distinct_names(league, runs, tmp_path):
    shutil.copytree(runs / "new", tmp_path / "old")
    other = tmp_path / "old"
    (checkpoint,) = (other / "checkpoints").iterdir()
    change_weights(other)
    assert league.add([other]) == ([f"old/{checkpoint.name}"], [])


def change_weights(run):
    """Change a weight of the run's only checkpoint."""
    from pufferlib.runs.tensor_file import read_metadata, read_tensors, write_tensors

    (file,) = run.glob("checkpoints/*/policy.safetensors")
    weights = read_tensors(file)
    next(iter(weights.values())).add_(0.01)
    write_tensors(file, weights, read_metadata(file))


def test_missing_or_changed_weights_raise(league, runs, tmp_path):
    shutil.copytree(runs / "new", tmp_path / "mine")
    change_weights(tmp_path / "mine")
    league.add([tmp_path / "mine"])
    change_weights(tmp_path / "mine")
    with pytest.raises(APIUsageError, match=r"the weights of mine must not change, but .* has other"):
        league.play()
    shutil.rmtree(tmp_path / "mine")
    with pytest.raises(APIUsageError, match=r"the weights of mine must not change, but .* does not exist"):
        league.play()


def test_league_rejects_other_game_settings(league, runs, tmp_path):
    shutil.copytree(runs / "new", tmp_path / "shallow")
    change_weights(tmp_path / "shallow")
    config = tmp_path / "shallow" / "config.toml"
    config.write_text(config.read_text().replace("players = 2", "players = 2\ndepth = 1"))
    with pytest.raises(APIUsageError, match="the same game, got old with depth 4 and shallow with 1"):
        league.add([tmp_path / "shallow"])


def test_league_rejects_games_with_one_side(tmp_path):
    league = League(tmp_path / "one.db")
    with pytest.raises(APIUsageError, match="both sides of a game must be agents, got 1 in each game of breakout"):
        league.add(["breakout", "random"])
    assert not league.path.exists()


def test_other_file_raises_and_is_unchanged(tmp_path):
    file = tmp_path / "notes.db"
    file.write_text("not a table, but a text that is long enough to be read as the head of one" * 20)
    with pytest.raises(APIUsageError, match="a league must be an SQLite file"):
        League(file)
    assert file.read_text().startswith("not a table")
    empty = League(tmp_path / "empty.db")
    with pytest.raises(APIUsageError, match=r"games need two agents, empty has 0; add some: .*league add empty"):
        empty.play()
    assert not empty.path.exists()


@pytest.mark.all
def test_two_processes_share_league(league, runs):
    script = "import sys; from pufferlib.selfplay import League; print(League(sys.argv[1]).play(games=60))"
    command = [sys.executable, "-c", script, str(league.path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    played = [int(process.communicate(timeout=120)[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum(played) >= 180
    together = league.table()
    assert together.games.tolist() == [120, 120, 120]
    alone = League(league.path.with_name("alone.db"))
    alone.add([runs / "old", runs / "new", "random"])
    alone.play(games=60)
    np.testing.assert_array_equal(together.wins, alone.table().wins)
