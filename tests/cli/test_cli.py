"""The ``puffer`` command: what it prints, what it refuses, and how it exits."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferlib
from pufferlib import ocean, registry
from pufferlib.cli import main
from pufferlib.cli.verbs import list as list_verb
from pufferlib.installation import doctor
from pufferlib.installation.doctor import Finding
from pufferlib.machine.commands import way_to_install
from pufferlib.train import report
from pufferlib.train.config import Config, load_config
from pufferlib.train.resume import check_changes
from pufferlib.train.runs import find_run, new_run
from pufferlib.train.text import short
from pufferlib.vector import factory

# A run of a second: eight updates of 512 steps.
TINY = [
    "--env.num-envs=32", "--train.horizon=16", "--train.minibatch-size=256", "--train.total-timesteps=4096",
    "--train.num-threads=1", "--policy.hidden-size=16", "--eval.episodes=4", "--train.device=cpu",
]  # fmt: skip
FILES = {"config.toml", "metrics.jsonl", "learning_curve.png", "checkpoint.pt", "evaluation.mp4", "summary.json"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def only_run(folder: Path) -> Path:
    (run,) = (folder / "runs").iterdir()
    return run


def rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pufferlib {pufferlib.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_verb(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {verb}" in text for verb in ("train", "eval", "play", "autotune", "list", "install", "doctor"))


@pytest.mark.parametrize("verb", ["train", "eval", "play", "autotune", "list", "install", "doctor"])
def test_each_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"puffer {verb}" in capsys.readouterr().out


def test_help_says_what_a_keyword_means_that_the_settings_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rware", "--help"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"--env\.num-agents: \w.* \(an int from 1 to \d+; now 8\)", text)
    assert re.search(r"--env\.num-envs: now 128", text)
    assert "python -m pydoc pufferlib.ocean.OceanEnv" in text


@pytest.mark.parametrize("env", [*ocean.names(), *ocean.python_names(), "atari/pong"])
def test_help_is_for_people(env: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", env, "--help"]) == 0
    text = capsys.readouterr().out
    assert "`" not in text
    assert "--vec.num-workers INT|None" in text
    assert "{None}" not in text


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["trian"], "puffer: unknown verb 'trian'; did you mean 'train'?"),
        (["--jsn"], "puffer: unknown verb '--jsn'"),
        (["list", "--jsn"], "puffer list: unknown flag '--jsn'; did you mean '--json'?"),
        (["list", "atary"], "puffer list: unknown binding 'atary'; did you mean 'atari'?"),
        (["doctor", "breakout"], "puffer doctor: takes no argument 'breakout'"),
        (["install"], "puffer install: the following arguments are required: NAME"),
        (["install", "atary"], "puffer install: unknown binding or extra 'atary'; did you mean 'atari'?"),
        (["autotune"], "puffer autotune: the following arguments are required: env"),
        (["autotune", "squard"], "unknown environment 'squard'; did you mean 'squared'?"),
        (["autotune", "squared", "--batch", "8"], "unknown flag '--batch'; did you mean '--batch-size'?"),
        (["doctor", "--runs"], "puffer doctor: argument --runs: expected one argument"),
        (["train"], "puffer train: name an environment first, for example: puffer train breakout"),
        (["train", "--train.seed", "1"], "puffer train: name an environment first"),
        (["train", "squard"], "puffer train: unknown environment 'squard'; did you mean 'squared'?"),
        (["train", "atari"], "atari has 104 of them, for example atari/breakout; puffer list atari shows all"),
        (["train", "squared", "--train.sead", "1"], "unknown flag '--train.sead'; did you mean '--train.seed'"),
        (["train", "squared", "--learning-rate=1"], "did you mean '--train.learning-rate'"),
        (["train", "squared", "--train.lr", "1"], "flag '--train.lr'; did you mean '--train.learning-rate'?"),
        (["train", "squared", "--resum", "x"], "unknown flag '--resum'; did you mean '--resume'?"),
        (["train", "squared", "--num-envs", "8"], "did you mean '--vec.num-envs' or '--env.num-envs'?"),
        (["train", "squared", "--trian.seed", "8"], "did you mean '--train.seed' or '--eval.seed'?"),
        (["train", "squared", "--qqq"], "puffer train: unknown flag '--qqq'; see puffer train squared --help"),
        (["train", "squared", "7"], "puffer train: '7' belongs to no flag; see puffer train squared --help"),
        (["train", "squared", "--train.seed"], "puffer train: --train.seed: expected a value"),
        (["train", "squared", "--train.seed", "x"], "puffer train: --train.seed: expected INT: invalid literal"),
        (["train", "squared", "--train.anneal-lr", "maybe"], "--train.anneal-lr: expected True or False, got 'maybe'"),
        (["train", "squared", "--env.size"], "puffer train: --env.size: expected a value"),
        (["train", "squared", "--env.siz", "5"], "Squared: unknown keyword 'siz'; did you mean 'size'?"),
        (["train", "squared", "--vec.backend", "Seral"], "did you mean 'Serial'?"),
        (["train", "squared", "--resume"], "puffer train: argument --resume: expected one argument"),
        (["train", "--resume", "absent"], "puffer train: 'absent' is no run, no checkpoint and no environment"),
        (["eval"], "puffer eval: name a run, a checkpoint or an environment"),
        (["eval", "x", "--video", "no/film.mp4"], "--video must be a file in a folder that exists, got no/film.mp4"),
        (["eval", "x", "--video", "."], "puffer eval: --video must be a file in a folder that exists, got ."),
        (["eval", "squard"], "'squard' is no run, no checkpoint and no environment; did you mean 'squared'?"),
    ],
)
def test_what_is_not_understood_gets_a_sentence(
    argv: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not list(here.glob("runs/*")), "a command that was refused left a run behind"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["train", "squared", "--env.size", "1000"], "Squared: size must be an int from 2 to 256, got 1000"),
        (["train", "squared", "--train.device", "warp"], "train.device must be auto, cpu, cuda"),
        (["train", "squared", "--train.horizon", "-1"], "train.horizon must be at least 0, got -1"),
        (["train", "squared", "--env.size", "2026-11-21"], "size must be an int from 2 to 256, got '2026-11-21'"),
        (
            ["train", "squared", "--runs", "/proc/runs"],
            "--runs must be a folder that can be made and written to, got /proc/runs (No",
        ),
        (["train", "squared", "--runs", __file__], f"got {__file__} (File exists); choose another, for example"),
        (
            ["train", "squared", "--policy.hidden-size", "1000000"],
            "memory is too small for 4000000000000 bytes at once",
        ),
        (["eval", "squared"], "puffer eval: no run of squared in runs; train one: puffer train squared"),
        (["eval", "."], "has no checkpoint.pt; expected the folder of a run"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence(
    argv: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not list(here.glob("runs/*"))


def test_list_json_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == pufferlib.list_envs()
    assert all(entry["about"] for entry in entries if entry["source"] == "ocean")


def test_list_prints_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(pufferlib.list_envs()) <= set(words)


def test_list_fits_a_screen_and_has_the_rest_by_binding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert set(ocean.names()) <= set(text.split())
    assert "and 98 more: puffer list atari" in text
    assert main(["list", "atari"]) == 0
    words = capsys.readouterr().out.split()
    assert {f"atari/{name}" for name in registry.names("atari")} <= set(words)
    assert not set(ocean.names()) & set(words)


def test_list_all_has_every_binding_and_what_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_verb, "in_image", lambda: False)
    assert main(["list", "--all", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries.keys() == registry.binding_facts().keys()
    assert {name for name, entry in entries.items() if entry["unavailable"]} == {"dmlab", "minerl", "smac"}
    assert entries["atari"]["install"] == "puffer install atari"
    assert main(["list", "--all"]) == 0
    text = capsys.readouterr().out
    assert all(f" {name} " in text for name in entries)
    assert "PyPI's smac is SMAC3" in " ".join(text.split())


def test_list_tells_what_is_installed_and_the_command_that_brings_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_verb, "state", lambda facts: "installed" if facts.name == "atari" else "")
    monkeypatch.setenv("PUFFER_COMMAND", "./scripts/tank")
    for in_image, way in ((False, "./scripts/tank install nethack"), (True, "docker compose run --rm tank-full")):
        monkeypatch.setattr(list_verb, "in_image", lambda inside=in_image: inside)
        assert main(["list", "atari", "nethack"]) == 0
        text = capsys.readouterr().out
        assert "atari, installed: 104\n" in text
        assert f"nethack, with {way}: 9\n" in text


def test_autotune_prints_the_fastest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    quick = ["autotune", "squared", "--batch-size=2", "--max-envs=4", "--time-per-test=0.02"]
    assert main([*quick, "--json"]) == 0
    configs = json.loads(capsys.readouterr().out)
    rates = [config["steps_per_second"] for config in configs]
    assert rates == sorted(rates, reverse=True)
    assert main(quick) == 0
    text = capsys.readouterr().out
    assert "agents: 1" in text
    assert f"{rates[0]:,.0f}" in text  # kept from the first time
    assert f"The fastest: vector.make(env_creator('squared'), backend={configs[0]['kwargs']['backend']!r}" in text


@pytest.mark.parametrize(
    ("level", "code", "end"),
    [("ok", 0, "ready"), ("absent", 0, "ready"), ("advice", 0, "ready"), ("problem", 1, "see the lines marked ✗")],
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


def test_train_leaves_everything_and_says_where(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--train.seed", "7", "--env.size=5"]) == 0
    run = only_run(here)
    assert re.fullmatch(r"\d{8}-\d{6}-squared", run.name)
    assert {path.name for path in run.iterdir()} == FILES
    output = capsys.readouterr().out
    assert re.search(
        r"squared: score -?[\d.]+ ± [\d.]+ over 4 episodes, played with sampled actions; random play: -?[\d.]+\n",
        output,
    )
    assert re.search(r"evaluation\.mp4 +the first episode of the evaluation, 0:\d\d at \d+ pictures a second\n", output)
    assert "while it trained" not in output
    assert output.endswith(
        f"Play again: puffer eval runs/{run.name}\nWatch it:   puffer play --watch runs/{run.name}\n"
    )
    assert all(name in output for name in FILES)
    assert "100%  4.10k of 4.10k steps" in output
    assert "\x1b" not in output, "no control sequences where there is no terminal"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["agent_steps"] == 4096
    assert summary["seed"] == 7
    assert summary["episodes"] == 4
    assert summary["video_is_whole"] is True
    assert summary["video_s"] > 0
    assert -1 <= summary["random_score"] <= 1
    assert "size = 5" in (run / "config.toml").read_text()
    assert len(rows(run)) == 8


def test_train_takes_pictures_of_an_environment_in_python(here: Path) -> None:
    options = [option for option in TINY if "num-envs" not in option]
    assert main(["train", "pymultiagent", *options, "--vec.num-envs=16", "--env.pixels", "[12, 16]"]) == 0
    settings = (only_run(here) / "config.toml").read_text()
    assert "pixels = [12, 16]" in settings
    assert "update_epochs = 1" in settings, "what was chosen where its own settings leave it open"


def test_a_run_is_evaluated_again_in_three_ways(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY]) == 0
    run = only_run(here)
    score = json.loads((run / "summary.json").read_text())["score"]
    capsys.readouterr()
    for target in (str(run), str(run / "checkpoint.pt"), "squared"):
        assert main(["eval", target, "--video", "film.mp4"]) == 0
        output = capsys.readouterr().out
        assert f"score {short(score)} ±" in output
        assert "video: film.mp4" in output
        assert re.search(rf"\nWatch it: puffer play --watch \S*{run.name}\n", output)
        assert Path("film.mp4").stat().st_size > 1000
    for count, words in (("1", "over 1 episode, "), ("2", "over 2 episodes, ")):
        assert main(["eval", str(run), "--eval.episodes", count]) == 0
        assert words in capsys.readouterr().out
    assert main(["eval", str(run), "--video", "film.mp4", "--eval.video-seconds", "0.3", "--eval.greedy", "True"]) == 0
    output = capsys.readouterr().out
    assert "played greedily; random play" in output
    assert re.search(r"at \d+ pictures a second; cut, for it lasts 0:\d\d: --eval.video-seconds 0 films all", output)
    assert main(["eval", str(run), "--policy.hidden-size", "8"]) == 1
    assert "checkpoint does not fit" in capsys.readouterr().err
    (run / "checkpoint.pt").write_bytes(b"no checkpoint")
    assert main(["eval", str(run)]) == 1
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "spins"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)]
)
def test_threads_that_wait_leave_the_core_to_others(
    given: dict[str, str], spins: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, given.get(name, ""))  # so that it is put back
        if name not in given:
            monkeypatch.delenv(name)
    assert main(["list"]) == 0
    assert os.environ.get("GOMP_SPINCOUNT") == spins


def test_a_locale_without_the_signs_gets_question_marks() -> None:
    command = [sys.executable, "-c", "from pufferlib.cli import main; main(['doctor'])"]
    output = subprocess.check_output(command, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert b"? python" in output


def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["train", "squared", *TINY]) == 1
    assert "the folder that this runs in is gone" in capsys.readouterr().err


def test_evaluation_starts_no_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["train", "squared", *TINY]) == 0
    monkeypatch.setitem(factory.BACKENDS, "Multiprocessing", None)  # type: ignore[arg-type]
    workers = ["--vec.backend", "Multiprocessing", "--vec.num-envs", "4", "--vec.num-workers", "2"]
    assert main(["eval", str(only_run(here)), "--eval.episodes", "1", *workers]) == 0


def test_a_run_goes_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY]) == 0
    run = only_run(here)
    assert main(["train", "pong", "--resume", str(run)]) == 2
    assert "is a run of squared, not of pong" in capsys.readouterr().err
    assert main(["train", "--resume", "squared", "--train.total-timesteps", "8192"]) == 0
    assert only_run(here) == run
    assert [row["agent_steps"] for row in rows(run)] == [512 * i for i in range(1, 17)]
    assert "total_timesteps = 8192" in (run / "config.toml").read_text()
    assert json.loads((run / "summary.json").read_text())["agent_steps"] == 8192


def test_a_run_that_is_finished_stays_as_it_is(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []
    monkeypatch.setattr(report, "plot_learning_curve", lambda path, metrics, title, score: titles.append(title))
    assert main(["train", "squared", *TINY, "--eval.greedy", "True"]) == 0
    assert re.fullmatch(r"squared, seed \d+; evaluated greedily: -?[\d.]+ \(random play -?[\d.]+\)", titles[0])
    assert re.search(r"\nwhile it trained, with sampled actions, the score came to -?[\d.]+\n", capsys.readouterr().out)
    run = only_run(here)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()}
    assert main(["train", "--resume", "squared", "--eval.episodes", "2"]) == 0
    assert capsys.readouterr().out == (
        f"runs/{run.name}: nothing is left to train, its 4096 steps are done; to train on: "
        f"puffer train --resume runs/{run.name} --train.total-timesteps 8192; to evaluate it again: "
        f"puffer eval runs/{run.name}\n"
    )
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()} == before
    (run / "summary.json").unlink()  # as when the evaluation was stopped
    assert main(["train", "--resume", str(run), "--eval.episodes", "2"]) == 0
    assert json.loads((run / "summary.json").read_text())["episodes"] == 2


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--train.total-timesteps 100", "may become longer, not shorter; it was begun with 4096 steps, got"),
        ("--train.gamma 0.5", "got --train.gamma 0.5 (begun with 0.97); leave that out, or begin a new run:"),
        ("--env.size 3 --train.seed 1", "begin a new run: puffer train squared --env.size 3 --train.seed 1"),
        ("--env.size 3", "got --env.size 3 (begun without it);"),
    ],
)
def test_what_would_make_another_run_of_it_is_refused(
    flags: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = here / "runs" / "20260101-000000-squared"
    run.mkdir(parents=True)
    (run / "checkpoint.pt").touch()
    settings = load_config("squared", {"train.total_timesteps": 4096})
    settings.save(run / "config.toml")
    assert main(["train", "--resume", "squared", *flags.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert Config.load(run / "config.toml") == settings


def test_a_run_may_go_on_elsewhere_and_be_judged_otherwise() -> None:
    before = load_config("squared", {"train.total_timesteps": 4096})
    now = load_config("squared", {
        "train.total_timesteps": 8192, "train.device": "cpu", "train.num_threads": 2, "vec.num_workers": 3,
        "env.num_threads": 2, "eval.episodes": 3,
    })  # fmt: skip
    check_changes("here", before, now)


def test_commands_that_are_shown_can_be_pasted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--runs", "my runs"]) == 0
    (run,) = (here / "my runs").iterdir()
    assert f"puffer eval 'my runs/{run.name}'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["--help"], "usage: {} VERB"),
        (["list", "--help"], "usage: {} list"),
        (["play", "--help"], "flags: {} play squared"),
        (["eval", "--help"], "random play: {} eval RUN"),
        (["list"], "Train one: {} train breakout"),
        (["train"], "for example: {} train breakout; {} list shows all"),
        (["train", "squared", "--qqq"], "see {} train squared --help"),
        (["train", "squared", "--help"], "usage: {} train squared"),
        (["eval"], "for example: {} eval breakout"),
        (["eval", "squared"], "train one: {} train squared"),
        (["install"], "see {} install --help"),
    ],
)
def test_commands_that_are_shown_work_where_they_were_run(
    argv: list[str],
    command: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PUFFER_COMMAND", "./scripts/tank")
    main(argv)
    captured = capsys.readouterr()
    text = " ".join((captured.out + captured.err).split())
    assert command.replace("{}", "./scripts/tank") in text


def test_an_evaluation_that_fails_tells_where_the_agent_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--eval.max-steps=1"]) == 1
    error = capsys.readouterr().err
    assert "raise eval.max_steps" in error
    assert f"it is kept: puffer eval runs/{only_run(here).name}" in error


def test_two_runs_in_one_second_get_a_folder_each(here: Path) -> None:
    folders = []
    for _ in range(3):
        with new_run(here / "runs", "atari/pong") as run:
            folders.append(run.folder)
    assert len(set(folders)) == 3
    assert all(folder.name.endswith("-atari-pong") for folder in folders)


def test_an_environment_finds_its_own_latest_run(here: Path) -> None:
    for i, name in enumerate(["20260101-000000-pong", "20260101-000001-pong", "20260101-000002-atari-pong"]):
        (here / "runs" / name).mkdir(parents=True)
        checkpoint = here / "runs" / name / "checkpoint.pt"
        checkpoint.touch()
        os.utime(checkpoint, (i, i))
    assert find_run("here", "pong", Path("runs")).folder.name == "20260101-000001-pong"


@pytest.mark.parametrize("size_bytes", [100, 3000, 8000])  # the settings, the metrics, the checkpoint fail
def test_a_full_disk_ends_with_a_sentence(size_bytes: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        code = main(["train", "squared", *TINY])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    captured = capsys.readouterr()
    assert code == 1
    assert captured.err == "error: puffer: File too large; make room, or choose a folder on another disk with --runs\n"


@pytest.mark.parametrize("package", ["torch", "tyro", "rich", "psutil"])
def test_a_missing_package_names_the_command(package: str, here: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from pufferlib.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "squared", *TINY],
        env={**os.environ, "PUFFER_COMMAND": "./scripts/tank"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"error: puffer: the package {package} is not installed; {way_to_install('train')}\n".replace(
        "puffer install", "./scripts/tank install"
    )
    assert not list(here.glob("runs/*"))


@pytest.fixture
def long_run(here: Path) -> Iterator[subprocess.Popen[str]]:
    """A ``puffer train`` that would take hours, after its first update."""
    code = "import sys; from pufferlib.cli import main; sys.exit(main())"
    argv = ["train", "squared", *TINY, "--train.total-timesteps=1000000000"]
    env = {**os.environ, "PUFFER_COMMAND": "./scripts/tank"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "steps/s" in line:
                    break
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_batch_systems_keep_a_checkpoint(
    number: signal.Signals, code: int, here: Path, long_run: "subprocess.Popen[str]"
) -> None:
    long_run.send_signal(number)
    _, error = long_run.communicate(timeout=60)
    run = only_run(here)
    assert long_run.returncode == code
    assert f"the checkpoint is runs/{run.name}/checkpoint.pt" in error
    assert f"./scripts/tank train --resume runs/{run.name}" in error
    assert "Traceback" not in error
    assert main(["eval", str(run), "--eval.episodes", "1"]) == 0
