"""Tests of the ``puffer`` command: output, errors and exit codes."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.cli import VERBS, main
from pufferlib.cli.console import plain_warnings
from pufferlib.cli.options import parse_config
from pufferlib.settings.config import load_config
from pufferlib.text import flag
from tests.tiers import once


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pufferlib {pufferlib.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_verb(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {verb} " in text for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"puffer {verb}" in capsys.readouterr().out


def test_help_describes_env_keywords_changed_by_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rware", "--help"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"--env\.num-agents: \w.* \(an int from 1 to \d+; now 8\)", text)
    assert re.search(r"--env\.num-envs: now 128", text)
    assert "python -m pydoc pufferlib.ocean.OceanEnv" in text


@pytest.mark.parametrize(
    "env", once([*ocean.names(), *ocean.python_names(), "atari/pong"], ["breakout", "spaces", "atari/pong"])
)
def test_help_has_no_markup(env: str, capsys: pytest.CaptureFixture[str]) -> None:
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
        (["list", "atary"], "puffer list: unknown binding 'atary'; did you mean 'atari'"),
        (["doctor", "breakout"], "puffer doctor: takes no argument 'breakout'"),
        (["install"], "puffer install: the following arguments are required: NAME"),
        (["install", "atary"], "puffer install: unknown binding or extra 'atary'; did you mean 'atari'"),
        (["autotune"], "puffer autotune: the following arguments are required: env"),
        (["autotune", "squard"], "unknown environment 'squard'; did you mean 'squared'"),
        (["autotune", "squared", "--batch", "8"], "unknown flag '--batch'; did you mean '--batch-size'?"),
        (["doctor", "--runs"], "puffer doctor: argument --runs: expected one argument"),
        (["train"], "puffer train: name an environment first, for example: puffer train breakout"),
        (["train", "--train.seed", "1"], "puffer train: name an environment first"),
        (["train", "squard"], "puffer train: unknown environment 'squard'; did you mean 'squared'"),
        (["train", "atari"], "atari has 104 environments, for example atari/breakout; puffer list atari lists them"),
        (
            ["train", "squared", "--policy.recurrent", "True"],
            "puffer train: --policy.recurrent has become --policy.memory; type --policy.memory LSTM in place of "
            "--policy.recurrent True, or --policy.memory none in place of --policy.recurrent False",
        ),
        (["train", "squared", "--policy.memory", "lstm"], "expected none or LSTM or GRU or MinGRU, got 'lstm'"),
        (["train", "squared", "--train.sead", "1"], "unknown flag '--train.sead'; did you mean '--train.seed'"),
        (["train", "squared", "--learning-rate=1"], "did you mean '--train.learning-rate'"),
        (["train", "squared", "--train.lr", "1"], "flag '--train.lr'; did you mean '--train.learning-rate'?"),
        (["train", "squared", "--resum", "x"], "unknown flag '--resum'; did you mean '--resume'?"),
        (["train", "squared", "--num-envs", "8"], "did you mean '--vec.num-envs' or '--env.num-envs'?"),
        (["train", "squared", "--trian.seed", "8"], "did you mean '--train.seed' or '--eval.seed'?"),
        (["train", "squared", "--qqq"], "puffer train: unknown flag '--qqq'; see puffer train squared --help"),
        (
            ["train", "squared", "--train.seed", "7", "--track", "csv", "tensorboard", "--train.gamma", "0.9"],
            "puffer train: --track takes one list with commas, got 'csv tensorboard'; write --track csv,tensorboard",
        ),
        (["train", "squared", "--track=csv", "wandb"], "got 'csv wandb'; write --track csv,wandb"),
        (["train", "squared", "--train.total-timesteps", "0"], "train.total_timesteps must be at least 1, got 0"),
        (["train", "squared", "--vec.num-envs", "0"], "vec.num_envs must be at least 1, got 0"),
        (["train", "squared", "--train.gamma", "2"], "train.gamma must be from 0 to 1, got 2.0"),
        (
            ["train", "squared", "--train.device", "warp"],
            "train.device must be auto, cpu, cuda or cuda:<n>, got 'warp'",
        ),
        (["train", "squared", "--train.horizon", "-1"], "error: train.horizon must be at least 0, got -1"),
        (["sweep", "squared", "--train.horizon", "-1"], "error: train.horizon must be at least 0, got -1"),
        (["train", "squared", "--train.minibatch-size", "7"], "train.minibatch_size must divide train.horizon"),
        (["train", "squared", "7"], "puffer train: '7' belongs to no flag; see puffer train squared --help"),
        (["train", "squared", "--train.seed"], "puffer train: --train.seed: expected a value"),
        (["train", "squared", "--train.seed", "x"], "puffer train: --train.seed: expected INT: invalid literal"),
        (["train", "squared", "--train.seed", "1e-3"], "puffer train: --train.seed: expected INT: invalid literal"),
        (["train", "squared", "--train.norm-adv", "maybe"], "--train.norm-adv: expected true or false: got 'maybe'"),
        (["train", "squared", "--train.norm-adv="], "--train.norm-adv: expected true or false: got ''"),
        (["train", "squared", "--train.cuda-graphs", "x"], "--train.cuda-graphs: expected true or false or None: got"),
        (
            ["train", "squared", "--train.no-norm-adv", "false"],
            "--train.no-norm-adv: expected no value, got 'false'; write --train.no-norm-adv, or --train.norm-adv false",
        ),
        (["train", "squared", "--train.no-norm-adv=1"], "--train.no-norm-adv: expected no value, got '1'"),
        (["train", "squared", "--train.no-norm-advs"], "unknown flag '--train.no-norm-advs'; did you mean"),
        (["train", "squared", "--no-train.no-norm-adv"], "unknown flag '--no-train.no-norm-adv'; did you mean"),
        (["train", "squared", "--train.no-seed"], "unknown flag '--train.no-seed'; did you mean '--train.seed'?"),
        (["train", "squared", "--train.optimizer", "sgd"], "--train.optimizer: expected adam or muon, got 'sgd'"),
        (["train", "squared", "--policy.hidden-sizes", "8,x"], "--policy.hidden-sizes: expected INT,INT,...: invalid"),
        (["train", "squared", "--policy.hidden-sizes", "8,0"], "policy.hidden_sizes must be at least 1, got 0"),
        (
            ["train", "squared", "--policy.activation", "sine"],
            "--policy.activation: expected relu or tanh or silu or elu or gelu, got 'sine'",
        ),
        (["train", "squared", "--policy.log-std-init", "nan"], "policy.log_std_init must be from -5 to 2, got nan"),
        (
            ["train", "snake", "--policy.name", "Snake", "--policy.activation", "tanh"],
            "the policy Snake does not take the option activation, got 'tanh'; it takes hidden_size; remove "
            "policy.activation",
        ),
        (["train", "squared", "--env.size"], "puffer train: --env.size: expected a value"),
        (["train", "squared", "--env.siz", "5"], "Squared: unexpected keyword argument 'siz'; did you mean 'size'?"),
        (["train", "squared", "--vec.backend", "Seral"], "did you mean 'Serial'?"),
        (["train", "squared", "--resume"], "puffer train: argument --resume: expected one argument"),
        (["train", "--resume", "absent"], "puffer train: 'absent' is not a run, a checkpoint or an environment"),
        (["eval"], "puffer eval: name a run, a checkpoint or an environment"),
        (["eval", "x", "--video", "no/video.mp4"], "--video must be a file in a folder that exists, got no/video.mp4"),
        (["eval", "x", "--video", "."], "puffer eval: --video must be a file in a folder that exists, got ."),
        (["eval", "squard"], "'squard' is not a run, a checkpoint or an environment; did you mean 'squared'"),
    ],
)
def test_invalid_command_line_exits_with_one_line_error(
    argv: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not list(here.glob("runs/*")), "an invalid command left a run behind"


def test_error_output_has_notes_but_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = pufferlib.APIUsageError("emulation: observation must have numbers, got nan")
    error.add_note("while stepping environment 1 with actions [0]")
    error.add_note("In environment 1:\nTraceback ...")

    def fail() -> list[str]:
        raise error

    monkeypatch.setattr("pufferlib.registry.list_envs", fail)
    assert main(["list"]) == 1
    assert capsys.readouterr().err == f"error: {error}\nwhile stepping environment 1 with actions [0]\n"


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("--train.compile", True),
        ("--train.compile true", True),
        ("--train.compile=True", True),
        ("--train.compile --train.seed 7", True),
        ("--train.compile false", False),
        ("--train.compile=FALSE", False),
        ("--train.no-compile", False),
        ("--no-train.compile", False),
        ("--train.compile --train.no-compile", False),
    ],
)
def test_boolean_flag_needs_no_value(typed: str, value: bool) -> None:
    base = load_config("squared", {"train.compile": not value})
    assert parse_config("puffer train", base, typed.split()).train.compile is value


@pytest.mark.parametrize("name", ["norm-adv", "norm_adv"])
def test_boolean_flag_accepts_dashes_and_underscores(name: str) -> None:
    base = load_config("squared")
    assert not parse_config("puffer train", base, [f"--train.no-{name}"]).train.norm_adv
    assert parse_config("puffer train", base, [f"--train.no-{name}", f"--train.{name}"]).train.norm_adv


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("--train.cuda-graphs", True),
        ("--train.no-cuda-graphs", False),
        ("--train.cuda-graphs false", False),
        ("--train.cuda-graphs None", None),
    ],
)
def test_optional_boolean_flag_accepts_none(typed: str, value: bool | None) -> None:
    base = load_config("squared", {"train.cuda_graphs": not value})
    assert parse_config("puffer train", base, typed.split()).train.cuda_graphs is value


@pytest.mark.parametrize(("typed", "steps"), [("1e6", 1_000_000), ("2_000", 2000), ("2.5e3", 2500), ("7", 7)])
def test_int_flag_accepts_python_notation(typed: str, steps: int) -> None:
    config = parse_config("puffer train", load_config("squared"), ["--train.total-timesteps", typed])
    assert config.train.total_timesteps == steps


@pytest.mark.parametrize(
    ("typed", "sizes"),
    [
        ("256,64", (256, 64)),
        ("256 64", (256, 64)),
        ("[256, 64]", (256, 64)),
        ("1e2", (100,)),
        ("8,8, 9", (8, 8, 9)),
        ("", ()),
        ("[]", ()),
    ],
)
@pytest.mark.parametrize("before", [[], [1], [1, 2]])
def test_flag_with_several_ints(typed: str, sizes: tuple[int, ...], before: list[int]) -> None:
    base = load_config("squared", {"policy.hidden_sizes": before})
    config = parse_config("puffer train", base, ["--policy.hidden-sizes", *typed.split()])
    assert config.policy.hidden_sizes == sizes


@pytest.mark.parametrize("typed", ["csv,tensorboard", "csv tensorboard"])
def test_flag_with_several_words(typed: str) -> None:
    config = parse_config("puffer train", load_config("squared"), ["--track.loggers", *typed.split()])
    assert config.track.loggers == ("csv", "tensorboard")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy.hidden_sizes", (64, 32)),
        ("policy.hidden_sizes", ()),
        ("policy.activation", "tanh"),
        ("track.tags", ("a", "b")),
        ("train.norm_adv", False),
        ("train.cuda_graphs", None),
        ("train.learning_rate", 1e-9),
    ],
)
def test_printed_flag_is_parsed_to_the_same_value(name: str, value: object) -> None:
    config = parse_config("puffer train", load_config("squared"), shlex.split(flag(name, value)))
    section, _, setting = name.partition(".")
    assert getattr(getattr(config, section), setting) == value


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["train", "squared", "--env.size", "1000"], "Squared: size must be an int from 3 to 255, got 1000"),
        (["train", "squared", "--env.size", "2026-11-21"], "size must be an int from 3 to 255, got '2026-11-21'"),
        (
            ["train", "squared", "--runs", "/proc/runs"],
            "--runs must be a folder that can be created and written to, got /proc/runs (No",
        ),
        (["train", "squared", "--runs", __file__], f"got {__file__} (File exists); choose another, for example"),
        pytest.param(
            ["train", "squared", "--policy.hidden-size", "300000"],
            "out of memory when allocating 360000000000 bytes",
            marks=pytest.mark.all,  # first makes the layer before it, which takes seconds
        ),
        (["eval", "CartPole-v1"], "puffer eval: no run of CartPole-v1 in runs; train one: puffer train CartPole-v1"),
        (["eval", "."], "has no checkpoints; expected the folder of a run"),
    ],
)
def test_runtime_error_exits_with_one_line_message(
    argv: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not list(here.glob("runs/*"))


@pytest.mark.parametrize("argv", ["--version", "list", "list --json", "lst"])
def test_short_verbs_do_not_import_torch(argv: str) -> None:
    code = (
        "import sys; from pufferlib.cli import main\n"
        f"code = main({argv.split()!r})\n"
        "heavy = {'torch', 'tyro', 'rich', 'matplotlib', 'ale_py', 'cv2', 'av'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("argv", "seconds", "wait", "code"), [("--version", 0.1, 20, 0), ("lst", 60, 0.1, 2)])
def test_threads_do_not_keep_program_from_ending(argv: str, seconds: float, wait: float, code: int) -> None:
    script = (
        "import sys, threading, time, pufferlib.cli as cli\n"
        f"threading.Thread(target=time.sleep, args=({seconds},), name='mine').start()\n"
        f"cli.THREADS_S, sys.argv = {wait}, ['puffer', '{argv}']\n"
        "sys.exit(cli.main())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=15)
    assert done.returncode == code
    assert ("threads were still running 0.1 s after the end and were stopped: mine" in done.stderr) == (seconds > wait)


@pytest.mark.parametrize(
    ("argv", "output"), [(["list", "--json"], "| true"), (["--help"], ">&-")], ids=["pipe", "stdout"]
)
def test_closed_output_prints_no_error(argv: list[str], output: str) -> None:
    command = f"{sys.executable} -c 'from pufferlib.cli import main; main({json.dumps(argv)})' {output}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_closed_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python sets it after <&-
    for display in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(display, raising=False)
    assert main(["play", "squared"]) == 2
    sys.stdin.close()  # main replaced it
    assert "there is neither a display nor an interactive terminal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "spins"),
    once(
        [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
        [({"GOMP_SPINCOUNT": "7"}, "7")],
    ),
)
def test_main_limits_openmp_spinning(given: dict[str, str], spins: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, given.get(name, ""))  # so that monkeypatch restores it
        if name not in given:
            monkeypatch.delenv(name)
    assert main(["list"]) == 0
    assert os.environ.get("GOMP_SPINCOUNT") == spins


def test_unencodable_characters_are_printed_as_question_marks() -> None:
    script = """
