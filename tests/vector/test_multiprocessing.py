"""Multiprocessing: how workers start, fail and stop, and what is sent to them."""

import contextlib
import copy
import enum
import functools
import gc
import importlib
import importlib.util
import multiprocessing
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import warnings
from importlib.util import spec_from_file_location
from multiprocessing import forkserver, reduction
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec as GymnasiumSpec

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, BindingMissing, WorkerError
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.registry.creators import creator_of, keyword_kinds
from pufferlib.seeding import env_seed
from pufferlib.vector.multiprocessing.process import forget_server
from pufferlib.vector.multiprocessing.workers import WorkerProcesses
from pufferlib.vector.specs import EnvSpec
from tests.envs import SamplePufferEnv, ScriptedPufferEnv
from tests.tiers import as_all, once

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


def make(creator, num_envs=2, num_workers=2, **kwargs):
    return pufferlib.vector.make(
        creator, num_envs=num_envs, num_workers=num_workers, backend="Multiprocessing", overwork=True, **kwargs
    )


def faulty(timeout_s=120.0, **kwargs):
    """Make two environments in two workers. The second one gets ``kwargs``."""
    return make([ScriptedPufferEnv, ScriptedPufferEnv], env_kwargs=[{}, kwargs], seed=5, timeout_s=timeout_s)


def run_until_failure(**kwargs):
    vecenv = faulty(**kwargs)
    vecenv.reset()
    vecenv.step([1, 3])


def test_driver_env_describes_the_environments():
    with make(SamplePufferEnv) as vecenv:
        driver = vecenv.driver_env
        assert driver.num_agents == 2
        assert driver.observation_space.shape == (2, 1)
        assert driver.action_space.shape == (2,)
        assert driver.emulated is False
        assert driver.action_mask is None
        assert driver.autoreset == vecenv.autoreset == "same_step"
        assert (vecenv.num_envs, vecenv.num_agents, vecenv.agents_per_batch) == (2, 4, 4)


