"""Searches from start to end: repeated, invalid, failing, stopped and shared ones."""

import json
import math
import re
import signal
import subprocess
import sys
import time

import pytest

from pufferlib.errors import APIUsageError, PufferError, UnknownNameError
from pufferlib.sweeps import SweepDisplay, load_sweep, sweep, write_report
from tests.trials import ONLY, SPACES, TINY


def test_finished_search_starts_no_trials(done):
    again = sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=3, sweeps=done.folder.parent)
    assert len(again.trials) == 4
    assert load_sweep("squared", done.folder.parent).best == done.best


def test_notebook_shows_the_best_trials_first(done):
    numbers = re.findall(r"<tr><td[^>]*>(\d+)</td>", done._repr_html_())
    assert int(numbers[0]) == done.best.number
    assert len(numbers) == sum(math.isfinite(trial.score) for trial in done.trials)


@pytest.mark.all
def test_progress_prints_a_line_for_each_trial(tmp_path, capsys):
    sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=1, sweeps=tmp_path, progress=True)
    assert "1 of 1  trial 0 score" in capsys.readouterr().out


def test_settings_may_have_options_of_the_search(done, monkeypatch):
    monkeypatch.setattr("pufferlib.sweeps.launch.write_report", lambda result: None)  # takes most of the time
    spaces = {f"sweep.{setting}.{key}": value for setting, space in SPACES.items() for key, value in space.items()}
    settings = {**TINY, **spaces, "sweep.only": ONLY, "sweep.trials": 3}
    again = sweep("squared", settings, trials=2, sweeps=done.folder.parent)
    assert len(again.trials) == 4
    with pytest.raises(UnknownNameError, match="trails"):
        sweep("squared", {"sweep.trails": 3}, sweeps=done.folder.parent)


@pytest.mark.parametrize(
    ("env", "settings", "options", "message"),
    [
        ("bandit", TINY, {}, r"sweep 'squared': is of squared, got bandit; for a new search, choose another --sweep"),
        ("squared", {**TINY, "policy.hidden_size": 8}, {},
         r"started with other settings: policy.hidden_size \(16 before, 8 now\)"),
        ("squared", {**TINY, "train.gamma": 0.9}, {"only": "train.learning_rate,train.update_epochs"},
         r"other spaces: sweep.train.gamma \(distribution logit, min 0.5, max 0.999 before, none now\)"),
        ("squared", TINY, {"direction": "minimize"}, r"started with sweep.direction maximize, got minimize"),
        ("squared", TINY, {"objective": "score,cost"}, r"started with sweep.objective score, got score,cost"),
    ],
)  # fmt: skip
def test_study_of_another_search_raises(done, env, settings, options, message):
    chosen = {"only": ONLY, "name": "squared", **options}
    spaces = {key: space for key, space in SPACES.items() if key not in settings}
    with pytest.raises(APIUsageError, match=message):
        sweep(env, settings, spaces=spaces, sweeps=done.folder.parent, **chosen)


