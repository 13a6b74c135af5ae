"""Steps with several threads: equal results, number of threads, and interrupts."""

import functools
import hashlib
import os
import signal
import subprocess
import sys
import threading

import pytest

import pufferlib
from pufferlib import ocean
from pufferlib.ocean import env as ocean_env
from tests.tiers import as_nightly, once

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")


@pytest.fixture
def many_threads(monkeypatch):
    """Use as many threads as requested on any machine, and all of them in every step."""
    monkeypatch.setattr("pufferlib.ocean.arguments.usable_cpus", lambda: 8)
    monkeypatch.setattr(ocean_env, "OceanBatch", functools.partial(ocean_env.OceanBatch, helper_ns=0))


def play(name, num_threads, steps, num_envs=64, **kwargs):
    """Return digests of all arrays and the infos of ``steps`` steps after a reset."""
    env = ocean.OceanEnv(name, num_envs=num_envs, seed=3, num_threads=num_threads, **kwargs)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(100)]
    seen = [env.reset()[0].tobytes()]
    for step in range(steps):
        *arrays, infos = env.step(actions[step % 100])
        digest = hashlib.blake2b()
        for array in (*arrays, env.masks, env.final_observations):
            digest.update(array)
        seen.append(digest.digest())
        seen.append(repr(infos))
    env.close()
    return seen


def run_script(script):
    """Run a script in a new process and return its output."""
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # threads of numpy would be counted
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, env=environ)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# ---- Results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", once(ocean.names(), {"breakout", "multiagent", "pendulum", "connect4"}))
@pytest.mark.parametrize("numbers", ["2 8", as_nightly("3 4 5 6 7")])
@pytest.mark.usefixtures("many_threads")
def test_threads_give_the_same_bytes(name, numbers):
    expected = play(name, 1, 400)
    for num_threads in map(int, numbers.split()):
        assert play(name, num_threads, 400) == expected, f"{num_threads} threads give other bytes than one"


@pytest.mark.parametrize("num_envs", [1, 2, 3, 5, 17, 33, 1000])
@pytest.mark.usefixtures("many_threads")
def test_each_environment_is_stepped_once(num_envs):
    expected = play("squared", 1, 20, num_envs)
    for num_threads in (2, 3, 8):
        assert play("squared", num_threads, 20, num_envs) == expected


@pytest.mark.usefixtures("many_threads")
def test_python_threads_can_step_environments_concurrently():
    expected, seen = play("breakout", 1, 300), {}

    def run(key):
        seen[key] = play("breakout", 4, 300)

    threads = [threading.Thread(target=run, args=(key,)) for key in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seen[key] == expected for key in range(3)] == [True] * 3


# ---- Helper threads -----------------------------------------------------------------------------

COUNTING = """
import functools, os
from pufferlib import ocean
from pufferlib.ocean import arguments as ocean_arguments, env as ocean_env

ocean_arguments.usable_cpus = lambda: 8
ocean_env.OceanBatch = functools.partial(ocean_env.OceanBatch, helper_ns=0)
before = len(os.listdir("/proc/self/task"))

def threads():
    return len(os.listdir("/proc/self/task")) - before
"""


@needs_proc
def test_helper_threads_are_shared_between_environments():
    script = COUNTING + "\n".join(
        [
            "ocean.Squared(num_envs=64)",
            "print(threads())",
            "envs = [ocean.Squared(num_envs=64, num_threads=n) for n in (3, 2, 3)]",
            "for env in envs:",
            "    env.reset()",
            "    env.step(env.actions)",
            "print(threads())",
            "envs.append(ocean.Pong(num_envs=64, num_threads=5))",
            "for _ in range(1000):",
            "    ocean.Squared(num_threads=5).close()",
            "print(threads())",
        ]
    )
    assert run_script(script).split() == ["0", "2", "4"]


@needs_proc
def test_threads_are_limited_to_usable_cores():
    script = COUNTING + "\n".join(
        [
            "ocean_arguments.usable_cpus = lambda: 3",
            "for count in (100, 'auto', 2):",
            "    env = ocean.Squared(num_envs=64, num_threads=count)",
            "    env.reset()",
            "    print(threads())",
        ]
    )
    assert run_script(script).split() == ["2", "2", "2"]


@needs_proc
def test_helper_threads_work_and_block_signals():
    script = COUNTING + "\n".join(
        [
            "env = ocean.Breakout(num_envs=20000, num_threads=2)",
            "env.reset()",
            "old = set(os.listdir('/proc/self/task'))",
            "[helper] = [t for t in old if 'SigBlk:' in (s := open(f'/proc/self/task/{t}/status').read())",
            "            and bin(int(s.split('SigBlk:')[1].split()[0], 16)).count('1') > 50]",
            "used = 0",
            "while used < 5:",  # ticks of 10 ms
            "    env.step(env.actions)",
            "    used = int(open(f'/proc/self/task/{helper}/stat').read().split()[13])",
            "print('done')",
        ]
    )
    assert run_script(script) == "done\n"


@needs_proc
def test_forked_child_starts_its_own_helper_threads():
    script = COUNTING + "\n".join(
        [
            "env = ocean.Breakout(num_envs=64, num_threads=4, seed=1)",
            "def play():",
            "    seen = env.reset(seed=1)[0].tobytes()",
            "    for _ in range(100):",
            "        seen += env.step(env.actions)[0].tobytes()",
            "    return seen",
            "expected = play()",
            "child = os.fork()",
            "if child == 0:",
            "    os._exit(threads() if play() == expected else 99)",
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), play() == expected, threads())",
        ]
    )
    assert run_script(script) == "3 True 3\n"


def test_helper_thread_that_cannot_start_raises():
    script = COUNTING + "\n".join(
        [
            "import pufferlib, resource",
            "ocean_arguments.usable_cpus = lambda: 200",
            "pages = int(open('/proc/self/statm').read().split()[0])",
            "limit = pages * resource.getpagesize() + 2**28",
            "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))",
            "try:",
            "    ocean.Squared(num_envs=64, num_threads='auto')",
            "except pufferlib.PufferError as error:",
            "    print(error)",
        ]
    )
    assert run_script(script).startswith(
        "Squared: num_threads=200 needs 199 helper threads, and one could not be started ("
    )


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", None, True])
def test_wrong_num_threads_are_refused(wrong):
    with pytest.raises(pufferlib.APIUsageError, match='Squared: num_threads must be an int >= 1 or "auto", got'):
        ocean.Squared(num_threads=wrong)


# ---- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.usefixtures("many_threads")
def test_long_step_can_be_interrupted(num_threads):
    """If steps did not check for signals, the step would end before the exception, and the next step would work."""
    env = ocean.Breakout(num_envs=200_000, num_threads=num_threads, frameskip=1000, balls=1000)
    env.reset()
    actions = env.actions

    def interrupt(*_):
        raise KeyboardInterrupt

    # The timer counts CPU time of this process, so the load of the machine does not matter. A step takes one second.
    previous = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)
    try:
        with pytest.raises(KeyboardInterrupt):
            env.step(actions)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    for call in (lambda: env.step(actions), env.render):
        with pytest.raises(pufferlib.APIUsageError, match="the last call was interrupted half-way; call reset first"):
            call()
    env.reset()
    env.render()
    env.close()