from pufferlib.cli import VERBS, main
from pufferlib.installation import doctor
doctor.examine = lambda runs: [doctor.Finding("python", "3")]
main(["doctor"])
"""
    command = [sys.executable, "-c", script]
    output = subprocess.check_output(command, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert b"? python" in output


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["--help"], "usage: {} VERB"),
        (["list", "--help"], "usage: {} list"),
        (["play", "--help"], "flags: {} play squared"),
        (["eval", "--help"], "random play. {} eval RUN"),
        (["list"], "Train one: {} train breakout"),
        (["train"], "for example: {} train breakout; {} list shows all"),
        (["train", "squared", "--qqq"], "see {} train squared --help"),
        (["train", "squared", "--help"], "usage: {} train squared"),
        (["eval"], "for example: {} eval breakout"),
        (["eval", "CartPole-v1"], "train one: {} train CartPole-v1"),
        (["install"], "see {} install --help"),
    ],
)
def test_shown_commands_start_with_puffer_command_variable(
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


def test_user_warnings_are_printed_as_sentences() -> None:
    before = warnings.formatwarning
    with plain_warnings():
        assert warnings.formatwarning("make room", UserWarning, "file.py", 1) == "warning: make room\n"
        assert "file.py:1: DeprecationWarning" in warnings.formatwarning("old", DeprecationWarning, "file.py", 1)
    assert warnings.formatwarning is before


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["train", "puffer_breakout", "--wandb", "True"], "--wandb is a flag of PufferLib 3; type here: --track wandb"),
        (["train", "breakout", "--train.bptt-horizon", "64"], "type here: --train.horizon N"),
        (["train", "breakout", "--rnn-name", "Recurrent"], "type here: --policy.memory LSTM"),
        (["eval", "breakout", "--load-model-path", "latest"], "puffer eval RUN, or puffer train ENV --init RUN"),
        (["sweep", "breakout", "--max-runs", "9"], "puffer sweep ENV --sweep.trials N"),
        (["profile", "breakout"], "PufferLib 3's verb 'profile' is puffer train"),
    ],
)
def test_pufferlib_3_flag_names_its_replacement(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["eval", "squared"], ["match", "a", "b"], ["replay", "x.npz"]])
def test_video_of_other_format_exits_with_error(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--video", "x.gif"]) in (1, 2)
    assert "--video: a video must be a file NAME.mp4, got x.gif" in capsys.readouterr().err


def test_help_keeps_tables_and_percent_signs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["league", "--help"]) == 0
    assert "\n  table   show the table\n" in capsys.readouterr().out
    assert main(["plot", "--help"]) == 0
    assert "95 % bootstrap interval" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("verb", ["train", "eval", "sweep"])
def test_help_without_environment_explains_its_keywords(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert "--env.NAME VALUE. Name an environment to list them.\n" in capsys.readouterr().out
