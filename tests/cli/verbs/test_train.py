"""Tests of ``puffer train``: files of a run, resuming, errors and signals."""

import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pufferlib.cli import main
from pufferlib.machine.commands import way_to_install
from pufferlib.runs import report
from pufferlib.runs.resume import check_changes
from pufferlib.settings.config import Config, load_config, setting_names
from tests.tiers import once
from tests.tiny_runs import TINY, only_run, untrained_run

pytestmark = pytest.mark.usefixtures("blank_curves")

FILES = {"config.toml", "metrics.jsonl", "learning_curve.png", "checkpoints", "evaluation.mp4", "summary.json"}


def rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.usefixtures("drawn_curves")
def test_train_writes_run_folder_and_prints_summary(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--train.seed", "7", "--env.size=5"]) == 0
    run = only_run(here)
    assert re.fullmatch(r"\d{8}-\d{6}-squared", run.name)
    assert {path.name for path in run.iterdir()} == FILES
    output = capsys.readouterr().out
    assert re.search(
        r"squared: score -?[\d.]+ ± [\d.]+ over 4 episodes, played with sampled actions; random play: -?[\d.]+\n",
        output,
    )
    assert re.search(r"evaluation\.mp4 +the first episode of the evaluation, 0:\d\d at \d+ frames per second\n", output)
    assert "at the end of training" not in output
    assert output.endswith(
        f"Play again: puffer eval runs/{run.name}\nWatch it:   puffer play --watch runs/{run.name}\n"
    )
    assert all(name in output for name in FILES)
    assert "100%  4.10k of 4.10k steps" in output
    assert "\x1b" not in output, "no control sequences without a terminal"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["agent_steps"] == 4096
    assert summary["seed"] == 7
    assert summary["episodes"] == 4
    assert summary["video_is_whole"] is True
    assert summary["video_s"] > 0
    assert -1 <= summary["random_score"] <= 1
    assert "size = 5" in (run / "config.toml").read_text()
    assert len(rows(run)) == 8


def test_python_env_is_trained_from_pixels(here: Path) -> None:
    options = [option for option in TINY if "num-envs" not in option and "timesteps" not in option]
    flags = ["--vec.num-envs=16", "--env.pixels", "[12, 16]", "--train.total-timesteps=512"]
    assert main(["train", "pymultiagent", *options, *flags]) == 0
    settings = (only_run(here) / "config.toml").read_text()
    assert "pixels = [12, 16]" in settings
    assert "update_epochs = 1" in settings, "automatic settings are saved"


def test_missing_current_folder_exits_with_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["train", "squared", *TINY]) == 1
    assert "the current folder no longer exists" in capsys.readouterr().err


def test_training_continues_if_run_folder_is_deleted(here: Path) -> None:
    text = "import shutil\ndef delete(trainer, metrics):\n    if trainer.updates == 3: shutil.rmtree(trainer.run_dir)\n"
    (here / "callbacks.py").write_text(text)
    with (
        pytest.warns(UserWarning, match="could not be written .* the next checkpoint creates the deleted folder again"),
        pytest.warns(UserWarning, match="folder of the run was deleted during training; it is created again"),
    ):
        assert main(["train", "squared", *TINY, "--callback", "callbacks.py:delete"]) == 0
    run = only_run(here)
    assert {path.name for path in run.iterdir()} == FILES
    assert rows(run)[-1]["agent_steps"] == 4096
    assert main(["eval", str(run)]) == 0


def test_resume_continues_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY]) == 0
    run = only_run(here)
    assert main(["train", "pong", "--resume", str(run)]) == 2
    assert "is a run of squared, not of pong" in capsys.readouterr().err
    assert main(["train", "--resume", "squared", "--train.total-timesteps", "8192"]) == 0
    assert only_run(here) == run
    assert [row["agent_steps"] for row in rows(run)] == [512 * i for i in range(1, 17)]
    assert "total_timesteps = 8192" in (run / "config.toml").read_text()
    assert json.loads((run / "summary.json").read_text())["agent_steps"] == 8192


def test_resume_of_finished_run_changes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []
    monkeypatch.setattr(report, "plot_learning_curve", lambda path, metrics, title, *scores: titles.append(title))
    assert main(["train", "squared", *TINY, "--eval.greedy", "True"]) == 0
    assert re.fullmatch(r"squared, seed \d+; evaluated greedily: -?[\d.]+ \(random play -?[\d.]+\)", titles[0])
    assert re.search(r"\nscore at the end of training, with sampled actions: -?[\d.]+\n", capsys.readouterr().out)
    run = only_run(here)

    def files() -> dict[Path, tuple[bytes, int]]:
        found = (path for path in run.rglob("*") if path.is_file())
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    before = files()
    assert main(["train", "--resume", "squared"]) == 0
    assert capsys.readouterr().out == (
        f"runs/{run.name}: nothing is left to train, its 4096 steps are done; to train on: "
        f"puffer train --resume runs/{run.name} --train.total-timesteps 8192; to evaluate it again: "
        f"puffer eval runs/{run.name}\n"
    )
    assert files() == before
    (run / "summary.json").unlink()  # as if the evaluation was interrupted
    assert main(["train", "--resume", str(run)]) == 0
    assert json.loads((run / "summary.json").read_text())["episodes"] == 4


