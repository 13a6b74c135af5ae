"""NativePool with threads, forks, signals and memory limits."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from tests.envpool.native_pools import make_busy_pool, make_pool
from tests.processes import own_modules
from tests.tiers import once

HERE = Path(__file__).parent

SLOW = """
#include <time.h>
#include "puffer_env.h"
typedef struct { PufferGame game; float score; } Slow;
static const char slow_about[] = "Takes 20 ms for a step.";
static const PufferParameter slow_parameters[] = {{0}};
static const PufferMetric slow_metrics[] = {PUFFER_METRIC(Slow, score, "nothing")};
static const char *slow_spec(const Slow *env, PufferSpec *spec) {
    *spec = (PufferSpec){.observation_type = PUFFER_FLOAT32, .observation_shape = {1}, .observation_high = 1e6f,
        .action_sizes = {2}, .agents = 1, .picture_width = 1, .picture_height = 1, .frames_per_second = 1};
    return env == NULL ? "none" : NULL;
}
static void slow_reset(Slow *env) { *(float *)env->game.observations = 0; }
static PufferOutcome slow_step(Slow *env) {
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    *(float *)env->game.observations += 1;
    return PUFFER_RUNNING;
}
static void slow_draw(const Slow *env, PufferCanvas *canvas) { canvas->pixels[0] = env->game.index & 1; }
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """Return the path of an environment that takes 20 ms per step."""
    path = tmp_path_factory.mktemp("slow") / "slow.c"
    parameters = 'static const PufferParameter slow_parameters[] = {PUFFER_PARAMETER(Slow, score, 0, 0, 1, "unused")};'
    source = SLOW.replace("static const PufferParameter slow_parameters[] = {{0}};", parameters)
    path.write_text(source + "PUFFER_ENV(Slow, slow)\n")
    return str(path)


def run_in_child(play):
    """Return the exit status of a forked child that calls ``play``. The child is killed after 30 s."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            play()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("batch_size", [6, 4, 2])
def test_forked_child_receives_what_is_in_flight(batch_size):
    pool, other = (make_busy_pool("cartpole", 6, batch_size) for _ in range(2))
    for each in (pool, other):
        each.reset()
    wanted = []
    for _ in range(30):
        batch = other.recv()
        wanted.append(
            sorted(
                (env_id, *row) for env_id, row in zip(batch.env_id.tolist(), batch.observations.tolist(), strict=True)
            )
        )
        other.send(np.ones(batch_size, np.int32), batch.env_id)
    rows = {row for batch in wanted for row in batch}

    def play():
        for _ in range(20 if batch_size == 6 else 5):
            batch = pool.recv()
            for env_id, row in zip(batch.env_id.tolist(), batch.observations.tolist(), strict=True):
                assert (env_id, *row) in rows
            pool.send(np.ones(batch_size, np.int32), batch.env_id)
        pool.close()

    assert run_in_child(play) == 0
    play()


def test_helper_threads_step_while_the_caller_does_other_work(slow):
    pool = make_busy_pool(slow, 4, num_threads=3, copy=False)
    pool.step(np.zeros(4))
    observations = pool.step(np.zeros(4))[0]  # arrays that the environments write to
    pool.send(np.zeros(4))
    deadline = time.monotonic() + 60
    while (observations != 2).any() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert (observations == 2).all()
    assert pool.num_in_flight == 4
    assert pool.recv().elapsed_step.tolist() == [2] * 4


def test_ctrl_c_interrupts_recv_without_losing_results(slow):
    pool = make_pool(slow, 100)
    pool.reset()
    pool.recv()
    pool.send(np.zeros(100))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        pool.recv()
    assert time.perf_counter() - start < 1.9  # all steps take at least 2 s
    assert pool.num_in_flight == 100
    batch = pool.recv()
    assert batch.env_id.tolist() == list(range(100))
    assert (batch.observations == 1).all()


def test_second_thread_raises(slow):
    pool = make_pool(slow, 10)
    pool.step(np.zeros(10))
    thread = threading.Thread(target=pool.step, args=(np.zeros(10),))
    thread.start()
    text = ""
    while "another thread" not in text:  # until then, the error is that no environment is running
        with pytest.raises(APIUsageError) as error:
            pool.recv()
        text = str(error.value)
    for call in (lambda: pool.step(np.zeros(10)), pool.recv, pool.reset, pool.close, lambda: pool.render([0])):
        with pytest.raises(APIUsageError, match="another thread"):
            call()
    thread.join()
    assert pool.step(np.zeros(10))[4]["elapsed_step"].tolist() == [2] * 10


def test_arguments_that_call_the_pool_raise():
    pool = make_pool("cartpole", 2)

    class Meddling:
        def __array__(self, dtype=None, copy=None):
            pool.close()

    with pytest.raises(APIUsageError, match="or what it has called, is using this pool"):
        pool.step(Meddling())
    assert pool.step([0, 0])


def test_closed_pool_raises_and_can_be_closed_again():
    pool = make_busy_pool("cartpole", 8, 4)
    pool.reset()
    kept = pool.recv()
    values = kept.observations.copy()
    pool.close()
    pool.close()
    assert pool.num_in_flight == 0
    for call in (lambda: pool.step(np.zeros(8)), pool.recv, pool.reset, lambda: pool.render([0])):
        with pytest.raises(APIUsageError, match="the pool is closed; make a new one"):
            call()
    assert np.array_equal(kept.observations, values)


def test_thread_affinity_offset_pins_helper_threads():
    code = """
