"""Every call of Multiprocessing returns or raises, and leaks no processes, files or memory."""

import functools
import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError, WorkerError
from tests.envs import ScriptedPufferEnv
from tests.processes import in_fresh_process
from tests.tiers import once

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

BACKENDS = ["Serial", "Multiprocessing"]


def make(backend="Multiprocessing", num_envs=2, **kwargs):
    return pufferlib.vector.make(ScriptedPufferEnv, num_envs=num_envs, backend=backend, overwork=True, **kwargs)


# Wrong calls


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("calls", once([0, 3], [3]))
@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 5], r"actions must be in the action space Discrete\(5\), got 5 in row 1"),
        ([-1, 0], "got -1 in row 0"),
        (np.array([0, 2**32], np.int64), "got 4294967296 in row 1"),
        ([0.0, 1.0], "got dtype float64"),
        ([0], r"got shape \(1,\)"),
        ([[0], [0]], r"got shape \(2, 1\)"),
        (None, r"got shape \(\)"),
        (["0", "1"], "got dtype <U1"),
    ],
)
def test_wrong_actions_are_refused_on_every_call(backend, calls, actions, message):
    with make(backend) as vecenv:
        vecenv.reset()
        for _ in range(calls):
            vecenv.step([2, 1])
        for _ in range(2):
            with pytest.raises(APIUsageError, match=message):
                vecenv.step(actions)
        assert vecenv.step([0, 1])[0].tolist() == [[calls + 1]] * 2  # a refused call changes nothing


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_in_wrong_order_are_refused(backend):
    vecenv = make(backend)
    with pytest.raises(APIUsageError, match="recv: the next call must be async_reset, got recv"):
        vecenv.recv()
    with pytest.raises(APIUsageError, match="send: the next call must be async_reset, got send"):
        vecenv.step([0, 0])
    vecenv.async_reset()
    vecenv.async_reset()
    vecenv.recv()
    with pytest.raises(APIUsageError, match="recv: the next call must be send, got recv"):
        vecenv.recv()
    vecenv.send([0, 0])
    with pytest.raises(APIUsageError, match="send: the next call must be recv, got send"):
        vecenv.send([0, 0])
    assert vecenv.recv()[0].tolist() == [[1], [1]]
    vecenv.close()
    vecenv.close()
    for call in (vecenv.reset, vecenv.recv, vecenv.async_reset, lambda: vecenv.step([0, 0])):
        with pytest.raises(APIUsageError, match="the environments are closed; make new ones"):
            call()


# Environments that misbehave


def stop_soon(monkeypatch):
    """Let close stop workers by force after a tenth of a second."""
    monkeypatch.setattr(sys.modules["pufferlib.vector.multiprocessing.process"], "CLOSE_S", 0.1)


def test_environment_that_leaks_file_descriptors_raises():
    def leak():
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        while True:
            os.dup(0)

    vecenv = make(env_kwargs={"on_step": leak})
    vecenv.reset()
    with pytest.raises(WorkerError, match=r"(?s)Too many open files, in step of environment 0 .*in leak"):
        vecenv.step([0, 0])


def test_running_thread_of_environment_does_not_block_close(monkeypatch):
    def start_thread():
        threading.Thread(target=time.sleep, args=(3600,)).start()

    stop_soon(monkeypatch)
    vecenv = make(env_kwargs={"on_step": start_thread})
    pids = vecenv.worker_pids
    vecenv.reset()
    vecenv.step([0, 0])
    vecenv.close()
    assert wait_until_gone(pids)


# Forks, signals and killed processes, each in a script

SCRIPT = """
import os, signal, sys, threading, time
import gymnasium
import pufferlib, pufferlib.vector, pufferlib.vector.multiprocessing.process
from pufferlib.errors import APIUsageError

pufferlib.vector.multiprocessing.process.CLOSE_S = 0.5

class Env(pufferlib.PufferEnv):
    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=0, high=1e6, shape=(SIZE,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.num_agents = 1
        self.wait("make")
        super().__init__(buf)

    def wait(self, phase):
        if SLOW == phase:
            time.sleep(3600)

    def reset(self, seed=None):
        self.wait("reset")
        self.observations[:] = 0
        return self.observations, []

    def step(self, actions):
        self.wait("step")
        self.observations += 1
        return self.observations, self.rewards, self.terminals, self.truncations, INFOS

    def close(self):
        self.wait("close")

SLOW, SIZE, INFOS = None, 1, []
def start(**kwargs):
    return pufferlib.vector.make(Env, num_envs=2, num_workers=2, overwork=True, backend="Multiprocessing", **kwargs)
def report(*words):
    print(*words, flush=True)
"""