def test_finished_run_is_evaluated_with_new_settings(here: Path) -> None:
    assert main(["train", "squared", *TINY]) == 0
    run = only_run(here)
    (checkpoint,) = (run / "checkpoints").iterdir()
    assert main(["train", "--resume", "squared", "--eval.episodes", "2"]) == 0
    assert json.loads((run / "summary.json").read_text())["episodes"] == 2
    assert Config.load(run / "config.toml").eval.episodes == 2
    assert [*(run / "checkpoints").iterdir()] == [checkpoint], "nothing was trained"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--train.total-timesteps 100", "can become longer, not shorter; it has 4096 steps, got"),
        ("--train.gamma 0.5", "got --train.gamma 0.5 (was 0.9); leave that out, or start a new run:"),
        ("--env.size 3 --train.seed 1", "start a new run: puffer train squared --env.size 3 --train.seed 1"),
        ("--env.size 3", "got --env.size 3 (was unset);"),
    ],
)
def test_resume_rejects_changed_settings(
    flags: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = here / "runs" / "20260101-000000-squared"
    run.mkdir(parents=True)
    (run / "checkpoints" / "000001").mkdir(parents=True)
    (run / "checkpoints" / "000001" / "policy.safetensors").touch()
    settings = load_config("squared", {"train.total_timesteps": 4096})
    settings.save(run / "config.toml")
    assert main(["train", "--resume", "squared", *flags.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert Config.load(run / "config.toml") == settings


def test_resume_allows_other_device_workers_and_evaluation() -> None:
    before = load_config("squared", {"train.total_timesteps": 4096})
    now = load_config("squared", {
        "train.total_timesteps": 8192, "train.device": "cpu", "train.num_threads": 2, "vec.num_workers": 3,
        "env.num_threads": 2, "eval.episodes": 3,
    })  # fmt: skip
    check_changes("here", before, now)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda path: (path / "state.safetensors").write_bytes(b""),
            "state.safetensors: is not a safetensors file: it is",
        ),
        (lambda path: (path / "policy.safetensors").write_bytes(b"PK 3"), "it is a zip archive, as torch.save writes"),
        (lambda path: (path / "state.safetensors").unlink(), "state.safetensors: cannot be read: No such file"),
    ],
)
def test_resume_of_damaged_checkpoint_changes_nothing(
    damage: Callable[[Path], object], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = untrained_run(here).checkpoint
    damage(path)
    before = {file: file.read_bytes() for file in here.rglob("*") if file.is_file()}
    assert main(["train", "--resume", str(path)]) == 1
    assert sentence in capsys.readouterr().err
    assert {file: file.read_bytes() for file in here.rglob("*") if file.is_file()} == before


def test_resume_from_older_checkpoint_prints_run_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--train.checkpoint-interval", "4"]) == 0
    run = only_run(here)
    assert main(["train", "--resume", str(run / "checkpoints" / "000004" / "policy.safetensors")]) == 0
    assert capsys.readouterr().out.count(f"Play again: puffer eval {run}\n") == 1
    assert (run / "checkpoints" / "000008-2").is_dir()


def test_shown_commands_quote_paths(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--runs", "my runs"]) == 0
    (run,) = (here / "my runs").iterdir()
    assert f"puffer eval 'my runs/{run.name}'" in capsys.readouterr().out


def test_run_without_finished_episodes_has_no_score(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="raise eval.max_steps"):
        assert main(["train", "squared", *TINY, "--eval.max-steps=1"]) == 0
    message = "squared: no score, since none of 4 episodes ended within eval.max-steps"
    out = capsys.readouterr().out
    assert message in out
    assert "evaluation.mp4      the first episode of the evaluation\n" in out
    run = only_run(here)
    assert {path.name for path in run.iterdir()} == FILES
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["score"], summary["random_score"], summary["unfinished_episodes"]) == (None, None, 4)
    assert main(["train", "--resume", str(run)]) == 0
    assert "nothing is left to train" in capsys.readouterr().out
    assert main(["runs"]) == 0
    assert "finished" in capsys.readouterr().out


def test_update_longer_than_training_is_noted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "squared", *TINY, "--train.total-timesteps", "100"]) == 0
    assert "one update takes 512 steps, more than train.total_timesteps (100)" in capsys.readouterr().err


