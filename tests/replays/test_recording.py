"""Tests of bundles: worker errors save them, ``record`` keeps whole episodes, ``replay`` reproduces the outcome."""

import functools
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.seeding import env_seed
from pufferlib.vector import Bundle, replay
from tests.envs import FunctionEnv, ScriptedPufferEnv
from tests.processes import own_modules
from tests.tiers import as_all

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


class Fragile(FunctionEnv):
    """Environment that fails for action 1 in step ``steps`` of an episode. Episodes have 6 steps."""

    def __init__(self, how="raises", steps=3):
        super().__init__(length=6)
        self.how, self.steps = how, steps

    def step(self, action):
        outcome = super().step(action)
        if self.count == self.steps and action == 1:
            if self.how == "raises":
                raise ValueError("the rotor broke")
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome


def fragile(**options):
    return functools.partial(GymnasiumPufferEnv, env_creator=Fragile, env_kwargs=options)


def run(creator, actions, **options):
    """Step two environments with their actions, until one of them fails or the actions end."""
    with pufferlib.vector.make(creator, num_envs=2, seed=7, **options) as vecenv:
        vecenv.reset()
        for pair in zip(*actions, strict=True):
            vecenv.step(pair)


WORKERS = {"backend": "Multiprocessing", "num_workers": 2, "overwork": True}
ACTIONS = [0, 1] * 4, [0, 0, 0, 1, 0, 1, 1, 0]
LATE = [0] * 9 + [1]  # fails in the third step of the second episode, after the step that resets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder whose subfolder "failures" gets the bundles of failures."""
    monkeypatch.setenv("PUFFER_REPLAYS", str(tmp_path / "failures"))
    return tmp_path


def test_folder_does_not_follow_the_working_directory(folder, monkeypatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    with pufferlib.vector.make(fragile(), num_envs=2, backend="Serial", seed=7, record="all") as vecenv:
        vecenv.reset()
        monkeypatch.chdir("elsewhere")  # as an environment may do
        vecenv.step([0, 0])
    assert len(list((folder / "all").iterdir())) == 2


@pytest.mark.parametrize(("how", "error"), [("raises", "ValueError: the rotor broke"), ("dies", "signal SIGKILL")])
def test_recorded_failure_is_replayed(folder, how, error):
    with pytest.raises(WorkerError) as raised:
        run(fragile(how=how), [[0] * 10, LATE], record=folder / "all", **WORKERS)
    (path,) = raised.value.bundles
    assert raised.value.__notes__[-1] == f"Step it again: puffer replay {path}"
    bundle = Bundle.load(path)
    assert (bundle.index, bundle.seed, bundle.phase, bundle.ends) == (1, env_seed(7, 1), "step", (6,))
    assert bundle.is_complete
    assert error in bundle.error
    assert bundle.actions.ravel().tolist() == LATE
    outcome = replay(bundle)
    assert outcome.is_same
    assert outcome.steps == 9
    assert error in outcome.text
    assert [file.name for file in (folder / "failures").iterdir()] == [
        path.name
    ]  # the bundle of the replay was removed


def play_late(creator, **options):
    """Step until environment 1 fails in its second episode, with batches in any order."""
    with pufferlib.vector.make(creator, num_envs=2, seed=7, **{**WORKERS, **options}) as vecenv:
        assert len(vecenv.get_attr("how")) == 2  # changes nothing
        vecenv.async_reset()
        steps = [0, 0]
        while True:
            *_, agent_ids, _ = vecenv.recv()
            vecenv.send([LATE[steps[env]] if env else 0 for env in agent_ids])
            for env in agent_ids:
                steps[env] += 1


@pytest.mark.parametrize(
    ("how", "options"),
    [
        as_all(("raises", {"num_workers": 1})),
        ("raises", {"num_workers": 2}),
        as_all(("raises", {"num_workers": 2, "batch_size": 1})),
        as_all(("dies", {"num_workers": 1})),
        as_all(("dies", {"num_workers": 2})),
        ("dies", {"num_workers": 2, "batch_size": 1}),
    ],
)
def test_unrecorded_failure_is_replayed(how, options, folder):
    with pytest.raises(WorkerError) as raised:
        play_late(fragile(how=how), **options)
    bundle = next(each for each in map(Bundle.load, raised.value.bundles) if each.index == 1)
    assert bundle.is_complete
    assert bundle.actions.ravel().tolist() == LATE
    assert replay(bundle).is_same


class FragileWithoutActions(FunctionEnv):
    def __init__(self):
        super().__init__(action_space=gymnasium.spaces.Box(-1, 1, (0,), np.float32))

    def step(self, action):
        if self.count == 2:
            raise ValueError("the rotor broke")
        return super().step(action)


def test_failure_without_action_numbers_is_replayed(folder):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FragileWithoutActions)
    with pytest.raises(WorkerError) as raised:
        run(creator, np.zeros((2, 3, 0)), **WORKERS)
    bundle = Bundle.load(raised.value.bundles[0])
    assert bundle.is_complete
    assert replay(bundle).is_same