def start_script(tmp_path, text, **kwargs):
    """Start a script in a new session, so that a test can find all processes that it starts."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + textwrap.dedent(text))
    command = [*kwargs.pop("prefix", []), sys.executable, str(path)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **kwargs
    )


def run_script(tmp_path, text, **kwargs):
    """Return the lines printed by a script. It must exit without errors and leave no processes."""
    process = start_script(tmp_path, text, **kwargs)
    out, err = process.communicate(timeout=110)
    assert process.returncode == 0, err
    assert is_clean(err)
    assert wait_until_gone(lambda: session_of(process.pid))
    return out.splitlines()


def is_clean(err):
    """Return whether ``err`` has no tracebacks. A Ctrl-C in a finalizer may leave one, because Python ignores it."""
    return err.count("Traceback") == err.count("Exception ignored in")


def interrupt(process):
    """Send Ctrl-C to a script and its workers, as a terminal does, and again if Python ignored it."""
    os.killpg(process.pid, signal.SIGINT)
    for _ in range(5):
        if select.select([process.stdout], [], [], 15)[0]:
            return
        os.killpg(process.pid, signal.SIGINT)


def stat_of(pid):
    """Return state, parent, group and session of a process, or an empty list if it does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except (FileNotFoundError, ProcessLookupError):
        return []


def session_of(leader):
    """Return the running processes of a session, including its leader."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if (stat := stat_of(pid)) and stat[3] == str(leader) and stat[0] != "Z"]


def wait_until_gone(pids, seconds=60):
    """Wait until no process of ``pids``, a list or a function that returns one, runs. Return False after a timeout."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        current = pids() if callable(pids) else [pid for pid in pids if stat_of(pid)[:1] not in ([], ["Z"])]
        if not current:
            return True
        time.sleep(0.05)
    return False


def test_forked_process_cannot_use_the_workers(tmp_path):
    lines = run_script(
        tmp_path,
        """
        vecenv = start()
        vecenv.reset()
        vecenv.step([0, 0])
        child = os.fork()
        if child == 0:
            for call in (lambda: vecenv.step([0, 0]), vecenv.reset, vecenv.recv):
                try:
                    call()
                except APIUsageError as error:
                    report(error)
            vecenv.close()
            own = start()
            own.reset()
            report("own", own.step([0, 0])[0].ravel())
            own.close()
            sys.exit(0)  # runs exit handlers, unlike os._exit
        report("child", os.waitpid(child, 0)[1])
        report("parent", vecenv.step([0, 0])[0].ravel())
        vecenv.close()
        """,
    )
    text = "the environments belong to the process that this one was forked from; make new ones in this process"
    assert lines == [
        f"Multiprocessing.send: {text}",
        f"Multiprocessing.async_reset: {text}",
        f"Multiprocessing.recv: {text}",
        "own [1. 1.]",
        "child 0",
        "parent [2. 2.]",
    ]


