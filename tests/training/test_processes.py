"""Tests of distributed training with one process per rank, including killed processes and signals."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
import torch
from torch.nn.utils import parameters_to_vector

import pufferlib
from pufferlib.errors import PufferError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.registry.outside import REGISTERED
from pufferlib.runs import checkpoint
from pufferlib.runs.folder import Run
from pufferlib.training.callbacks import Callback
from pufferlib.training.distributed.launch import open_ranks
from pufferlib.training.distributed.local import join
from pufferlib.training.distributed.place import Place
from pufferlib.training.distributed.ranks import RankLostError
from pufferlib.training.trainer import Trainer
from tests.tiny_runs import TINY, only_run
from tests.training.ranks import AGENTS, Patchy, make_config, train_as_one

TIMEOUT_S = 100
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Fragile(Patchy):
    """Environment that fails in every rank but the first, after about three updates."""

    def step(self, actions):
        if self.age == 50 and os.environ.get("RANK", "0") != "0":
            raise ValueError("boom")
        return super().step(actions)


class RankMarks(Callback):
    """Callback that makes a file for each rank whose environments it wraps."""

    every_rank = True

    def __init__(self, folder):
        self.folder = folder

    def wrap_envs(self, vecenv, policy):
        (self.folder / f"rank {os.environ.get('RANK', '0')}").touch()
        return vecenv


@pytest.fixture
def new_processes():
    """Return a function that lists child processes started since the beginning of the test."""
    before = psutil.Process().children()
    return lambda: [child for child in psutil.Process().children() if child not in before]


@pytest.fixture
def config(monkeypatch):
    """Return a function that registers an environment and makes settings for two processes."""

    def make(env, steps):
        monkeypatch.setitem(REGISTERED, "breakout_of_ranks", None)  # monkeypatch removes the name after the test
        pufferlib.register("breakout_of_ranks", env)
        settings = {"train.processes": 2, "train.total_timesteps": steps}
        return make_config(settings, AGENTS, "breakout_of_ranks")

    return make


def weights(trainer):
    return parameters_to_vector(trainer.policy.parameters()).detach()


def listening_addresses():
    """Return the addresses at which this process accepts connections."""
    return {each.laddr.ip for each in psutil.Process().net_connections() if each.status == psutil.CONN_LISTEN}


def test_two_processes_match_one_process_with_twice_the_envs(config, new_processes, tmp_path):
    cores = usable_cpus()
    settings, callbacks = config(Patchy, 600), [RankMarks(tmp_path)]
    with (
        open_ranks(settings, tmp_path, callbacks=callbacks) as ranks,
        contextlib.closing(Trainer(settings, tmp_path, callbacks=callbacks, ranks=ranks)) as mine,
    ):
        assert (ranks.rank, ranks.size) == (0, 2)
        assert listening_addresses() == {"127.0.0.1"}
        assert usable_cpus() == max(1, cores // 2)
        mine.train()
    assert usable_cpus() == cores
    assert {file.name for file in tmp_path.glob("rank *")} == {"rank 0", "rank 1"}
    whole, _ = train_as_one(tmp_path, {"train.total_timesteps": 600}, mine.updates, settings.env_name)
    assert mine.updates == whole.updates > 3
    assert mine.agent_steps == whole.agent_steps >= 600
    torch.testing.assert_close(weights(mine), weights(whole), rtol=0, atol=1e-6)
    assert not new_processes()


@pytest.mark.all
def test_exception_in_one_process_stops_all_and_saves(config, new_processes, tmp_path):
    settings = config(Fragile, 10**6)
    match = r"train: rank 1 of 2 ended: ValueError: boom; a checkpoint of update 3 was saved$"
    with (
        pytest.raises(RankLostError, match=match),
        open_ranks(settings, tmp_path) as ranks,
        contextlib.closing(Trainer(settings, tmp_path, ranks=ranks)) as trainer,
    ):
        trainer.train()
    assert Run.at(tmp_path).about().updates == trainer.updates == 3
    assert not new_processes()


def test_missing_rank_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    match = (
        f"3 ranks must meet at 127.0.0.1:{port}, 1 came within 0.3 s, and ranks 1, 2 did not; start them with the same "
        "MASTER_ADDR, MASTER_PORT and WORLD_SIZE, or wait longer by --train.processes-timeout"
    )
    with pytest.raises(PufferError, match=re.escape(match)):
        join(Place(0, 3, 0, 3, "127.0.0.1", port), 0.3)
    match = r"rank 0 must answer at 127.0.0.1:1 .*, rank 2 of 3 waited 0.3 s for it \(.*refused\); start rank 0 there"
    with pytest.raises(PufferError, match=match):
        join(Place(2, 3, 2, 3, "127.0.0.1", 1), 0.3)


def run_two(tmp_path, *flags, launcher=()):
    command = [sys.executable, *launcher, "-m", "pufferlib.training", "squared", *TINY, *flags]
    return subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    )


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["first", "second"])
def test_killed_process_stops_all_and_saves(victim, tmp_path):
    with run_two(tmp_path, "--train.processes=2", "--train.total-timesteps=1e9") as training:
        (other,) = after_some_updates(training, tmp_path)
        os.kill(training.pid if victim == "first" else other.pid, signal.SIGKILL)
        text, _ = training.communicate(timeout=TIMEOUT_S)
        psutil.wait_procs([other], TIMEOUT_S)
        assert not other.is_running()
    run = Run.at(only_run(tmp_path))
    assert run.about().updates >= 5
    if victim == "first":
        assert training.returncode == -signal.SIGKILL
    else:
        assert training.returncode == 1
        assert f"error: train: rank 1 of 2 (process {other.pid}) was ended by SIGKILL; a checkpoint of update" in text
        assert f"stopped; the checkpoint is {run.checkpoint.relative_to(tmp_path)}; to resume: puffer train" in text


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", list(STOPPED))
def test_signal_to_one_process_stops_all_and_run_is_resumed(number, tmp_path):
    with run_two(tmp_path, "--train.processes=2", "--train.total-timesteps=1e9") as training:
        (other,) = after_some_updates(training, tmp_path)
        training.send_signal(number)
        text, _ = training.communicate(timeout=TIMEOUT_S)
        assert training.returncode == STOPPED[number], text
        assert not other.is_running()
    if number == signal.SIGTERM:
        resume = [sys.executable, "-m", "pufferlib.training", "--resume", only_run(tmp_path)]
        for processes, episodes in (2, "episodes continue where they were saved"), (1, "new episodes start"):
            flags = [f"--train.processes={processes}", f"--stop.seconds=0.00{processes}"]
            done = subprocess.run([*resume, *flags], capture_output=True, text=True, timeout=TIMEOUT_S)
            assert episodes in done.stdout, done.stderr


def after_some_updates(training, folder):
    """Wait for five lines of metrics. Return the child processes of the training."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and training.poll() is None:
        files = list(folder.glob("runs/*/metrics.jsonl"))
        if files and files[0].read_text().count("\n") >= 5:
            break
        time.sleep(0.05)
    assert training.poll() is None, training.stdout.read()
    return psutil.Process(training.pid).children()


@pytest.mark.all
@pytest.mark.timeout(600)
def test_torchrun_starts_same_training(tmp_path):
    launcher = (
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=localhost:0",
    )
    saved = []
    for name, start, flags in ("torchrun", launcher, ()), ("puffer", (), ("--train.processes=2",)):
        (tmp_path / name).mkdir()
        with run_two(tmp_path / name, *flags, launcher=start) as training:
            text, _ = training.communicate(timeout=TIMEOUT_S)
        assert training.returncode == 0, text
        assert text.count("files of the run: runs") == 1
        saved.append(Run.at(only_run(tmp_path / name)))
    first, second = (checkpoint.read_policy(run.checkpoint) for run in saved)
    assert all(torch.equal(weights, second[name]) for name, weights in first.items())
    assert saved[0].settings().train == saved[1].settings().train
    assert saved[0].settings().train.processes == 2