import os
from tests.envpool.native_pools import make_busy_pool
def cores():
    threads = {int(name) for name in os.listdir("/proc/self/task")} - {os.getpid()}
    return {frozenset(os.sched_getaffinity(thread)) for thread in threads}
pools = [make_busy_pool("cartpole", 64, 32, 3, thread_affinity_offset=offset) for offset in (0, -1)]
allowed = sorted(os.sched_getaffinity(0))
for pool, wanted in zip(pools, [{frozenset([allowed[i % len(allowed)]]) for i in (1, 2)}, {frozenset(allowed)}]):
    pool.reset()
    for _ in range(20000):
        batch = pool.recv()
        pool.send([0] * 32, batch.env_id)
        if cores() == wanted:
            break
    else:
        raise SystemExit(f"{cores()} instead of {wanted}")
assert os.sched_getaffinity(0) == set(allowed)
"""
    environment = own_modules(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


@pytest.mark.parametrize(("batch_size", "num_threads"), once([(64, 1), (64, 2), (32, 1), (32, 2)], [(64, 2), (32, 1)]))
def test_step_without_copies_does_not_allocate(batch_size, num_threads, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler on PATH; install gcc")
    library = tmp_path / "counting_allocator.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", HERE / "counting_allocator.c", "-o", library], check=True)
    code = f"""
import ctypes, itertools
import numpy as np
from tests.envpool.native_pools import make_busy_pool
count = ctypes.CDLL(None).count_allocations
pool = make_busy_pool("cartpole", 64, {batch_size}, {num_threads}, copy=False)
pool.reset()
pool.recv()
step, actions, ids = pool.step, np.ones({batch_size}, np.int32), np.arange({batch_size}, dtype=np.int32)
def play(times):
    before = count()
    for _ in itertools.repeat(None, times):
        step(actions)
    return count() - before
if {batch_size} < 64:
    pool.recv()
    ids = pool.step(actions, ids)[4]["env_id"]
    plain = step
    step = lambda actions: plain(actions, ids)
play(300)
print(play(1000))
"""
    environment = own_modules(
        LD_PRELOAD=str(library),
        PYTHONMALLOC="malloc",  # without this, small objects come from blocks and are not counted
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) <= 4  # for 1,000 steps. The counter itself creates one or two numbers.