def test_idle_workers_stop_if_parent_is_killed_while_its_fork_runs(tmp_path):
    process = start_script(
        tmp_path,
        """
        vecenv = start()
        vecenv.reset()
        child = os.fork()
        if child == 0:
            time.sleep(3600)
        report(child, *vecenv.worker_pids)
        time.sleep(3600)
        """,
    )
    child, *workers = map(int, process.stdout.readline().split())
    process.kill()
    process.wait()
    try:
        assert wait_until_gone(workers)
        assert stat_of(child)
    finally:
        os.kill(child, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("phase", once(["make", "reset", "step", "close"], ["step"]))
def test_ctrl_c_in_every_call(tmp_path, phase):
    process = start_script(
        tmp_path,
        f"""
        SLOW = "{phase}"
        if SLOW == "close":
            pufferlib.vector.multiprocessing.process.CLOSE_S = 30.0
        vecenv = None
        try:
            vecenv = start() if SLOW != "make" else (report("ready"), start())
            if SLOW != "make":
                report("ready")
            vecenv.reset()
            vecenv.step([0, 0])
            vecenv.close()
        except KeyboardInterrupt:
            report("interrupted")
        if vecenv is not None:
            vecenv.close()
        report("closed")
        """,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)  # usually enough to be in the call, and an earlier signal must have the same result
    interrupt(process)
    out, err = process.communicate(timeout=100)
    assert (out, process.returncode) == ("interrupted\nclosed\n", 0), err
    assert is_clean(err)
    assert wait_until_gone(lambda: session_of(process.pid))


@pytest.mark.parametrize("delay", once([0.0, 0.1, 0.3], [0.1]))
def test_ctrl_c_while_the_first_worker_starts(tmp_path, delay):
    process = start_script(
        tmp_path,
        """
        report("ready")
        try:
            vecenv = start()
            vecenv.close()
            time.sleep(100)
        except KeyboardInterrupt:
            report("interrupted")
        vecenv = start()
        vecenv.reset()
        report(vecenv.step([0, 0])[0].ravel())
        vecenv.close()
        """,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    interrupt(process)
    out, err = process.communicate(timeout=100)
    assert (out, process.returncode) == ("interrupted\n[1. 1.]\n", 0), err
    assert is_clean(err)
    assert wait_until_gone(lambda: session_of(process.pid))


def test_ctrl_c_while_connecting_to_the_forkserver_prints_no_traceback(tmp_path):
    process = start_script(
        tmp_path,
        """
        from multiprocessing import forkserver
        connect = forkserver.connect_to_new_process

        def connect_and_interrupt(fds):
            ends = connect(fds)
            forkserver.connect_to_new_process = connect
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            return ends

        forkserver.connect_to_new_process = connect_and_interrupt
        try:
            start()
        except KeyboardInterrupt:
            report("interrupted")
        vecenv = start()
        vecenv.reset()
        vecenv.close()
        """,
    )
    out, err = process.communicate(timeout=100)
    assert (out, process.returncode, err) == ("interrupted\n", 0, "")
    assert wait_until_gone(lambda: session_of(process.pid))


@pytest.mark.parametrize("layout", once(["{}", "{'batch_size': 1, 'zero_copy': False}"], ["{}"]))
def test_ctrl_c_at_random_moments_keeps_batch_usable(tmp_path, layout):
    lines = run_script(
        tmp_path,
        f"""
        import random
        chance = random.Random(4)
        INFOS = [{{"large": "x" * 400_000}}]  # more than a pipe holds
        vecenv = start(**{layout})

        def interrupt(delay, caught):
            while not caught.wait(delay):
                os.kill(os.getpid(), signal.SIGINT)
                delay = 5.0  # Python may have ignored it

        for _ in range(60):
            caught = threading.Event()
            thread = threading.Thread(target=interrupt, args=(chance.uniform(0, 0.02), caught))
            try:
                thread.start()
                vecenv.async_reset()
                while True:
                    *_, infos, agents, _ = vecenv.recv()
                    assert all(info == INFOS[0] for info in infos)
                    vecenv.send([0] * len(agents))
            except KeyboardInterrupt:
                caught.set()
            thread.join()
            assert not vecenv.reset()[0].any()
            assert vecenv.step([0] * vecenv.agents_per_batch)[0].any() or vecenv.agents_per_batch == 1
        vecenv.close()
        report("done")
        """,
    )
    assert lines == ["done"]


MODULE = """
import os
import gymnasium
import pufferlib.envpool, pufferlib.vector

depth = int(os.environ.get("DEPTH", 0))
if depth > 2:  # without the error, processes would start processes until the machine has no more memory
    os._exit(1)
os.environ["DEPTH"] = str(depth + 1)

class Env(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        return self.observation_space.low, {}

def make_one(buf=None, seed=0):
    return pufferlib.emulation.GymnasiumPufferEnv(env=Env(), buf=buf, seed=seed)

def make_nested(buf=None, seed=0):
    with pufferlib.vector.make(make_one, num_envs=2, num_workers=2, overwork=True, backend="Multiprocessing") as vecenv:
        vecenv.reset()
    return make_one(buf, seed)

pufferlib.envpool.register("Own-v0", Env)
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (
            "vector.Multiprocessing",
            "pufferlib.vector.make(make_one, num_envs=2, num_workers=2, backend='Multiprocessing')",
        ),
        ("envpool", "pufferlib.envpool.make_gymnasium('Own-v0', num_envs=2, num_threads=2)"),
    ],
)
def test_module_that_makes_workers_at_its_top_level_is_refused(tmp_path, where, line):
    (tmp_path / "trains.py").write_text(f"{MODULE}pufferlib.vector.make(make_one, backend='Serial').close()\n{line}\n")
    text = """
        try:
            import trains
        except APIUsageError as error:
            report(error)
        """
    number = MODULE.count("\n") + 2
    assert run_script(tmp_path, text, cwd=tmp_path) == [
        f"{where}: a module that workers import must not make workers at its top level, got trains "
        f"({tmp_path}/trains.py, line {number}), which would start processes without end; move this line into a "
        'function, or under if __name__ == "__main__"'
    ]


def test_environment_and_modules_can_make_workers_of_others(tmp_path):
    (tmp_path / "trains.py").write_text(f"{MODULE}pufferlib.envpool.make_spec('FrozenLake-v1')\n")
    text = """
        import trains
        with pufferlib.vector.make(trains.make_nested, num_workers=1, backend="Multiprocessing") as vecenv:
            report(vecenv.reset()[0])
        """
    assert run_script(tmp_path, text, cwd=tmp_path) == ["[[0.]]"]


# Leaks


def resources():
    """Return the numbers of file descriptors, threads and shared memory mappings of this process."""
    gc.collect()
    maps = Path("/proc/self/maps").read_text().count("memfd:pufferlib")
    return len(os.listdir("/proc/self/fd")), threading.active_count(), maps


def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def use_and_close(vecenv):
    pids = getattr(vecenv, "worker_pids", [])
    vecenv.reset()
    vecenv.step([0] * vecenv.num_agents)
    vecenv.close()
    assert all(stat_of(pid)[:1] in ([], ["Z"]) for pid in pids), "workers must have stopped"


def cycle(make_one, count):
    """Make, use and close environments ``count`` times, and check that nothing leaks."""
    for _ in range(max(3, count // 100)):
        use_and_close(make_one())
    before, memory = resources(), resident_mib()
    for _ in range(count):
        use_and_close(make_one())
    assert resources() == before
    assert resident_mib() - memory < 8


@pytest.mark.all
def test_sixty_cycles_of_multiprocessing_leak_nothing():
    in_fresh_process(cycle, make, 60)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_cycles_of_multiprocessing_leak_nothing():
    in_fresh_process(cycle, make, 10_000)


@pytest.mark.all
def test_ten_thousand_cycles_of_serial_leak_nothing():
    in_fresh_process(cycle, functools.partial(make, "Serial"), 10_000)


@pytest.mark.all
def test_ten_thousand_cycles_of_a_native_environment_leak_nothing():
    creator = pufferlib.env_creator("squared")
    make_one = functools.partial(pufferlib.vector.make, creator, env_kwargs={"num_envs": 2})
    in_fresh_process(cycle, make_one, 10_000)


def test_failed_builds_leak_nothing():
    def fail():
        with pytest.raises(WorkerError):
            pufferlib.vector.make(
                ScriptedPufferEnv, env_kwargs={"on_step": None, "nonsense": 1}, num_envs=2, num_workers=2,
                backend="Multiprocessing", overwork=True,
            )  # fmt: skip

    fail()
    before = resources()
    for _ in range(5):
        fail()
    assert resources() == before


# Other users and settings of the machine


def test_other_users_cannot_access_memory_and_pipes(tmp_path):
    lines = run_script(
        tmp_path,
        """
        import socket
        from multiprocessing import forkserver

        def files():
            links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
            return [os.stat(link) for link in links if os.path.islink(link) and "pufferlib" in os.readlink(link)]

        os.umask(0)
        vecenv = start()
        for pid in (os.getpid(), *vecenv.worker_pids):
            with open(f"/proc/{pid}/maps") as maps:
                assert "/dev/shm/" not in maps.read(), "the memory has a name"
        assert files(), "the memory cannot be found"
        assert all(file.st_mode & 0o177 == 0 for file in files()), "others may open the memory"
        server = forkserver._forkserver._forkserver_address
        for path in (server, os.path.dirname(server)):
            assert os.stat(path).st_mode & 0o077 == 0, f"others may use {path}"
        for worker in vecenv._workers.processes:
            with socket.fromfd(worker.conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as end:
                assert (end.getsockname(), end.getpeername()) == ("", ""), "the pipe has a name"
        vecenv.close()
        report("private")
        """,
    )
    assert lines == ["private"]


def test_small_dev_shm_does_not_limit_shared_memory(tmp_path):
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"', "sh"]
    probe = subprocess.run([*mount, "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"cannot mount a small /dev/shm here: {probe.stderr.strip()}")
    lines = run_script(
        tmp_path,
        """
        SIZE = 4_000_000  # 16 MB in each environment, twice
        vecenv = start()
        vecenv.reset()
        report(os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize, int(vecenv.step([0, 0])[0].sum()))
        vecenv.close()
        """,
        prefix=mount,
    )
    assert lines == [f"{2**20} 8000000"]


def test_forkserver_preload_of_other_code_is_kept(tmp_path):
    lines = run_script(
        tmp_path,
        """
        import multiprocessing
        multiprocessing.set_forkserver_preload(["this_is_not_there", "wave"])

        class Env(Env):
            def reset(self, seed=None):
                return self.observations, [{"loaded": [name in sys.modules for name in ("wave", "chunk", "torch")]}]

        vecenv = start()
        report(vecenv.reset()[1][0]["loaded"])
        vecenv.close()
        """,
    )
    assert lines == ["[True, False, False]"]


def stop_in_the_middle_of_a_message(vecenv):
    """Stop worker 0 after it has sent the first part of a message larger than the pipe."""
    handle = vecenv._workers.processes[0]
    assert handle.conn.poll(60)
    os.kill(handle.process.pid, signal.SIGSTOP)
    while stat_of(handle.process.pid)[0] != "T":
        time.sleep(0.01)


LONG = {"on_step": lambda: [{"a": bytes(1 << 24)}]}


def test_worker_stopped_in_the_middle_of_a_message_raises():
    vecenv = make(env_kwargs=LONG, timeout_s=6.0)
    vecenv.reset()
    vecenv._workers.processes[0].set_timeout(0.5)  # only for this worker, as below
    pids = vecenv.worker_pids
    vecenv.send([0, 0])
    stop_in_the_middle_of_a_message(vecenv)
    with pytest.raises(WorkerError, match=r"a message within 6 seconds, .* in step of environment 0"):
        vecenv.recv()
    assert wait_until_gone(pids)


def test_worker_stopped_in_the_middle_of_a_message_is_replaced():
    with make(env_kwargs=LONG, on_crash="restart") as vecenv:
        vecenv.reset()
        vecenv._workers.processes[0].set_timeout(
            0.5
        )  # only for this worker, so that others do not time out on slow machines
        vecenv.send([0, 0])
        stop_in_the_middle_of_a_message(vecenv)
        *_, infos, _, _ = vecenv.recv()
        (text,) = [info["worker_error"] for info in infos if "worker_error" in info]
        assert "must continue a message within 120 seconds" in text
        assert len(vecenv.step([0, 0])[4]) == 2


def test_worker_stopped_in_the_middle_of_a_message_does_not_block_close(monkeypatch):
    stop_soon(monkeypatch)
    vecenv = make(env_kwargs=LONG, timeout_s=None)
    vecenv.reset()
    pids = vecenv.worker_pids
    vecenv.send([0, 0])
    stop_in_the_middle_of_a_message(vecenv)
    vecenv.close()
    assert wait_until_gone(pids)


def test_preloaded_module_that_exits_raises(tmp_path):
    (tmp_path / "broken.py").write_text("import os; os._exit(1)")
    lines = run_script(
        tmp_path,
        """
        import multiprocessing, os
        os.environ["PYTHONPATH"] = os.getcwd()
        multiprocessing.set_forkserver_preload(["broken"])
        try:
            start()
        except pufferlib.WorkerError as error:
            report(error)
        """,
        cwd=tmp_path,
    )
    assert "ended before it started one; see its output on stderr" in lines[0]


def test_sys_path_can_contain_path_objects(tmp_path):
    lines = run_script(
        tmp_path,
        """
        import pathlib
        sys.path.append(pathlib.Path.cwd())
        vecenv = start()
        report(vecenv.reset()[0].ravel(), sys.path[-1] == pathlib.Path.cwd())
        vecenv.close()
        """,
    )
    assert lines == ["[0. 0.] True"]


def test_preloaded_module_that_never_loads_raises(tmp_path):
    (tmp_path / "endless.py").write_text("import time; time.sleep(3600)")
    lines = run_script(
        tmp_path,
        """
        import multiprocessing, os
        import pufferlib.vector.multiprocessing.process as launch
        os.environ["PYTHONPATH"] = os.getcwd()  # so that the server finds the module
        launch.SERVER_S = 1.0
        multiprocessing.set_forkserver_preload(["endless"])
        try:
            start(timeout_s=0.5)
        except pufferlib.WorkerError as error:
            report(error)
        launch.SERVER_S = 60.0
        multiprocessing.set_forkserver_preload([])
        vecenv = start()
        report(vecenv.reset()[0].ravel())
        vecenv.close()
        """,
        cwd=tmp_path,
    )
    assert "must answer within 1 seconds" in lines[0]
    assert "asked to load endless (multiprocessing.set_forkserver_preload)" in lines[0]
    assert lines[1] == "[0. 0.]"
