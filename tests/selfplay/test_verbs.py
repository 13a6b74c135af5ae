"""Tests of ``puffer match`` and ``puffer league``."""

import json
from pathlib import Path

import pytest

from pufferlib.cli import main
from tests.tiny_runs import TINY, only_run

SELF_PLAY = ["--env.players=2", "--selfplay.opponents=2", "--selfplay.snapshot-interval=2", "--env.depth=0"]


def test_match_verb_prints_table_and_writes_video(runs, tmp_path, capsys):
    command = ["match", str(runs / "old"), str(runs / "new"), "random", "--games", "4", "--seed", "3"]
    assert main([*command, "--video", str(tmp_path / "game.mp4")]) == 0
    output = capsys.readouterr().out
    heading, *rows, video = output.splitlines()
    assert heading.split() == ["Elo", "score", "1", "2", "3"]
    assert sorted(row.split()[1] for row in rows) == ["new", "old", "random"]
    assert video == f"video: {tmp_path / 'game.mp4'}"
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [heading, *rows]


def test_match_verb_reports_a_missing_video(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pufferlib.selfplay.games.picture_of", lambda env, **options: None)
    older = tmp_path / "game.mp4"
    older.write_bytes(b"of an earlier match")
    assert main(["match", str(runs / "old"), "random", "--games", "2", "--video", str(tmp_path / "game.mp4")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("video: none, because no frames were rendered")
    assert older.read_bytes() == b"of an earlier match"


def test_league_verb_adds_plays_and_prints_table(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["league", "add", "four", str(runs / "old"), str(runs / "new")]) == 0
    assert main(["league", "add", "four", "random", str(runs / "old")]) == 0
    assert capsys.readouterr().out == "added 2 agents: old, new\nadded 1 agent: random\nalready in the league: old\n"
    assert main(["league", "play", "four", "--games", "20"]) == 0
    played, *table = capsys.readouterr().out.splitlines()
    assert played == "played 60 games"
    assert main(["league", "table", "four"]) == 0
    assert capsys.readouterr().out.splitlines() == table
    assert main(["league", "play", "four", "--games", "20"]) == 0
    assert capsys.readouterr().out.splitlines() == ["played 0 games", *table]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "connect4"], "name two or more agents, got 1; for example: puffer match"),
        (["match", "random", "random", "--games", "0"], "--games must be at least 1, got 0"),
        (["match", "random", "random", "--video", "."], "--video must be a file in a folder that exists, got ."),
        (["league"], "name an action and a league, for example: puffer league add"),
        (["league", "ad", "four"], "unknown action 'ad'; did you mean 'add'?"),
        (["league", "add", "four"], "puffer league add: name the agents to add, as in puffer match"),
        (["league", "table", "four", "random"], "puffer league table: takes no agents, got random"),
        (["league", "table", "four"], "there is no league 'four' in leagues; start it: puffer league add four RUN"),
        (["league", "play", "four", "--games", "0"], "--games must be at least 1, got 0"),
    ],
)
def test_invalid_arguments_exit_with_error(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_self_play_run_is_evaluated_against_script_and_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "connect4", *TINY, *SELF_PLAY]) == 0
    run: Path = only_run(tmp_path)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["episode_length"] < 22  # moves of one player, not of both
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert metrics[-1]["selfplay/pool"] >= 2
    assert main(["train", "--resume", str(run), "--train.total-timesteps", "8192"]) == 0
    more = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert more[len(metrics)]["selfplay/pool"] >= metrics[-1]["selfplay/pool"]
    assert main(["train", "connect4", *TINY, "--selfplay.opponents", "2"]) == 1
    assert "got 1 in each game of connect4; add --env.players 2" in capsys.readouterr().err