def test_runs_of_study_in_another_place_are_refused(done, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {"only": ONLY, "name": "squared", "spaces": SPACES, "sweeps": done.folder.parent}
    with pytest.raises(APIUsageError, match=rf"squared: has runs of a study in study.db, got {tmp_path}/new.log; set"):
        sweep("squared", TINY, storage="~/new.log", **options)
    assert not list(tmp_path.iterdir())


def test_invalid_search_raises_and_leaves_no_files(tmp_path):
    with pytest.raises(UnknownNameError, match="squarred"):
        sweep("squarred", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"sweep.storage must be a URL.*got 'here'"):
        sweep("squared", storage="here", sweeps=tmp_path)
    for name in ("../cube", ".."):
        with pytest.raises(APIUsageError, match=rf"sweep.name must be the name of a folder in .*, got '{name}'"):
            sweep("squared", name=name, sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"needs a package for this kind of database .*pip install psycopg2-binary"):
        sweep("squared", storage="postgresql://nobody@nowhere/optuna", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"a trial trains in one process, got train.processes 2; .* sweep.workers"):
        sweep("squared", {"train.processes": 2}, sweeps=tmp_path)
    assert not list(tmp_path.iterdir())


class Notes(SweepDisplay):
    def __init__(self):
        self.notes, self.ended = [], []

    def note(self, text):
        self.notes.append(text)

    def finish(self, worker, state, score, seconds, reason):
        self.ended.append((state, reason))


@pytest.mark.all
def test_three_failures_stop_search(tmp_path):
    display = Notes()
    settings = {**TINY, "eval.max_steps": 1}  # so no episode ends
    with pytest.raises(PufferError, match=r"first 3 trials of this call all failed.*fix this, and run the"):
        sweep("squared", settings, spaces=SPACES, only=ONLY, trials=5, workers=1, sweeps=tmp_path, display=display)
    assert [state for state, _ in display.ended] == ["failed"] * 3
    found = load_sweep("squared", tmp_path)
    assert [trial.state for trial in found.trials] == ["failed"] * 3
    assert "episode" in found.trials[0].reason
    with pytest.raises(APIUsageError, match="no trial has finished yet"):
        write_report(found)


NOTEBOOK = """
import json

class Notebook:
    def __init__(self, run):
        self.path, self.updates = run.folder / "notebook.json", 0

    def log(self, metrics):
        self.updates += 1

    def finish(self, result):
        self.path.write_text(json.dumps({"updates": self.updates, **result.numbers}))

    def close(self): ...
"""


@pytest.mark.all
def test_trackers_receive_the_result_of_each_trial(tmp_path):
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    settings = {**TINY, "track.loggers": f"{tmp_path}/notebook.py:Notebook"}
    found = sweep("squared", settings, spaces=SPACES, only=ONLY, trials=1, workers=1, sweeps=tmp_path)
    (note,) = tmp_path.glob("squared/**/notebook.json")
    noted = json.loads(note.read_text())
    assert noted["score"] == found.trials[0].score
    assert noted["updates"] > 0


FRAGILE = """
import os, signal
import gymnasium, numpy as np

class Fragile(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    render_mode = None

    def __init__(self, mode="fine", render_mode=None):
        self.mode, self.steps = mode, 0

    def reset(self, seed=None, options=None):
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.mode == "crash" and self.steps > 5:
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.mode == "raise" and self.steps > 5:
            raise RuntimeError("no coffee left")
        return np.zeros(2, np.float32), float("nan") if self.mode == "NaN" else 1.0, self.steps >= 8, False, {}
"""
SETTINGS = {
    "vec.backend": "Serial", "vec.num_envs": 2, "train.total_timesteps": 512, "train.horizon": 64,
    "train.minibatch_size": 64, "train.num_threads": 1, "train.device": "cpu", "eval.episodes": 2,
}  # fmt: skip


@pytest.mark.all
def test_search_continues_after_failed_trials(tmp_path):
    (tmp_path / "mine.py").write_text(FRAGILE)
    modes = {"env.mode": {"distribution": "choice", "choices": ["fine", "crash", "raise", "NaN"]}}
    result = sweep(
        f"{tmp_path}/mine.py:Fragile", SETTINGS, spaces=modes, only="env.mode", trials=7, seed=3, sweeps=tmp_path
    )
    outcomes = {trial.settings["env.mode"]: (trial.state, trial.reason) for trial in result.trials}
    assert set(outcomes) == {"fine", "crash", "raise", "NaN"}
    assert outcomes["fine"] == ("finished", "")
    assert outcomes["crash"][0] == outcomes["raise"][0] == outcomes["NaN"][0] == "failed"
    assert "its process crashed (SIGSEGV); its stack is in" in outcomes["crash"][1]
    assert re.fullmatch(r"RuntimeError: no coffee left \(its stack is in .*worker-\d\.log\)", outcomes["raise"][1])
    assert "got nan" in outcomes["NaN"][1]
    assert "Segmentation fault" in (result.folder / "logs" / "worker-0.log").read_text()
    assert "RuntimeError: no coffee left" in (result.folder / "report.html").read_text()


def command(place, *flags):
    settings = [f"--{key.replace('_', '-')}={value}" for key, value in TINY.items()]
    spaces = [f"--sweep.{key}.{name}={value}" for key, table in SPACES.items() for name, value in table.items()]
    program = "import sys; from pufferlib.cli import main; sys.exit(main())"
    argv = ["sweep", "squared", f"--sweeps={place}", f"--sweep.only={ONLY}", *settings, *spaces, *flags]
    return subprocess.Popen([sys.executable, "-c", program, *argv], text=True, stdout=-1, stderr=-1)


@pytest.mark.all
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_search_prints_command_and_keeps_trials(tmp_path, number, code):
    process = command(tmp_path, "--train.total-timesteps=100_000_000", "--train.checkpoint-interval=1000000")
    run = tmp_path / "squared" / "runs" / "trial-0000"
    deadline = time.monotonic() + 100
    while not list(run.glob("metrics.jsonl")) or not (run / "metrics.jsonl").read_text():  # until the first update
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == code
    assert (
        "stopped; finished trials are kept, and those in progress; to continue: puffer sweep squared --sweeps="
        in complaint
    )
    assert list((run / "checkpoints").glob("*/policy.safetensors"))  # from which the trial resumes
    assert [trial.state for trial in load_sweep("squared", tmp_path).trials] == ["running"]


@pytest.mark.all
@pytest.mark.timeout(600)
def test_machines_share_study_in_journal(tmp_path):
    journal = f"--sweep.storage={tmp_path}/study.log"
    machines = [command(tmp_path / name, journal, "--sweep.trials=5") for name in ("one", "two")]
    for machine in machines:
        printed, complaint = machine.communicate(timeout=250)
        assert machine.returncode == 0, complaint
        assert "the best is trial" in printed
    trials = load_sweep("squared", tmp_path / "one").trials
    assert len(trials) in (5, 6)  # both may start the last one at the same moment
    assert {trial.state for trial in trials} <= {"finished", "pruned"}
    assert len({str(trial.settings) for trial in trials}) == len(trials)
    runs = [path.name for name in ("one", "two") for path in (tmp_path / name / "squared").glob("runs/*")]
    assert sorted(runs) == [f"trial-{trial.number:04}" for trial in trials]


@pytest.mark.all
def test_env_class_of_caller_is_accepted(tmp_path):
    namespace = {"__name__": "__main__"}
    exec(FRAGILE, namespace)  # as in a notebook
    found = sweep(namespace["Fragile"], SETTINGS, spaces=SPACES, only=ONLY, trials=1, sweeps=tmp_path, name="mine")
    assert [trial.state for trial in found.trials] == ["finished"]
    assert not (found.folder / "study.db-wal").stat().st_size


@pytest.mark.all
def test_metric_is_minimized(tmp_path):
    spaces = {"train.gamma": {"distribution": "uniform", "min": 0.5, "max": 0.9}}
    search = {"spaces": spaces, "only": "train.gamma", "metric": "episode_length", "direction": "minimize"}
    result = sweep("squared", TINY, **search, trials=2, sweeps=tmp_path)
    assert result.best.score == min(trial.score for trial in result.trials)
    assert result.study.direction.name == "MINIMIZE"
    assert (result.folder / "report.html").is_file()


COUNTED = """
import gymnasium, numpy as np

class Counted(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, log):
        with open(log, "a") as file:
            file.write("x")

    def reset(self, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}
"""


@pytest.mark.all
def test_fitting_minibatch_makes_no_further_envs(tmp_path):
    (tmp_path / "mine.py").write_text(COUNTED)
    counts = {}
    for minibatch_size in (0, 64):  # the trainer chooses 0 itself
        log = tmp_path / f"{minibatch_size}.txt"
        settings = {**SETTINGS, "env.log": str(log), "train.minibatch_size": minibatch_size}
        options = {"only": "train.gamma", "trials": 1, "sweeps": tmp_path, "name": log.stem}
        result = sweep(f"{tmp_path}/mine.py:Counted", settings, **options)
        assert [trial.state for trial in result.trials] == ["finished"]
        counts[minibatch_size] = log.stat().st_size
    assert counts[0] == counts[64]
