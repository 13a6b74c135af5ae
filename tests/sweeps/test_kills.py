"""Searches whose processes are killed. No finished trial is lost or repeated, and the search continues."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.sweeps import load_sweep
from tests.trials import ONLY, SPACES, TINY

PROGRAM = """
import pufferlib
options = dict(spaces={spaces}, only="{only}", trials={trials}, workers=2, sweeps="{place}")
pufferlib.sweeps.sweep("squared", {settings}, **options)
"""
LONGER = {**TINY, "train.total_timesteps": 65_536, "train.checkpoint_interval": 20}  # about two seconds


@pytest.fixture
def start():
    """Return a function that starts a search in a process. The fixture kills it at the end of the test."""
    processes = []

    def search(place, trials):
        program = PROGRAM.format(settings=LONGER, spaces=SPACES, only=ONLY, trials=trials, place=place)
        processes.append(subprocess.Popen([sys.executable, "-W", "error", "-c", program], start_new_session=True))
        return processes[-1]

    yield search
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def finished(place):
    """Return settings, score and time of the result of each finished trial."""
    with contextlib.suppress(APIUsageError):
        done = [trial for trial in load_sweep("squared", place).trials if trial.state in ("finished", "pruned")]
        return {each.number: (each.settings, each.score, time_of(each.run.summary)) for each in done}
    return {}


def time_of(summary):
    return summary.stat().st_mtime_ns if summary.exists() else None


def kill_worker(process, rng):
    """Kill a random worker of the search. Return False if it has none."""
    with contextlib.suppress(psutil.Error):
        workers = [
            each for each in psutil.Process(process.pid).children() if "sweeps.workers" in " ".join(each.cmdline())
        ]
        if workers:
            rng.choice(workers).kill()
            return True
    return False


def search_through_kills(start, place, trials, kills, rng):
    """Run a search and kill it at random times: a worker and the whole search in turn."""
    process, before = start(place, trials), {}
    deadline = time.monotonic() + 100 + 30 * kills
    for kill in range(kills):
        count = len(before) + 1  # a trial finishes between two kills
        while len(finished(place)) < min(count, trials - 1) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(rng.uniform(0.0, 1.5))
        if kill % 2:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        elif not kill_worker(process, rng):
            assert len(finished(place)) == trials  # only a finished search has no workers
            continue
        now = finished(place)
        assert before.items() <= now.items()
        before = now
        if kill % 2:
            process = start(place, trials)
    assert process.wait(timeout=max(60.0, deadline - time.monotonic())) == 0
    assert before.items() <= finished(place).items()


def check(place, trials):
    found = load_sweep("squared", place)
    done = [trial for trial in found.trials if trial.state != "interrupted"]
    assert [trial.state for trial in done] == [trial.state for trial in done if trial.state in ("finished", "pruned")]
    assert len(done) == trials
    assert len({str(trial.settings) for trial in done}) == trials
    for trial in done:
        assert trial.run.config.exists()
        assert trial.run.summary.exists() == (trial.state == "finished")


@pytest.mark.all
@pytest.mark.timeout(600)
def test_kills_lose_no_trials(start, tmp_path):
    search_through_kills(start, tmp_path, trials=3, kills=2, rng=random.Random(1))
    check(tmp_path, 3)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_ten_kills_lose_no_trials(start, tmp_path):
    search_through_kills(start, tmp_path, trials=20, kills=10, rng=random.Random(2))
    check(tmp_path, 20)