@pytest.mark.parametrize("seeds", once(["1", "2"], ["2"]))
def test_seeds_without_finished_episodes_have_no_score(seeds: str, here: Path) -> None:
    with pytest.warns(UserWarning, match="the run has no score"):
        assert main(["train", "squared", *TINY, "--eval.max-steps=1", "--train.seeds", seeds]) == 0
    summary = json.loads((only_run(here) / "summary.json").read_text())
    assert (summary["score_mean"], summary["scores"]) == (None, [None] * int(seeds))


@pytest.mark.parametrize("size_bytes", [100, 3000])
def test_full_disk_exits_before_training(size_bytes: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        code = main(["train", "squared", *TINY])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    captured = capsys.readouterr()
    assert code == 1
    (line,) = captured.err.splitlines()
    assert line.startswith("error: puffer: ")
    assert line.endswith("File too large; free some space, or choose a folder on another disk")
    assert not list(here.glob("runs/*"))


@pytest.mark.parametrize("package", once(["torch", "tyro", "rich", "psutil"], ["torch"]))
def test_missing_package_names_install_command(package: str, here: Path) -> None:
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


def test_missing_package_of_env_names_its_import(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "lazy_env.py"
    file.write_text("def make():\n    import no_such_simulator\n")
    assert main(["train", "lazy_env.py:make", "--vec.backend", "Serial"]) == 1
    message = f"error: puffer: No module named 'no_such_simulator' ({file}, line 2); install the package that has it"
    assert capsys.readouterr().err.startswith(message)


@pytest.fixture
def long_run(here: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Yield a process of ``puffer train`` that has finished its first update. The parameter adds flags."""
    code = "import sys; from pufferlib.cli import main; sys.exit(main())"
    argv = ["train", "squared", *TINY, "--train.total-timesteps=1000000000", *getattr(request, "param", ())]
    env = {**os.environ, "PUFFER_COMMAND": "./scripts/tank"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "steps/s" in line:
                    break
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "code"), once([(signal.SIGINT, 130), (signal.SIGTERM, 143)], [(signal.SIGINT, 130)])
)
def test_signal_saves_checkpoint(
    number: signal.Signals, code: int, here: Path, long_run: "subprocess.Popen[str]"
) -> None:
    long_run.send_signal(number)
    _, error = long_run.communicate(timeout=60)
    run = only_run(here)
    assert long_run.returncode == code
    assert error.startswith("stopping after this update, with a checkpoint; press Ctrl-C again to stop at once\n")
    assert f"the checkpoint is runs/{run.name}/checkpoints/0" in error
    assert f"./scripts/tank train --resume runs/{run.name}" in error
    assert "Traceback" not in error
    assert main(["eval", str(run), "--eval.episodes", "1"]) == 0


@pytest.mark.all
@pytest.mark.parametrize("long_run", [["--vec.backend=Multiprocessing", "--vec.num-workers=1"]], indirect=True)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_to_process_group_saves_checkpoint(
    number: signal.Signals, code: int, here: Path, long_run: "subprocess.Popen[str]"
) -> None:
    os.killpg(long_run.pid, number)
    _, error = long_run.communicate(timeout=60)
    assert long_run.returncode == code, error
    assert f"the checkpoint is runs/{only_run(here).name}/checkpoints/0" in error
    assert "Traceback" not in error


def test_training_continues_if_stdout_is_closed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert main(["train", "squared", *TINY]) == 0
    assert (only_run(here) / "summary.json").exists()


SENDS_SIGTERM = """
import os, pathlib, signal
import gymnasium

class Cart(gymnasium.Wrapper):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))
        if list(pathlib.Path("runs").glob("*")):
            os.kill(os.getpid(), signal.SIGTERM)
"""


def test_sigterm_before_first_update_leaves_no_run(here: Path) -> None:
    (here / "mine.py").write_text(SENDS_SIGTERM)
    assert main(["train", "mine.py:Cart", "--vec.backend", "Serial"]) == 143
    assert list((here / "runs").iterdir()) == []


@pytest.mark.usefixtures("drawn_curves")  # with evaluations and a limit
def test_early_stopped_run_is_resumed_only_with_new_limit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--eval.interval", "600", "--eval.interval-episodes", "2", "--stop.score", "-2"]
    assert main(["train", "squared", *TINY, *flags]) == 0
    run = only_run(here)
    summary = json.loads((run / "summary.json").read_text())
    steps, reason = summary["agent_steps"], summary["stop_reason"]
    assert 600 <= steps < 4096
    assert re.fullmatch(r"the evaluation score reached -?[\d.]+, stop\.score is -2", reason)
    assert f"\nstopped after {steps} steps: {reason}\n" in capsys.readouterr().out
    again = f"puffer train --resume runs/{run.name} --stop.score inf"
    assert main(["train", "--resume", "squared"]) == 0
    assert f"nothing is left to train, it was stopped after {steps} steps: {reason}; to train on: {again};" in (
        capsys.readouterr().out
    )
    assert main(["train", "--resume", "squared", "--eval.episodes", "2"]) == 0, "evaluates again"
    assert json.loads((run / "summary.json").read_text())["agent_steps"] == steps
    assert main(again.split()[1:]) == 0
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["agent_steps"], summary["stop_reason"]) == (4096, None)


def shown(text: str) -> dict[str, tuple[str, str]]:
    """Return value and source of each setting that ``--show-settings`` printed."""
    _, heads, *lines = text.splitlines()
    value, source = (heads.index(head) for head in ("Value", "Source"))
    return {line[:value].strip(): (line[value:source].strip(), line[source:]) for line in lines}


def test_show_settings_prints_values_and_sources_and_trains_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[train]\ngamma = 0.9\n["Hopper-*".train]\nhorizon = 64\n["Hopper-v5".policy]\nhidden_size = 32\n'
    (here / "my.toml").write_text(text)
    flags = ["--train.no-norm-adv", "--train.seed=7", "--env.size", "3", "--tag", "a", "--show-settings"]
    assert main(["train", "mujoco/Hopper-v5", "--config", "my.toml", *flags]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Settings of mujoco/Hopper-v5\n")
    found = shown(output)
    assert set(setting_names()) < set(found)
    expected = {
        "train.rescale_actions": ("true", "third_party.toml, [train]"),
        "env.size": ("3", "flag"),
        "policy.hidden_size": ("32", 'my.toml, ["Hopper-v5".policy]'),
        "train.gamma": ("0.9", "my.toml, [train]"),
        "train.horizon": ("64", 'my.toml, ["Hopper-*".train]'),
        "train.learning_rate": ("0.0003", "mujoco/train.toml, [train]"),
        "train.norm_adv": ("false", "flag"),
        "train.seed": ("7", "flag"),
        "train.gae_lambda": ("0.95", "default"),
        "train.num_threads": ("1", "mujoco/train.toml, [train]"),
        "train.init": ("empty", "default"),
        "vec.num_workers": ("unset", "default"),
        "track.tags": ("a", "flag"),
        "track.wandb.mode": ("auto", "default"),
    }
    assert {name: found[name] for name in expected} == expected
    assert [path.name for path in here.iterdir()] == ["my.toml"]


def test_show_settings_of_a_resumed_run_and_of_autotune(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = here / "run"
    run.mkdir()
    untrained_run(run)
    assert main(["train", "--resume", str(run), "--train.total-timesteps", "1e9", "--show-settings"]) == 0
    found = shown(capsys.readouterr().out)
    assert found["env.size"] == ("3", f"{run}/config.toml, [env]")
    assert found["train.total_timesteps"] == ("1000000000", "flag")

    def tuned(config: Config, given: Iterable[str]) -> Config:
        return dataclasses.replace(config, vec=dataclasses.replace(config.vec, num_envs=3))

    monkeypatch.setattr("pufferlib.cli.verbs.train.with_tuned_vec", tuned)
    assert main(["train", "CartPole-v1", "--vec", "auto", "--show-settings"]) == 0
    found = shown(capsys.readouterr().out)
    assert (found["vec.num_envs"], found["vec.backend"]) == (
        ("3", "autotune"),
        ("Multiprocessing", "outside.toml, [vec]"),
    )


def test_flags_decide_which_conditional_tables_apply(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pufferlib.settings.sources.has_gpu", lambda: True)
    (here / "my.toml").write_text("[cuda.train]\nhorizon = 16\n")
    flags = ["--config", "my.toml", "--policy.name", "NatureCNN", "--train.device", "cpu", "--show-settings"]
    assert main(["train", "CartPole-v1", *flags]) == 0
    found = shown(capsys.readouterr().out)
    names = ("policy.networks", "policy.activation", "train.horizon")
    assert [found[name] for name in names] == [("shared", "default"), ("relu", "default"), ("0", "default")]
    assert found["policy.name"] == ("NatureCNN", "flag")


def test_table_without_environment_is_an_error_before_training(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.toml").write_text('["sqared".train]\ngamma = 0.9\n')
    assert main(["train", "squared", *TINY, "--config", "my.toml"]) == 2
    assert "my.toml: no environment matches 'sqared'; did you mean 'squared'" in capsys.readouterr().err
    assert not (here / "runs").exists()
