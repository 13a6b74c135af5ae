"""Tests published by other libraries, run with the adapters of this package in place of the libraries' classes.

Suites that are not part of an installed package are fetched by pip, and skipped if that fails. Gymnasium, TorchRL and
EnvPool publish no tests of vector environments in their packages. The default suite runs their checkers.

The classes for Stable-Baselines3 are at the end. The pytest process that runs its suites loads this module as a plugin.
"""

import functools
import os
import subprocess
import sys
import tarfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
import stable_baselines3.common.vec_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.frameworks.pettingzoo import to_pettingzoo
from pufferlib.frameworks.sb3 import SB3VecEnv

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]


class Suite(NamedTuple):
    """Tests of a package.

    Attributes:
        files: Modules that run, of the folder ``tests`` in the package's sdist.
        differ: Tests that fail because of a difference in ``docs/differences.md``, with this difference.
    """

    package: str
    version: str
    files: tuple[str, ...]
    differ: dict[str, str]


ONE_ROW = "an action without an axis of rows is an error"
SUITES = [
    Suite(
        "stable_baselines3",
        "2.9.2",
        (
            *("vec_envs", "vec_monitor", "vec_normalize", "vec_stacked_obs", "dict_env", "her"),
            *("buffers", "callbacks", "cnn", "n_step_replay", "predict", "run", "spaces", "utils"),
        ),
        {
            "test_vecenv_dict_spaces": "a mixture of floats and integers in one action is an error",
            "test_vecenv_tuple_spaces": "a mixture of floats and integers in one action is an error",
            "test_subproc_start_method": "there is no start method",
            "test_framestack_vecenv": "a step before the first reset is an error",
            "test_replay_buffer_normalization": ONE_ROW,
            "test_device_buffer": ONE_ROW,
            "test_dict_nested": "observations of nested spaces are an error of another type",
            "test_multidim_binary_not_supported": "MultiBinary actions of several axes work",
        },
    ),
    Suite(
        "sb3_contrib",
        "2.9.0",
        ("invalid_actions", "lstm", "dict_env", "identity", "run", "cnn", "deterministic", "utils"),
        {},
    ),
]
PETTINGZOO = ["multiagent", "rware", "snake", "trash_pickup", "moba"]
SUPERSUIT = ["supersuit==3.11.0", "tinyscaler==1.2.8"]
# Without FrozenLake-v1: its infos mix ints and floats, which Gymnasium converts to ints.
GYMNASIUM = ["Acrobot-v1", "Blackjack-v1", "CartPole-v1", "CliffWalking-v1", "MountainCarContinuous-v0", "Pendulum-v1"]


