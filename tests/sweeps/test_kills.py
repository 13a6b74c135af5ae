"""kill -9 of a worker and of the whole: no finished trial is lost or trained again, and the search goes on."""

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
from pufferlib.sweeps.result import load_sweep
from tests.trials import ONLY, SPACES, TINY

PROGRAM = """
import pufferlib
options = dict(spaces={spaces}, only="{only}", trials={trials}, workers=2, sweeps="{place}")
pufferlib.sweeps.sweep("squared", {settings}, **options)
"""
LONGER = {**TINY, "train.total_timesteps": 65_536, "train.checkpoint_interval": 20}  # some two seconds


@pytest.fixture
def start():
    """Start a search, which ends with the test at the latest."""
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
    """Settings, score, and moment of the result of each trial that is done."""
    with contextlib.suppress(APIUsageError):
        done = [trial for trial in load_sweep("squared", place).trials if trial.state in ("finished", "pruned")]
        return {each.number: (each.settings, each.score, moment(each.run.summary)) for each in done}
    return {}


def moment(summary):
    return summary.stat().st_mtime_ns if summary.exists() else None


def kill_worker(process, rng):
    """Kill one of its workers that trains; False if there is none at the moment."""
    with contextlib.suppress(psutil.Error):
        workers = [
            each for each in psutil.Process(process.pid).children() if "sweep.worker" in " ".join(each.cmdline())
        ]
        if workers:
            rng.choice(workers).kill()
            return True
    return False


def search_through_kills(start, place, trials, kills, rng):
    """Search, with so many kills at random moments; every other one hits the whole search."""
    process, before = start(place, trials), {}
    deadline = time.monotonic() + 100 + 30 * kills
    for kill in range(kills):
        count = len(before) + 1  # something is finished between two kills, so that the last one comes before the end
        while len(finished(place)) < min(count, trials - 1) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(rng.uniform(0.0, 1.5))
        if kill % 2:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        elif not kill_worker(process, rng):
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
@pytest.mark.timeout(300)
def test_a_killed_worker_and_a_killed_search_lose_nothing(start, tmp_path):
    search_through_kills(start, tmp_path, trials=5, kills=2, rng=random.Random(1))
    check(tmp_path, 5)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_ten_kills_at_random_moments_lose_nothing(start, tmp_path):
    search_through_kills(start, tmp_path, trials=20, kills=10, rng=random.Random(2))
    check(tmp_path, 20)
