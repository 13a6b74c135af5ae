"""Tests that child processes do not import files of the user that have the names of modules."""

import subprocess
import sys

import pytest

from pufferlib.machine.children import python_code, python_module
from pufferlib.sweeps.workers import TrialProcess, stop_all

STRAY = "import sys; print('stray', __name__, file=sys.stderr); sys.exit(3)"


@pytest.fixture
def strays(tmp_path, monkeypatch):
    """Enter a folder with files that have the names of modules and fail when imported."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("signal", "random", "types", "copy", "json", "runpy", "logging", "gymnasium"):
        (folder / f"{name}.py").write_text(STRAY)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return folder


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_child_inherits_sys_path_and_gets_arguments(strays, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, "/of/the/parent"])
    code = "import os, random; print(sys.argv[1:], sys.path[-1], 'PYTHONSAFEPATH' in os.environ)"
    assert run(python_code(code, 1, "two")) == "['1', 'two'] /of/the/parent False\n"


def test_module_runs_as_main(strays, tmp_path, monkeypatch):
    (tmp_path / "child_of_mine.py").write_text("import random, sys; print(__name__, sys.argv[1:])")
    monkeypatch.syspath_prepend(tmp_path)
    assert run(python_module("child_of_mine", "x")) == "__main__ ['x']\n"


def test_workers_do_not_import_from_current_folder(strays, tmp_path):
    script = tmp_path / "main.py"
    script.write_text(
        "import os, sys\n"
        "import gymnasium, pufferlib.vector\n"
        "from pufferlib.emulation import GymnasiumPufferEnv\n"
        "def make(buf=None, seed=0):\n"
        "    import random, signal\n"  # in the worker
        "    assert 'PYTHONSAFEPATH' not in os.environ\n"
        "    return GymnasiumPufferEnv(gymnasium.make('CartPole-v1'), buf=buf, seed=seed)\n"
        "with pufferlib.vector.make(make, num_envs=1, num_workers=1, backend='Multiprocessing') as envs:\n"
        "    envs.reset()\n"
        "    envs.step(envs.action_space.sample())\n"
        "print('played')\n"
    )
    assert run([sys.executable, script]) == "played\n"


def test_trials_do_not_import_from_current_folder(strays, tmp_path):
    log = tmp_path / "trial.log"
    process = TrialProcess([0], b"no message", log)
    assert process.receive() is None  # the process has ended
    stop_all([process])
    assert "sweep" in log.read_text()  # the module of trials was imported, and could not read the message
    assert "stray" not in log.read_text()