class Masked(SamplePufferEnv):
    """Environment whose observation is only the mask of legal actions."""

    action_mask = slice(0, 2)

    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=0, high=1, shape=(2,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.num_agents = 2
        pufferlib.PufferEnv.__init__(self, buf)


def test_driver_env_has_action_mask():
    with make(Masked) as vecenv:
        assert vecenv.driver_env.action_mask == slice(0, 2)


def test_driver_env_of_emulated_environments_has_dtypes_and_metadata():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    with make(creator) as vecenv:
        ours = creator()
        assert vecenv.driver_env.emulated == vecenv.emulated == ours.emulated
        assert vecenv.driver_env.obs_dtype == ours.obs_dtype
        assert vecenv.driver_env.metadata["render_fps"] == 50
        assert vecenv.autoreset == "next_step"


def test_each_environment_is_built_once(tmp_path):
    def creator(buf=None, seed=0):
        (tmp_path / f"{seed}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return ScriptedPufferEnv(buf=buf)

    make(creator, num_envs=4, seed=9).close()
    built = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    assert sorted(built) == sorted(env_seed(9, index) for index in range(4))


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_close_closes_every_environment_once(backend, tmp_path):
    def on_close():
        (tmp_path / str(time.monotonic_ns())).touch()

    vecenv = pufferlib.vector.make(ScriptedPufferEnv, env_kwargs={"on_close": on_close}, num_envs=3, backend=backend)
    vecenv.reset()
    vecenv.close()
    vecenv.close()
    assert len(list(tmp_path.iterdir())) == 3


def test_infos_arrive_in_the_order_of_the_environments():
    def speak(name):
        return lambda: [{"name": name}, {}, {"size": "x" * 300_000}]

    kwargs = [{"on_step": speak(name)} for name in "abcd"]
    with make([ScriptedPufferEnv] * 4, num_envs=4, env_kwargs=kwargs) as vecenv:
        assert vecenv.reset()[1] == []
        for _ in range(3):
            infos = vecenv.step([0] * 4)[4]
            assert [info["name"] for info in infos if "name" in info] == list("abcd")
            assert len(infos) == 8


def test_environment_that_prints_much_does_not_block():
    def shout():
        print("x" * 100_000)
        print("y" * 100_000, file=sys.stderr)

    with make(ScriptedPufferEnv, env_kwargs={"on_step": shout}) as vecenv:
        vecenv.reset()
        for _ in range(20):
            observations, *_ = vecenv.step([0, 0])
        assert observations.tolist() == [[20], [20]]


class Event(enum.Enum):
    GOAL = 1


class Played:
    count = 0


class Board(gymnasium.spaces.Box):
    pass


class Handle:
    pass


class TwoPart(Exception):  # noqa: N818
    def __init__(self, one, two):
        super().__init__(one)


def test_infos_can_contain_classes_of_the_caller():
    vecenv = faulty(on_step=lambda: [{"event": Event.GOAL, "played": Played()}])
    Played.count = 7  # unpickling must not overwrite it
    vecenv.reset()
    (info,) = vecenv.step([0, 0])[4]
    assert info["event"] is Event.GOAL
    assert (type(info["played"]), Played.count) == (Played, 7)
    vecenv.close()


def test_global_random_generators_differ_between_workers():
    def draws(seed):
        def draw():
            return [{"numpy": np.random.rand(), "python": random.random()}]

        vecenv = make(ScriptedPufferEnv, env_kwargs={"on_step": draw}, seed=seed)
        vecenv.reset()
        infos = vecenv.step([0, 0])[4]
        vecenv.close()
        return [value for info in infos for value in info.values()]

    assert draws(5) == draws(5)
    assert len({*draws(5), *draws(6)}) == 8


def test_spaces_can_have_classes_of_the_caller():
    class Player(ScriptedPufferEnv):
        def __init__(self, buf=None):
            super().__init__()
            del self.observation_space, self.action_space
            self.single_observation_space = Board(-1, 1, (1,))
            pufferlib.PufferEnv.__init__(self, buf)

    vecenv = make(Player)
    assert type(vecenv.single_observation_space) is Board
    vecenv.close()


def test_infos_ignore_reducers_of_multiprocessing():
    def on_build():  # as torch does, so that tensors would use file descriptors of the caller
        reduction.ForkingPickler.register(Handle, lambda handle: (str, ("a handle",)))

    vecenv = faulty(on_build=on_build, on_step=lambda: [{"tensor": Handle()}])
    vecenv.reset()
    assert isinstance(vecenv.step([0, 0])[4][0]["tensor"], Handle)
    vecenv.close()


@pytest.mark.parametrize("make", [threading.Lock, lambda: type("Local", (), {"__qualname__": "main.<locals>.Local"})()])
def test_infos_that_cannot_be_pickled_raise(make):
    vecenv = faulty(on_step=lambda: [{"fine": 1, "odd": make()}])
    vecenv.reset()
    with pytest.raises(WorkerError, match=r"(?s)infos must be picklable, got 'odd': .*, in step of environment 1 "):
        vecenv.step([0, 0])


def test_infos_that_cannot_be_unpickled_raise():
    vecenv = faulty(on_step=lambda: [{"error": TwoPart(1, 2)}])
    vecenv.reset()
    with pytest.raises(
        APIUsageError, match=r"infos and spaces must be things that this process can unpickle, got TypeE"
    ):
        vecenv.step([0, 0])
    with pytest.raises(APIUsageError, match="the workers were ended by an earlier error"):
        vecenv.recv()
    vecenv = faulty(on_step=lambda: [{"error": TwoPart(1, 2)}])
    vecenv.reset()
    vecenv.send([0, 0])
    time.sleep(0.1)
    vecenv.close()


@pytest.mark.parametrize("closer", ["signal handler", "thread"])
def test_recv_raises_if_closed_meanwhile(closer):
    vecenv = faulty(on_step=lambda: time.sleep(0.5))
    vecenv.reset()
    vecenv.send([0, 0])
    before = signal.signal(signal.SIGALRM, lambda *_: vecenv.close())
    timer = threading.Timer(0.2, vecenv.close)
    if closer == "thread":
        timer.start()
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(APIUsageError, match=r"Multiprocessing\.recv: the environments are closed; make new ones"):
            vecenv.recv()
    finally:
        signal.signal(signal.SIGALRM, before)
    if closer == "thread":
        timer.join()
    with pytest.raises(APIUsageError, match=r"Multiprocessing\.send: the environments are closed; make new ones"):
        vecenv.send([0, 0])


@pytest.mark.parametrize("zero_copy", [True, False])
def test_recv_can_be_called_again_after_ctrl_c(monkeypatch, zero_copy):
    kwargs = [{"on_step": lambda name=name: [{"name": name}]} for name in "abcd"]
    options = {"num_envs": 4, "num_workers": 4, "batch_size": 2, "zero_copy": zero_copy}
    with make([ScriptedPufferEnv] * 4, env_kwargs=kwargs, **options) as vecenv:
        vecenv.async_reset()
        started = set()
        while len(started) < 4:  # after that each environment has stepped and returns infos
            started.update(vecenv.recv()[-2].tolist())
            vecenv.send([0, 0])
        read_reply, asked = WorkerProcesses.read_reply, []

        def interrupted(workers, worker):
            asked.append(worker)
            if len(asked) == 2:
                raise KeyboardInterrupt
            read_reply(workers, worker)

        monkeypatch.setattr(WorkerProcesses, "read_reply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vecenv.recv()
        *_, agent_ids, _ = vecenv.recv()
        assert len(set(agent_ids)) == 2
        assert not zero_copy or agent_ids.tolist() == asked[:2]
        vecenv.send([0, 0])
        assert vecenv.reset()[0].tolist() == [[0], [0]]


def test_workers_get_current_environment_variables_and_folder(monkeypatch, tmp_path):
    def observe():
        return [{"variable": os.environ.get("TANK"), "folder": os.getcwd(), "torch": "torch" in sys.modules}]

    for value in ("one", "two"):
        monkeypatch.setenv("TANK", value)
        monkeypatch.chdir(tmp_path)
        with make(ScriptedPufferEnv, env_kwargs={"on_step": observe}) as vecenv:
            vecenv.reset()
            assert vecenv.step([0, 0])[4] == [{"variable": value, "folder": str(tmp_path), "torch": False}] * 2


def boom():
    raise ValueError("boom")


@pytest.mark.parametrize("phase", ["build", "reset", "step"])
def test_exception_of_environment_raises_worker_error(phase):
    with pytest.raises(WorkerError) as caught:
        run_until_failure(**{f"on_{phase}": boom})
    text = str(caught.value)
    assert text.startswith(f"vector.Multiprocessing: ValueError: boom, in {phase} of environment 1 (worker 1, ")
    assert f"seed {env_seed(5, 1)}" in text
    assert "Traceback (most recent call last):" in text
    assert f'File "{__file__}", line {boom.__code__.co_firstlineno + 1}, in boom' in text
    assert ("last actions [3]" if phase == "step" else f"seed {env_seed(5, 1)}).") in text


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal SIGKILL"),
        as_all((lambda: os.kill(os.getpid(), signal.SIGSEGV), "signal SIGSEGV")),
        (lambda: os.kill(os.getpid(), signal.SIGRTMIN + 1), f"signal {signal.SIGRTMIN + 1}"),  # a signal without a name
    ],
)
@pytest.mark.parametrize("phase", ["build", "reset", "step"])
def test_worker_that_exits_raises_worker_error(phase, end, cause):
    with pytest.raises(WorkerError) as caught:
        run_until_failure(**{f"on_{phase}": end})
    text = str(caught.value)
    assert f"ended with {cause}, in {phase} of environment 1 (worker 1, seed {env_seed(5, 1)}" in text
    if phase == "step":
        assert "last actions [3]" in text


def absent():
    raise BindingMissing("game/one: needs the package game; run: puffer install game")


def test_missing_package_in_worker_raises_binding_missing():
    with pytest.raises(BindingMissing) as caught:
        run_until_failure(on_build=absent)
    assert str(caught.value) == "game/one: needs the package game; run: puffer install game"
    assert "in absent" in caught.value.__notes__[0]


def test_sys_exit_in_environment_raises_worker_error():
    vecenv = faulty(on_step=lambda: sys.exit("enough"))
    vecenv.reset()
    with pytest.raises(WorkerError, match="SystemExit: enough, in step of environment 1"):
        vecenv.step([0, 0])


def test_worker_killed_between_steps_raises_worker_error():
    vecenv = make(ScriptedPufferEnv)
    vecenv.reset()
    os.kill(vecenv.worker_pids[0], signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"worker 0 .* ended with signal SIGKILL"):
        vecenv.step([0, 0])


def test_failure_stops_all_workers():
    vecenv = faulty(on_step=boom)
    pids = vecenv.worker_pids
    vecenv.reset()
    with pytest.raises(WorkerError):
        vecenv.step([0, 0])
    assert not any(map(is_alive, pids))
    for call in (vecenv.recv, vecenv.reset, lambda: vecenv.send([0, 0])):
        with pytest.raises(APIUsageError, match="the workers were ended by an earlier error; make new environments"):
            call()
    vecenv.close()


def test_error_in_close_raises_and_stops_workers():
    vecenv = faulty(on_close=boom)
    pids = vecenv.worker_pids
    with pytest.raises(WorkerError, match="ValueError: boom, in close of worker 1"):
        vecenv.close()
    assert not any(map(is_alive, pids))
    vecenv.close()


def test_worker_that_does_not_close_is_killed(monkeypatch):
    module = sys.modules["pufferlib.vector.multiprocessing.process"]
    monkeypatch.setattr(module, "CLOSE_S", 0.2)
    vecenv = faulty(on_close=lambda: time.sleep(60))
    pids = vecenv.worker_pids
    vecenv.close()
    assert not any(map(is_alive, pids))


def sleep_forever():
    while True:
        time.sleep(60)


@pytest.mark.all
@pytest.mark.parametrize("phase", ["build", "reset", "step"])
def test_timeout_raises_worker_error(phase):
    with pytest.raises(WorkerError) as caught:
        run_until_failure(timeout_s=6.0, **{f"on_{phase}": sleep_forever})
    text = str(caught.value)
    assert f"one {phase} of an environment may take 6 seconds, got more in environment 1 " in text
    assert f"(worker 1, seed {env_seed(5, 1)}" in text
    assert "raise timeout_s" in text
    assert "in sleep_forever" in text  # the stack
    if phase == "step":
        assert "last actions [3]" in text


@pytest.mark.all
def test_timeout_applies_to_each_environment():
    options = {"num_envs": 20, "num_workers": 1, "timeout_s": 9.0}
    with make(ScriptedPufferEnv, env_kwargs={"on_step": lambda: time.sleep(0.5)}, **options) as vecenv:
        vecenv.reset()
        assert vecenv.step([0] * 20)[0].tolist() == [[1]] * 20  # 10 seconds


def test_crash_in_native_code_shows_the_stack():
    def on_step():
        __import__("ctypes").string_at(0)

    vecenv = faulty(on_step=on_step)
    vecenv.reset()
    with pytest.raises(WorkerError, match=r"(?s)ended with signal SIGSEGV, in step of environment 1 .*in on_step"):
        vecenv.step([0, 0])


def test_unpicklable_creator_is_named():
    lock, places = threading.Lock(), "unpicklable_creator_is_named.<locals>"
    with pytest.raises(APIUsageError, match=rf"cannot pickle '_thread.lock' object \(lock in test_{places}.<lambda>\)"):
        make(ScriptedPufferEnv, env_kwargs={"on_step": lambda: lock and None})

    class Env(ScriptedPufferEnv):
        episodes = (i for i in range(3))

    with pytest.raises(APIUsageError, match=rf"cannot pickle 'generator' object \(episodes in test_{places}.Env\)"):
        make(Env)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or while it was read
        return False


def test_arrays_stay_valid_after_close():
    vecenv = make(ScriptedPufferEnv)
    vecenv.reset()
    observations = vecenv.step([0, 0])[0]
    vecenv.close()
    del vecenv
    assert observations.tolist() == [[1.0], [1.0]]


def test_idle_workers_use_little_cpu_time():
    def used():
        ticks = 0
        for pid in pids:
            with open(f"/proc/{pid}/stat") as stat:
                ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    with make(ScriptedPufferEnv) as vecenv:
        vecenv.reset()
        vecenv.step([0, 0])
        pids = vecenv.worker_pids
        before = used()
        time.sleep(1)
        assert used() - before < 0.1


def test_garbage_collection_in_workers_copies_little_memory():
    def private_mib():
        with open("/proc/self/smaps_rollup") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith("Private")) / 1024

    def on_step():
        before = private_mib()
        gc.collect()
        return [{"copied_mib": private_mib() - before}]

    with make(ScriptedPufferEnv, env_kwargs={"on_step": on_step}) as vecenv:
        vecenv.reset()
        assert all(info["copied_mib"] < 2 for info in vecenv.step([0, 0])[4])  # 6 without gc.freeze()


