"""Tests of environments that run in another virtual environment, without pufferlib in it."""

import contextlib
import gc
import importlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import vector
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.isolated import IsolatedEnv, find_interpreter

NEEDED = ("numpy", "gymnasium", "pettingzoo", "cloudpickle", "farama_notifications", "typing_extensions")

ENTRIES = """
import atexit, os, pathlib, signal, sys, time
import numpy as np
import pufferlib
from pufferlib.errors import APIUsageError

def squared(num_envs=4, **options):
    return pufferlib.make("squared", num_envs=num_envs, **options)

def with_variables(buf):
    env = squared(buf=buf)
    env.metadata = {name: os.environ.get(name) for name in ("TOY_LOG_LEVEL", "TOY_COLOUR")}
    return env

def touching_at_exit(buf, folder):
    env = squared(buf=buf)
    env.metadata = {"pid": os.getpid()}
    atexit.register(pathlib.Path(folder, str(os.getpid())).touch)
    return env

def wrong(buf):
    raise APIUsageError("toy: size must be >= 1, got 0")

class Toy:
    def __new__(cls, buf, trouble):
        env = squared(buf=buf)
        def step(actions, original=env.step):
            if trouble == "raise":
                raise ZeroDivisionError("on purpose")
            if trouble == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if trouble == "sleep":
                time.sleep(600)
            return original(actions)
        env.step, env.metadata = step, {"pid": os.getpid()}
        return env
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """Make a virtual environment with the dependencies of pufferlib and the toy entries, but without pufferlib."""
    folder = tmp_path_factory.mktemp("stacks") / "toy"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for name in NEEDED:
        file = Path(importlib.import_module(name).__file__)
        source = file.parent if file.name == "__init__.py" else file
        for path in (source, *source.parent.glob(f"{source.name}.libs")):
            (site / path.name).symlink_to(path)
    (site / "toy_entries.py").write_text(ENTRIES)
    return folder


def python(stack):
    return stack / "bin" / "python"


@pytest.fixture
def make(stack):
    """Return a function that makes isolated environments, which are closed after the test."""
    made = []

    def make(entry="squared", buf=None, timeout_s=100.0, **options):
        made.append(IsolatedEnv("toy", python(stack), f"toy_entries:{entry}", options, buf, timeout_s))
        return made[-1]

    yield make
    for env in made:
        env.close()


def play(env, steps=50):
    """Play random actions. Return the bytes of all arrays."""
    rng = np.random.default_rng(0)
    bytes_seen = [env.reset(seed=3)[0].tobytes()]
    for _ in range(steps):
        actions = rng.integers(env.single_action_space.n, size=env.num_agents)
        *arrays, _ = env.step(actions)
        bytes_seen += [array.tobytes() for array in (*arrays, env.final_observations, env.masks)]
    return bytes_seen


def test_stack_has_no_pufferlib(stack):
    done = subprocess.run([python(stack), "-I", "-c", "import pufferlib"], capture_output=True, text=True)
    assert "No module named 'pufferlib'" in done.stderr


def test_isolated_env_matches_env_in_this_process(make):
    env = make(num_envs=4)
    assert env.metadata == pufferlib.make("squared", num_envs=4).metadata
    assert play(env) == play(pufferlib.make("squared", num_envs=4))


def test_variables_are_defaults_of_process(stack, monkeypatch):
    monkeypatch.setenv("TOY_COLOUR", "red")
    defaults = {"TOY_LOG_LEVEL": "3", "TOY_COLOUR": "blue"}
    with contextlib.closing(
        IsolatedEnv("toy", python(stack), "toy_entries:with_variables", {}, None, 100.0, defaults)
    ) as env:
        assert env.metadata == {"TOY_LOG_LEVEL": "3", "TOY_COLOUR": "red"}
    assert "TOY_LOG_LEVEL" not in os.environ


@pytest.mark.all
def test_isolated_env_works_in_workers(stack):
    def creator(buf=None, seed=0):
        return IsolatedEnv("toy", python(stack), "toy_entries:squared", {"num_envs": 2}, buf, 100.0)

    rng = np.random.default_rng(0)
    squared = pufferlib.env_creator("squared")
    with (
        vector.make(creator, num_envs=2, num_workers=2, backend="Multiprocessing") as envs,
        vector.make(squared, env_kwargs={"num_envs": 2}, num_envs=2, backend="Serial") as expected,
    ):
        assert np.array_equal(envs.reset(seed=1)[0], expected.reset(seed=1)[0])
        for _ in range(20):
            actions = rng.integers(5, size=4)
            assert np.array_equal(envs.step(actions)[0], expected.step(actions)[0])


def test_render_returns_frame(make):
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().ndim == 3
    assert make().render() is None


def is_running(pid):
    return Path(f"/proc/{pid}").exists()


def test_env_error_has_traceback_and_ends_process(make):
    env = make("Toy", trouble="raise")
    env.reset()
    with pytest.raises(WorkerError, match=r"toy: ZeroDivisionError: on purpose, in step(.|\n)*toy_entries.py"):
        env.step(np.zeros(4, int))
    assert not is_running(env.metadata["pid"])
    with pytest.raises(APIUsageError, match="closed; make another"):
        env.step(np.zeros(4, int))


def test_api_usage_error_keeps_its_class(make):
    with pytest.raises(APIUsageError, match="toy: size must be >= 1, got 0"):
        make("wrong")


def test_killed_process_is_reported_with_signal(make):
    env = make("Toy", trouble="kill")
    env.reset()
    with pytest.raises(WorkerError, match=r"ended with signal SIGKILL, in step"):
        env.step(np.zeros(4, int))


@pytest.mark.all
def test_step_timeout_raises(make):
    env = make("Toy", trouble="sleep", timeout_s=2.0)
    env.reset()
    with pytest.raises(WorkerError, match=r"(?s)toy: one step of .*2 seconds.*toy_entries\.py.* in step"):
        env.step(np.zeros(4, int))
    assert not is_running(env.metadata["pid"])


def test_invalid_actions_raise_before_sending(make):
    env = make()
    with pytest.raises(APIUsageError, match="not reset yet"):
        env.step(np.zeros(4, int))
    env.reset()
    with pytest.raises(APIUsageError, match="action space"):
        env.step(np.full(4, 99))
    env.step(np.zeros(4, int))


def test_close_and_garbage_collection_release_process_and_files(make, stack, tmp_path):
    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    env = make("touching_at_exit", folder=str(tmp_path))
    first = env.metadata["pid"]
    env.close()
    env.close()
    assert not is_running(first)
    options = {"folder": str(tmp_path)}
    unclosed = IsolatedEnv("toy", python(stack), "toy_entries:touching_at_exit", options, None, 100.0)
    second = unclosed.metadata["pid"]
    del unclosed
    gc.collect()
    assert not is_running(second)
    assert {path.name for path in tmp_path.iterdir()} == {str(first), str(second)}, "both exited normally"
    assert set(os.listdir("/proc/self/fd")) == before


def test_find_interpreter_prefers_user_data_folder(monkeypatch, tmp_path, stack):
    assert find_interpreter("no_such_stack") is None
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "pufferlib" / "stacks").mkdir(parents=True)
    (tmp_path / "pufferlib" / "stacks" / "toy").symlink_to(stack)
    assert find_interpreter("toy") == tmp_path / "pufferlib" / "stacks" / "toy" / "bin" / "python"