def test_worker_without_action_numbers_is_replaced():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=FragileWithoutActions)
    with pufferlib.vector.make(creator, num_envs=2, seed=7, on_crash="restart", **WORKERS) as vecenv:
        vecenv.reset()
        for _ in range(4):
            vecenv.step(np.zeros((2, 0)))
        assert vecenv.worker_restarts == 2


def play_after(change):
    with pufferlib.vector.make(fragile(), num_envs=2, seed=7, **WORKERS) as vecenv:
        vecenv.reset()
        change(vecenv)
        for action in (0, 0, 1):
            vecenv.step([0, action])


@pytest.mark.parametrize(
    "change",
    [lambda vecenv: vecenv.set_attr("steps", 3), lambda vecenv: vecenv.reset(env_ids=[0]), None],
    ids=["attribute", "partial reset", "limit"],
)
def test_bundle_is_incomplete_after_unrecorded_change(change, folder, monkeypatch):
    if change is None:
        monkeypatch.setattr("pufferlib.vector._action_log.LIMIT_BYTES", 10)
    with pytest.raises(WorkerError) as raised:
        play_after(change or (lambda vecenv: None))
    bundle = Bundle.load(raised.value.bundles[0])
    assert (bundle.index, bundle.is_complete, bundle.actions.tolist()) == (1, False, [[1]])