def run_script(text, **kwargs):
    """Start a script without a main guard, as users write them."""
    path = kwargs.pop("path")
    path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs
    )


SCRIPT = """
    import os, sys, time
    import gymnasium
    import pufferlib, pufferlib.vector

    print("main runs", flush=True)

    class Env(pufferlib.PufferEnv):
        def __init__(self, buf=None):
            self.single_observation_space = gymnasium.spaces.Box(low=0, high=1, shape=(1,))
            self.single_action_space = gymnasium.spaces.Discrete(2)
            self.num_agents = 1
            super().__init__(buf)

        def reset(self, seed=None):
            return self.observations, [{"pid": os.getpid()}]

        def step(self, actions):
            time.sleep(DELAY)
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self):
            pass

    DELAY = 0
    def start():
        vecenv = pufferlib.vector.make(Env, num_envs=2, num_workers=2, overwork=True, backend="Multiprocessing")
        print(*(info["pid"] for info in vecenv.reset()[1]), flush=True)
        return vecenv
"""


def read_pids(process):
    assert process.stdout.readline() == "main runs\n"
    return [int(pid) for pid in process.stdout.readline().split()]


def wait_until_gone(pids, seconds=10):
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def test_script_without_main_guard_and_close_exits_cleanly(tmp_path):
    process = run_script("vecenv = start()\nvecenv.step([0, 0])\n", path=tmp_path / "script.py")
    pids = read_pids(process)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
    assert len(pids) == 2
    assert wait_until_gone(pids)