def pip(*arguments):
    """Run pip, or skip the test if it fails."""
    command = [sys.executable, "-m", "pip", *arguments, "--no-deps", "--quiet", "--retries=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"pip {' '.join(arguments)} failed: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def folder(request, tmp_path_factory):
    """Return the folder ``PACKAGE-VERSION`` with the tests of a suite, from its sdist."""
    suite = request.param
    assert version(suite.package) == suite.version, "update the version in SUITES"
    place = tmp_path_factory.mktemp(suite.package)
    pip("download", "--no-binary=:all:", f"--dest={place}", f"{suite.package}=={suite.version}")
    (archive,) = place.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        top = f"{suite.package}-{suite.version}"
        wanted = (f"{top}/tests/", f"{top}/pyproject.toml")
        sdist.extractall(place, [member for member in sdist if member.name.startswith(wanted)], filter="data")
    return place / top


@pytest.mark.parametrize(
    ("folder", "name"),
    [pytest.param(suite, name, id=f"{suite.package}-{name}") for suite in SUITES for name in suite.files],
    indirect=["folder"],
)
def test_suites_of_stable_baselines3_pass(folder, name):
    command = [sys.executable, "-P", "-m", "pytest", "-q", "--tb=short", "-p", __name__, f"tests/test_{name}.py"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("autoreset", [mode.value for mode in AutoresetMode])
@pytest.mark.parametrize("name", GYMNASIUM)
def test_to_gymnasium_matches_sync_vector_env(name, autoreset):
    make = functools.partial(gymnasium.make, name, max_episode_steps=20)
    creator = functools.partial(GymnasiumPufferEnv, env_creator=make)
    mode = {"NextStep": "next_step", "SameStep": "same_step", "Disabled": "disabled"}[autoreset]
    ours = pufferlib.vector.make(creator, num_envs=3, backend="Serial", autoreset=mode)
    envs = [pufferlib.vector.to_gymnasium(ours), SyncVectorEnv([make] * 3, autoreset_mode=AutoresetMode(autoreset))]
    envs[1].action_space.seed(1)
    assert_same(*(env.reset(seed=[1, 2, 3]) for env in envs))
    for _ in range(200):
        actions = envs[1].action_space.sample()
        outcomes = [env.step(actions) for env in envs]
        assert_same(*outcomes)
        ended = outcomes[0][2] | outcomes[0][3]
        if mode == "disabled" and ended.any():
            assert_same(*(env.reset(options={"reset_mask": ended.copy()}) for env in envs))
    for env in envs:
        env.close()


def assert_same(ours, theirs):
    """Compare what two environments return, apart from the dtype of rewards."""
    if len(theirs) == 5:
        theirs = (theirs[0], theirs[1].astype(np.float32), *theirs[2:])
    np.testing.assert_equal(plain(ours), plain(theirs))


def plain(value):
    """Return ``value`` with lists for arrays of objects, which numpy does not compare."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [plain(each) for each in value]
    return value


@pytest.mark.parametrize("name", PETTINGZOO)
def test_pettingzoo_tests_pass(name, monkeypatch):
    pytest.importorskip("pygame", reason="PettingZoo's tests import a game")
    from pettingzoo.utils import parallel_to_aec

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # opens no windows

    def make(render_mode=None):
        return to_pettingzoo(pufferlib.make(name, num_envs=1, render_mode=render_mode))

    with warnings.catch_warnings(action="ignore"):
        from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test

        parallel_api_test(make(), num_cycles=1000)
        parallel_seed_test(make, num_cycles=200)
        api_test(parallel_to_aec(make()), num_cycles=100)
        seed_test(lambda: parallel_to_aec(make()), num_cycles=50)
        render_test(lambda render_mode: parallel_to_aec(make(render_mode)))


@pytest.fixture(scope="module")
def supersuit(tmp_path_factory):
    """Install SuperSuit and return the module."""
    folder = tmp_path_factory.mktemp("supersuit")
    pip("install", f"--target={folder}", *SUPERSUIT)
    sys.path.append(str(folder))
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip("supersuit")


@pytest.mark.parametrize("name", PETTINGZOO)
def test_supersuit_wrappers_pass_pettingzoo_tests(name, supersuit):
    pytest.importorskip("pygame", reason="PettingZoo's tests import a game")
    wrappers = [
        supersuit.agent_indicator_v0,
        supersuit.black_death_v3,
        supersuit.clip_reward_v0,
        supersuit.flatten_v0,
        supersuit.pad_observations_v0,
        lambda env: supersuit.delay_observations_v0(env, 2),
        lambda env: supersuit.dtype_v0(env, np.float32),
        lambda env: supersuit.frame_skip_v0(env, 3),
        lambda env: supersuit.frame_stack_v1(env, 3),
        lambda env: supersuit.max_observation_v0(env, 2),
        lambda env: supersuit.sticky_actions_v0(env, 0.3),
    ]
    with warnings.catch_warnings(action="ignore"):
        from pettingzoo.test import parallel_api_test

        for wrapper in wrappers:
            parallel_api_test(wrapper(to_pettingzoo(pufferlib.make(name, num_envs=1))), num_cycles=100)
        env = supersuit.black_death_v3(to_pettingzoo(pufferlib.make(name, num_envs=1)))
        envs = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(env), 2, base_class="gymnasium")
        envs.reset(seed=1)
        for _ in range(100):
            envs.step(np.zeros((envs.num_envs, *envs.action_space.shape), int))
        envs.close()


# ---- The plugin of the process that runs a suite of Stable-Baselines3 -----------------------------------------------


class DummyVecEnv(SB3VecEnv):
    """Replacement of DummyVecEnv by ``to_sb3``, with the same arguments and the attribute ``envs``."""

    def __init__(self, env_fns, backend="Serial"):
        self.envs = []
        keep = backend == "Serial"
        creators = [functools.partial(GymnasiumPufferEnv, env_creator=self._kept(fn) if keep else fn) for fn in env_fns]
        options = {"num_envs": len(creators), "autoreset": "same_step", "overwork": True}
        super().__init__(pufferlib.vector.make(creators, backend=backend, **options), monitor=False)

    def _kept(self, env_fn):
        def creator():
            self.envs.append(env_fn())
            return self.envs[-1]

        return creator


class SubprocVecEnv(DummyVecEnv):
    """Replacement of SubprocVecEnv by ``to_sb3`` with worker processes."""

    def __init__(self, env_fns, start_method=None):
        super().__init__(env_fns, "Multiprocessing")


def pytest_configure():
    """Replace the classes of Stable-Baselines3."""
    theirs = stable_baselines3.common.vec_env
    ours = {theirs.DummyVecEnv: DummyVecEnv, theirs.SubprocVecEnv: SubprocVecEnv}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "stable_baselines3":
            for attribute, value in list(vars(module).items()):
                if isinstance(value, type) and value in ours:
                    setattr(module, attribute, ours[value])


def pytest_collection_modifyitems(items):
    """Mark the tests in ``differ`` as expected failures."""
    (suite,) = (suite for suite in SUITES if Path.cwd().name == f"{suite.package}-{suite.version}")
    for item in items:
        if item.originalname in suite.differ:
            item.add_marker(pytest.mark.xfail(strict=True, reason=suite.differ[item.originalname]))