def test_bundle_finds_modules_of_recording(folder, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "envs_of_mine.py").write_text(
        "from tests.envs import ScriptedPufferEnv\nclass Mine(ScriptedPufferEnv): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "mine")
    creator = pufferlib.registry.load_object("test", "envs_of_mine:Mine")
    run(creator, [[0], [0]], record=tmp_path, backend="Serial")
    code = (
        f"from pufferlib.vector import Bundle; print(Bundle.load('{tmp_path}/env0-seed{env_seed(7, 0)}.npz').creator())"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert "envs_of_mine.Mine" in done.stdout, done.stderr


def test_env_in_file_is_replayed_in_worker_of_other_process(tmp_path):
    file = tmp_path / "envs_in_file.py"
    file.write_text("from tests.envs import FunctionEnv\nclass Mine(FunctionEnv): pass\n")
    creator = pufferlib.env_creator(f"{file}:Mine")
    run(creator, [[0], [0]], record=tmp_path, backend="Serial")
    bundle = tmp_path / f"env0-seed{env_seed(7, 0)}.npz"
    code = f"from pufferlib.vector import Bundle, replay; print(replay(Bundle.load({str(bundle)!r})).text)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd="/", env=own_modules(), check=False
    )
    assert done.stdout.startswith("same outcome after 1 of 1 steps"), done.stdout + done.stderr


def test_failure_after_unseeded_reset_keeps_last_actions(folder):
    def run_again(creator, actions, **options):
        with pufferlib.vector.make(creator, num_envs=2, seed=7, **options) as vecenv:
            vecenv.reset()
            vecenv.step([0, 0])
            vecenv.reset()
            for pair in zip(*actions, strict=True):
                vecenv.step(pair)

    with pytest.raises(WorkerError) as raised:
        run_again(fragile(), [[0, 0, 0], [0, 0, 1]], **WORKERS)
    bundle = Bundle.load(raised.value.bundles[0])
    assert (bundle.index, bundle.seed, bundle.is_complete) == (1, env_seed(7, 1), False)
    assert bundle.actions.tolist() == [[1]]
    outcome = replay(bundle)
    assert not outcome.is_same
    assert (
        "different outcome after 1 of 1 steps: no error, return 1; recorded: ValueError: the rotor broke"
        in outcome.text
    )
    assert "vector.make(..., record=FOLDER) records all" in outcome.text


@pytest.mark.parametrize("phase", ["build", "reset"])
def test_failure_before_first_step_is_replayed(folder, phase):
    creator = functools.partial(ScriptedPufferEnv, **{f"on_{phase}": fail})
    with pytest.raises(WorkerError) as raised:
        run(creator, [[0], [0]], **WORKERS)
    bundle = Bundle.load(raised.value.bundles[0])
    assert (bundle.phase, bundle.is_complete, len(bundle.actions)) == (phase, True, 0)
    assert replay(bundle).text == f"same outcome in {phase}: RuntimeError: no fuel"


def fail():
    raise RuntimeError("no fuel")


def test_env_that_exhausts_restarts_leaves_bundle(folder):
    creator = functools.partial(ScriptedPufferEnv, on_step=fail)
    with pytest.raises(WorkerError, match="failed 3 times") as raised:
        run(creator, [[0] * 9, [0] * 9], backend="Serial", on_crash="restart")
    (path,) = raised.value.bundles
    assert Bundle.load(path).error == "RuntimeError: no fuel"


@pytest.mark.parametrize("options", [WORKERS, {"backend": "Serial"}], ids=["workers", "serial"])
def test_record_saves_episodes_of_every_env(tmp_path, options):
    run(fragile(steps=None), ACTIONS, record=tmp_path, **options)
    bundles = [Bundle.load(tmp_path / f"env{index}-seed{env_seed(7, index)}.npz") for index in range(2)]
    for bundle, actions in zip(bundles, ACTIONS, strict=True):
        assert bundle.actions.ravel().tolist() == actions
        assert bundle.ends == (6,)
        assert "Fragile, env_kwargs={'steps': None}" in bundle.env
        assert replay(bundle).text == "same outcome after 8 of 8 steps: no error, return 1"
    other = replay(replace(bundles[0], seed=8))
    assert not other.is_same
    assert other.text.endswith("recorded: other observations or rewards")


def test_failure_in_serial_saves_bundles_of_all_envs(tmp_path):
    with pytest.raises(ValueError, match="the rotor broke"):
        run(fragile(), [[0, 0, 0], [0, 0, 1]], record=tmp_path, backend="Serial")
    whole, failed = (Bundle.load(tmp_path / f"env{index}-seed{env_seed(7, index)}.npz") for index in range(2))
    assert (len(whole.actions), whole.error) == (2, "")
    assert (len(failed.actions), failed.error) == (3, "ValueError: the rotor broke")
    assert replay(whole).is_same
    assert replay(failed).is_same


def test_new_seed_starts_new_bundle(tmp_path):
    creator = functools.partial(pufferlib.env_creator("squared"), num_envs=2)
    with pufferlib.vector.make(creator, num_envs=4, batch_size=2, seed=3, backend="Serial", record=tmp_path) as vecenv:
        vecenv.action_space.seed(0)
        for seed in (None, 5):
            vecenv.async_reset(seed)
            for _ in range(40):
                vecenv.recv()
                vecenv.send(vecenv.action_space.sample())
        vecenv.async_reset()
        for _ in range(2):
            vecenv.recv()
            vecenv.send(vecenv.action_space.sample())
    for seed, steps, resets in ((3, 20, ()), (5, 21, (20,))):
        bundle = Bundle.load(tmp_path / f"env0-seed{seed}.npz")
        assert bundle.actions.shape == (steps, 2)
        assert bundle.resets == resets
        assert replay(bundle).is_same
    assert len(list(tmp_path.iterdir())) == 8


def test_seeds_of_any_form_are_recorded(tmp_path):
    creator = functools.partial(pufferlib.env_creator("squared"), num_envs=1)
    with pufferlib.vector.make(creator, num_envs=2, backend="Serial", record=tmp_path) as vecenv:
        vecenv.reset(seed=np.int64(3))
        for seed in (1.5, [1, 2, 3]):
            with pytest.raises(APIUsageError, match="seed"):
                vecenv.reset(seed=seed)
        vecenv.reset(seed=np.array([1, 2]))
        vecenv.step([1, 1])
        vecenv.reset(seed=[None, 4])
        vecenv.step([1, 1])
    assert replay(Bundle.load(tmp_path / "env1-seed2.npz")).is_same
    assert not Bundle.load(tmp_path / "env1-seed4.npz").is_complete, "the other environment has no seed"


def test_seeds_of_the_games_of_a_native_env_leave_its_bundle_incomplete(tmp_path):
    with pufferlib.vector.make(pufferlib.env_creator("squared"), env_kwargs={"num_envs": 2}, record=tmp_path) as env:
        env.reset(seed=[1, 2])
        env.step([1, 1])
    (path,) = tmp_path.iterdir()
    assert not Bundle.load(path).is_complete


def test_native_env_is_recorded_as_one_bundle(tmp_path):
    with pufferlib.vector.make(pufferlib.env_creator("squared"), env_kwargs={"num_envs": 8}, record=tmp_path) as env:
        env.reset()
        for step in range(50):
            env.step(np.full(8, step % 4))
            env.call("save_state")  # changes nothing
    bundle = Bundle.load(tmp_path / "env0-seed0.npz")
    assert bundle.is_complete
    assert bundle.actions.shape == (50, 8)
    assert bundle.env == "pufferlib.ocean.env.OceanEnv('squared', num_envs=8)"
    assert replay(bundle).is_same


def test_recording_is_accepted_as_vector_env(tmp_path):
    with pufferlib.vector.make(fragile(), num_envs=2, backend="Serial", record=tmp_path) as vecenv:
        assert isinstance(vecenv, pufferlib.vector.VectorEnv)
        envs = pufferlib.vector.to_gymnasium(vecenv)
        envs.reset(seed=5)
        envs.step(np.array([0, 1]))
        assert vecenv.actions_of(1).tolist() == [[1]]
        vecenv.reset(seed=6)
        vecenv.call("has_wrapper_attr", "count")  # the call may have changed the environment
        vecenv.step([0, 1])
    for seed, is_complete in ((5, True), (6, False)):
        bundle = Bundle.load(tmp_path / f"env1-seed{env_seed(seed, 1)}.npz")
        assert (len(bundle.actions), bundle.is_complete) == (1, is_complete)


def test_invalid_actions_are_not_recorded(tmp_path):
    with pufferlib.vector.make(fragile(), backend="Serial", record=tmp_path) as vecenv:
        vecenv.reset()
        with pytest.raises(APIUsageError, match="must be in the action space"):
            vecenv.step([7])
        vecenv.step([0])
        assert vecenv.actions_of(0).tolist() == [[0]]
        assert vecenv.num_envs == 1  # other attributes come from the vector environment


def test_replay_needs_creator_that_cannot_be_pickled(tmp_path):
    lock = threading.Lock()

    def locked(buf=None):
        with lock:
            return ScriptedPufferEnv(buf=buf)

    with pufferlib.vector.make(locked, backend="Serial", record=tmp_path) as vecenv:
        vecenv.reset()
        vecenv.step([0])
    bundle = Bundle.load(tmp_path / "env0-seed0.npz")
    with pytest.raises(APIUsageError, match=r"could not be pickled, .*; name the environment"):
        replay(bundle)
    assert replay(bundle, ScriptedPufferEnv).is_same


def test_load_of_other_file_raises(tmp_path):
    path = tmp_path / "other.npz"
    for content in (b"PK\x03\x04 not a zip", b"text", b""):
        path.write_bytes(content)
        with pytest.raises(APIUsageError, match=r"other\.npz must be a bundle of this version of pufferlib"):
            Bundle.load(path)


def test_at_most_100_failure_bundles_are_kept(folder, monkeypatch):
    kept = folder / "failures"
    kept.mkdir()
    for index in range(120):
        (kept / f"{index}.npz").touch()
        os.utime(kept / f"{index}.npz", (index, index))
    with pytest.raises(WorkerError) as raised:
        run(functools.partial(ScriptedPufferEnv, on_reset=fail), [[0], [0]], **WORKERS)
    assert len(list(kept.iterdir())) == 100
    assert raised.value.bundles[0].exists()


def test_unwritable_disk_does_not_hide_error(folder, monkeypatch):
    (folder / "failures").touch()  # a file instead of a folder
    with pytest.raises(WorkerError, match="no fuel") as raised:
        run(functools.partial(ScriptedPufferEnv, on_reset=fail), [[0], [0]], **WORKERS)
    assert raised.value.bundles == ()