@pytest.mark.parametrize("delay", once([0, 0.5], [0.5]))
def test_ctrl_c_stops_script_and_workers(tmp_path, delay):
    text = f"DELAY = {delay}\nvecenv = start()\nwhile True:\n    vecenv.step([0, 0])\n"
    process = run_script(text, path=tmp_path / "script.py", start_new_session=True)
    pids = read_pids(process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the script and all its workers
    out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert out == ""
    assert wait_until_gone(pids)


PARENT_CODE = ["time.sleep(60)", "vecenv.step([0, 0])", "vecenv.send([0, 0]); time.sleep(60)"]


@pytest.mark.parametrize("code", once(PARENT_CODE, PARENT_CODE[1:2]))
def test_workers_stop_if_parent_is_killed(tmp_path, code):
    text = f"DELAY = 100\nvecenv = start()\n{code}\n"
    process = run_script(text, path=tmp_path / "script.py")
    pids = read_pids(process)
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert wait_until_gone(pids)
    process.communicate()


def test_daemonic_process_cannot_have_workers(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(
        APIUsageError, match=r"got a daemonic one .*; start it with daemon=False, or use backend=Serial"
    ):
        pufferlib.vector.make(SamplePufferEnv, backend="Multiprocessing", num_workers=1)


def test_too_few_file_descriptors_name_the_limit(monkeypatch):
    pufferlib.vector.make(SamplePufferEnv, backend="Multiprocessing", num_workers=1).close()  # import all it needs
    monkeypatch.setattr("tempfile.tempdir", None)  # Python looks for the folder again, as at its first use
    before, held = resource.getrlimit(resource.RLIMIT_NOFILE), []
    limit = max(map(int, os.listdir("/proc/self/fd"))) + 2
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        with contextlib.suppress(OSError):  # until every number is taken
            while True:
                held.append(os.dup(0))
        with pytest.raises(WorkerError, match=rf"worker 0 needs more open files .*, {limit}; raise that limit"):
            pufferlib.vector.make(SamplePufferEnv, backend="Multiprocessing", num_workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for file in held:
            os.close(file)


class Numbered(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}


def test_workers_know_environments_registered_by_the_script():
    gymnasium.register("script/Numbered-v0", Numbered)
    creator = functools.partial(gymnasium.make, "script/Numbered-v0")
    try:
        with contextlib.closing(make(functools.partial(GymnasiumPufferEnv, env_creator=creator))) as envs:
            assert envs.reset()[0].shape == (2, 1)
    finally:
        del gymnasium.registry["script/Numbered-v0"]


def test_workers_use_everything_that_a_script_defines():
    command = [sys.executable, Path(__file__).with_name("script_with_everything.py"), "Multiprocessing"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("everything works\n", "")


def test_forkserver_of_another_process_is_not_used():
    make(ScriptedPufferEnv).close()
    forkserver._forkserver._forkserver_pid = 1  # as in a fork of a process that has a server
    make(ScriptedPufferEnv).close()
    assert forkserver._forkserver._forkserver_pid > 1


def test_temporary_folder_with_too_long_name_is_replaced(monkeypatch, tmp_path):
    config = multiprocessing.current_process()._config
    monkeypatch.setitem(config, "tempdir", str(tmp_path / ("long" * 25)))
    forget_server()
    make(ScriptedPufferEnv).close()
    assert config["tempdir"].startswith("/tmp/pymp-")
    config["tempdir"] = "/" + "long" * 25
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: os.listdir("/nowhere"))
    with pytest.raises(APIUsageError) as caught:
        make(ScriptedPufferEnv)
    assert "must have a name of at most 89 bytes, got /longlong" in str(caught.value)
    assert "set TMPDIR to a shorter one" in str(caught.value)


def load_from_path(monkeypatch, path, text):
    path.write_text(text)
    spec = spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def test_modules_loaded_from_paths_are_pickled_by_value(monkeypatch, tmp_path):
    one = load_from_path(monkeypatch, tmp_path / "one_file.py", "class Base: bonus = 1\ndef add(n): return n + 1")
    text = "import one_file\nclass Env(one_file.Base):\n  def play(self): return one_file.add(self.bonus)"
    two = load_from_path(monkeypatch, tmp_path / "two_file.py", text)
    one.two_file = two  # as if one_file had imported two_file
    data = pickle_by_value([EnvSpec(0, two.Env, (), {}, 0)])
    assert not cloudpickle.list_registry_pickle_by_value() & {"one_file", "two_file"}
    for name in ("one_file", "two_file"):
        monkeypatch.delitem(sys.modules, name)
    assert pickle.loads(data)[0].creator().play() == 2


POSTPONED = """
from __future__ import annotations
from typing import Literal, Optional
from typing_extensions import TypeAliasType

Pair = TypeAliasType("Pair", tuple[int, int])

def make(limit: Optional[int], side: "Literal['left', 'right']", pair: Pair, free: "any text"): ...
"""


def test_string_annotations_can_be_evaluated_in_workers(monkeypatch, tmp_path):
    module = load_from_path(monkeypatch, tmp_path / "postponed.py", POSTPONED)
    data = pickle_by_value(module.make)
    monkeypatch.delitem(sys.modules, "postponed")  # as in a worker
    kinds = keyword_kinds(creator_of("postponed", pickle.loads(data)))
    assert kinds == {"limit": {int, type(None)}, "side": {"left", "right"}}


def test_annotations_of_other_methods_import_nothing_in_workers(monkeypatch, tmp_path):
    source = (
        "from __future__ import annotations\nimport colorsys as c\nclass Env:\n    def see(self, at: c.Any): pass\n"
    )
    assert b"colorsys" not in pickle_by_value(load_from_path(monkeypatch, tmp_path / "see.py", source).Env)


REDEFINED = """
import functools

def twice(function):
    @functools.wraps(function)
    def doubled(): return 2 * function()
    return doubled

class Env:
    def play(self): return 1

class Env(Env):
    def play(self): return super().play() + bonus()

@twice
def bonus(): return 10
"""


def test_redefined_names_refer_to_the_last_definition_in_workers(monkeypatch, tmp_path):
    module = load_from_path(monkeypatch, tmp_path / "cells.py", REDEFINED)
    first, last = pickle_by_value(module.Env.__base__), pickle_by_value((module.Env, module.bonus))
    monkeypatch.delitem(sys.modules, "cells")  # as in a worker
    pickle.loads(first)
    env, bonus = pickle.loads(last)
    assert (env().play(), bonus()) == (21, 20)
    assert sys.modules["cells"].Env is env
    assert sys.modules["cells"].bonus is bonus
    pickle.loads(first)
    assert sys.modules["cells"].Env is env


@pytest.mark.parametrize("is_callers", [False, True])
def test_pickle_by_value_keeps_registrations_of_the_caller_only(monkeypatch, is_callers):
    module = types.ModuleType("nowhere")
    exec("def creator(buf=None): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "nowhere", module)
    if is_callers:
        cloudpickle.register_pickle_by_value(module)
    data = pickle_by_value([EnvSpec(0, module.creator, (), {}, 0)])
    assert ("nowhere" in cloudpickle.list_registry_pickle_by_value()) == is_callers
    if is_callers:
        cloudpickle.unregister_pickle_by_value(module)
    monkeypatch.delitem(sys.modules, "nowhere")
    assert pickle.loads(data)[0].creator.__name__ == "creator"


@pytest.mark.parametrize("is_installed", [True, False])
def test_editable_installs_are_pickled_by_name(monkeypatch, tmp_path, is_installed):
    (tmp_path / "edited.py").write_text("def creator(buf=None): ...")

    class Finder:  # like the finder of setuptools for editable installs
        __module__ = "__editable___edited_0_1_finder" if is_installed else "somewhere"

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            return spec_from_file_location(name, tmp_path / "edited.py") if name == "edited" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    module = importlib.import_module("edited")
    data = pickle_by_value([EnvSpec(0, module.creator, (), {}, 0)])
    monkeypatch.delitem(sys.modules, "edited")
    assert b"edited" in data
    assert (b"_make_function" not in data) == is_installed


def import_package_and_make():
    with warnings.catch_warnings(record=True) as caught:
        gymnasium.register("package/Other-v0", "gymnasium.envs.classic_control:PendulumEnv")
    assert not caught
    return gymnasium.make("package/Other-v0", disable_env_checker=True)


@pytest.mark.parametrize(
    "creator",
    [functools.partial(gymnasium.make, "package/Other-v0", disable_env_checker=True), import_package_and_make],
    ids=["by id", "package imported in the worker"],
)
def test_workers_know_environments_registered_by_packages(creator):
    gymnasium.register("package/Cart-v0", "gymnasium.envs.classic_control:CartPoleEnv")
    gymnasium.register("package/Other-v0", "gymnasium.envs.classic_control:PendulumEnv")
    try:
        with contextlib.closing(make(functools.partial(GymnasiumPufferEnv, env_creator=creator))) as envs:
            assert envs.reset()[0].shape == (2, 3)
    finally:
        del gymnasium.registry["package/Cart-v0"], gymnasium.registry["package/Other-v0"]


def test_workers_know_changed_environments_of_gymnasium(monkeypatch):
    monkeypatch.setattr(gymnasium, "registry", gymnasium.registry.copy())
    changed = gymnasium.registry["CartPole-v1"] = copy.copy(gymnasium.spec("CartPole-v1"))
    changed.max_episode_steps = 2
    creator = functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=["CartPole-v1"])
    with contextlib.closing(make(creator)) as envs:
        envs.reset()
        assert [envs.step(envs.actions)[3].all() for _ in range(2)] == [False, True]


def test_registrations_of_large_packages_are_sent_in_few_bytes(monkeypatch):
    monkeypatch.setattr(gymnasium, "registry", {})
    for number in range(300):
        gymnasium.register(f"Large-v{number}", "tests.envs:FunctionEnv", kwargs={"number": number, "shape": (1, 2)})
    data, alone = pickle_by_value("sent"), pickle_by_value("sent", with_registrations=False)
    assert len(data) < 300 * 150
    assert len(alone) < 100
    registered = dict(gymnasium.registry)
    gymnasium.registry.clear()
    assert pickle.loads(data) == "sent"
    assert gymnasium.registry == registered


def test_registrations_of_packages_missing_in_the_worker_are_skipped(tmp_path, monkeypatch):
    (tmp_path / "absent.py").write_text("class Option: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    option = importlib.import_module("absent").Option()
    monkeypatch.setattr(gymnasium, "registry", gymnasium.registry.copy())
    gymnasium.registry["absent/Env-v0"] = GymnasiumSpec("absent/Env-v0", "absent:Env", kwargs={"option": option})
    gymnasium.registry["present/Env-v0"] = GymnasiumSpec("present/Env-v0", "tests.envs:FunctionEnv")
    data = pickle_by_value("sent")
    del gymnasium.registry["absent/Env-v0"], gymnasium.registry["present/Env-v0"], sys.modules["absent"]
    (tmp_path / "absent.py").unlink()
    assert pickle.loads(data) == "sent"
    assert "present/Env-v0" in gymnasium.registry
    assert "absent/Env-v0" not in gymnasium.registry


class Suit(enum.Enum):
    RED, BLACK = 0, 1


def suit_of(number):
    return Suit(number)


class Dealer(Numbered):
    """Environment that pickles objects of its own module, as searches and caches do."""

    def step(self, action):
        again = pickle.loads(pickle.dumps((Suit.BLACK, suit_of, Dealer)))
        assert again == (Suit.BLACK, suit_of, Dealer)
        return np.ones(1, np.float32), 0.0, False, False, {}


def test_environments_in_workers_can_pickle_classes_of_their_script():
    with contextlib.closing(make(functools.partial(GymnasiumPufferEnv, env_creator=Dealer))) as envs:
        envs.reset()
        assert envs.step([0, 0])[0].tolist() == [[1], [1]]


class ForkingPufferEnv(SamplePufferEnv):
    def forked_handlers(self):
        child = os.fork()
        if child == 0:
            kept = [number for number in (signal.SIGTERM, signal.SIGHUP) if callable(signal.getsignal(number))]
            os._exit(len(kept))
        return os.waitpid(child, 0)[1]


def test_processes_that_an_environment_forks_do_not_have_the_signal_handlers_of_its_worker():
    with make(ForkingPufferEnv) as vecenv:
        assert list(vecenv.call("forked_handlers")) == [0, 0]


def test_workers_step_without_functions_of_linux(tmp_path):
    """Emulate macOS, which has none of these functions."""
    absent = "os.memfd_create, os.pidfd_open, os.sched_getaffinity, os.sched_setaffinity, select.POLLRDHUP"
    (tmp_path / "sitecustomize.py").write_text(f"import os, select\ndel {absent}\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    steps = """
    vecenv = start()
    assert not hasattr(os, "memfd_create")
    print(vecenv.step([0, 0])[0].shape)
    vecenv.close()
    """
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    output, errors = run_script(steps, path=tmp_path / "script.py", env=environ).communicate(timeout=60)
    assert output.endswith("(2, 1)\n"), errors
