"""Trials that crash, raise or come to NaN; a search that is stopped; a database that somebody holds."""

import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

import pufferlib
from pufferlib.errors import APIUsageError
from pufferlib.sweeps import storage
from pufferlib.sweeps.result import load_sweep
from tests.trials import ONLY, SPACES, TINY

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
def test_a_search_goes_on_after_trials_that_crash_raise_or_come_to_nan(tmp_path):
    (tmp_path / "mine.py").write_text(FRAGILE)
    modes = {"env.mode": {"distribution": "choice", "choices": ["fine", "crash", "raise", "NaN"]}}
    result = pufferlib.sweeps.sweep(
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
def test_a_stopped_search_says_how_to_go_on_and_keeps_its_trials(tmp_path, number, code):
    process = command(tmp_path, "--train.total-timesteps=100_000_000", "--train.checkpoint-interval=1000000")
    run = tmp_path / "squared" / "runs" / "trial-0000"
    deadline = time.monotonic() + 100
    while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == code
    assert (
        "stopped; finished trials are kept, and those in progress; to go on: puffer sweep squared --sweeps="
        in complaint
    )
    assert list((run / "checkpoints").glob("*/policy.safetensors"))  # from which it goes on
    assert [trial.state for trial in load_sweep("squared", tmp_path).trials] == ["running"]


@pytest.mark.all
@pytest.mark.timeout(300)
def test_two_machines_share_a_study_in_a_journal(tmp_path):
    journal = f"--sweep.storage={tmp_path}/study.log"
    machines = [command(tmp_path / name, journal, "--sweep.trials=5") for name in ("one", "two")]
    for machine in machines:
        printed, complaint = machine.communicate(timeout=250)
        assert machine.returncode == 0, complaint
        assert "the best is trial" in printed
    trials = load_sweep("squared", tmp_path / "one").trials
    assert len(trials) in (5, 6)  # both may begin the last one in the same moment
    assert {trial.state for trial in trials} <= {"finished", "pruned"}
    assert len({str(trial.settings) for trial in trials}) == len(trials)
    runs = [path.name for name in ("one", "two") for path in (tmp_path / name / "squared").glob("runs/*")]
    assert sorted(runs) == [f"trial-{trial.number:04}" for trial in trials]


def test_a_database_that_is_locked_for_long_is_named(done, monkeypatch):
    monkeypatch.setattr(storage, "LOCKED_S", 0.1)
    holder = sqlite3.connect(done.folder / "study.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(APIUsageError, match=r"study.db: the study cannot be used \(database is locked\); another"):
            pufferlib.sweeps.sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=9, sweeps=done.folder.parent)
    finally:
        holder.close()


@pytest.mark.all
def test_an_environment_that_only_the_caller_has_can_be_searched(tmp_path):
    namespace = {"__name__": "__main__"}
    exec(FRAGILE, namespace)  # as in a notebook
    found = pufferlib.sweeps.sweep(
        namespace["Fragile"], SETTINGS, spaces=SPACES, only=ONLY, trials=1, sweeps=tmp_path, name="mine"
    )
    assert [trial.state for trial in found.trials] == ["finished"]
    assert not (found.folder / "study.db-wal").stat().st_size
