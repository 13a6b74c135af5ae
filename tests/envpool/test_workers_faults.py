"""Pools in worker processes: invalid calls, failures, rendering and closing."""

import functools
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from gymnasium.spaces import Box

from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.vector import Bundle, replay
from tests.envpool.pools import config, open_pool, send_and_recv
from tests.envs import FunctionEnv, ScriptedPufferEnv, counting_env
from tests.processes import own_modules

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

ENDLESS = functools.partial(counting_env, None)


@pytest.fixture(scope="module")
def four():
    """Return a pool that many tests share. Each test leaves nothing in flight."""
    with open_pool(ENDLESS, 4) as pool:
        yield pool


@pytest.mark.parametrize(
    ("env_ids", "text"),
    [
        ([4], "from 0 to 3, got 4"),
        ([-1], "from 0 to 3, got -1"),
        ([2**40], f"from 0 to 3, got {2**40}"),
        (np.array([2**63], np.uint64), f"from 0 to 3, got {2**63}"),
        ([1, 2, 1], "each environment once, got 1 at place 2"),
        ([0], "not in flight; call recv first, got 0"),
        ([1.0], "one or more ints"),
        ([[1]], "one or more ints"),
        ([], "one or more ints"),
        (1, "one or more ints"),
        ([True], "one or more ints"),
        ([[1], [1, 2]], "one or more ints"),
    ],
)
def test_invalid_ids_raise(four, env_ids, text):
    four.send(np.ones(1), np.array([0], np.int32))
    for call in (four.reset, lambda ids: four.send(np.ones(1), ids)):
        with pytest.raises(APIUsageError, match=text):
            call(env_ids)
    assert four.num_in_flight == 1
    assert four.recv().env_id.tolist() == [0]


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([1], r"shape \(2,\), one row for each environment and player, got \(1,\)"),
        (1, r"got \(\)"),
        ([[1], [1]], r"got \(2, 1\)"),
        ([1, 2], "got 2 in row 1"),
        ([-1, 0], "got -1 in row 0"),
        ([0.5, 0], "whole numbers"),
        ([0, np.nan], "got nan in row 1"),
        (["a", "b"], "must be numbers"),
        ([None, 1], "must be numbers"),
        ([[1], [1, 2]], "must be an array"),
        (np.array([2**63, 0], np.uint64), "in row 0"),
    ],
)
def test_invalid_actions_raise(four, actions, text):
    with pytest.raises(APIUsageError, match=text):
        four.send(actions, np.array([2, 1], np.int32))
    assert four.num_in_flight == 0
    assert send_and_recv(four, np.ones(2), [2, 1]).env_id.tolist() == [2, 1]


def test_float_actions_must_be_finite():
    env = functools.partial(FunctionEnv, action_space=Box(-1, 1, (2,)))
    with open_pool(env, 1) as pool:
        for number in (np.nan, np.inf):
            with pytest.raises(APIUsageError, match="finite numbers"):
                pool.send([[0, number]])
        assert send_and_recv(pool, [[1, -1]]).elapsed_step == [0]


def test_recv_that_would_wait_forever_raises():
    with open_pool(ENDLESS, 3, 2) as pool:
        with pytest.raises(APIUsageError, match="needs 2 environments in flight, got 0: it would wait for ever"):
            pool.recv()
        pool.reset(np.array([1], np.int32))
        with pytest.raises(APIUsageError, match="got 1"):
            pool.recv()
        pool.send(np.ones(1), np.array([0], np.int32))
        assert sorted(pool.recv().env_id) == [0, 1]
    with open_pool(ENDLESS, 1) as pool, pytest.raises(APIUsageError, match="needs 1"):
        pool.recv()


def fails(env):
    if env.count == 2:
        raise ValueError("out of fuel")
    return np.zeros(1, np.float32)


def test_environment_error_is_raised_with_its_index():
    with open_pool(functools.partial(FunctionEnv, observe=fails), 3) as pool:
        send_and_recv(pool, [1, 1, 1])
        send_and_recv(pool, [0, 1, 1])
        with pytest.raises(
            WorkerError, match=r"(?s)ValueError: out of fuel, in step of environment 1 .*seed 43"
        ) as error:
            send_and_recv(pool, [0], [1])
        assert "in fails" in str(error.value)
        assert pool.worker_pids == []
        for call in (pool.recv, pool.reset, lambda: pool.send([1, 1, 1])):
            with pytest.raises(APIUsageError, match="closed, because an environment failed; make a new one"):
                call()


def test_exited_process_raises():
    with open_pool(functools.partial(ScriptedPufferEnv, on_step=functools.partial(os._exit, 7)), 2) as pool:
        send_and_recv(pool, [1, 1])
        pool.send([1, 1])
        with pytest.raises(WorkerError, match="ended with exit code 7, in step of environment"):
            pool.recv()


def test_killed_idle_process_raises():
    with open_pool(ENDLESS, 2) as pool:
        send_and_recv(pool, [1, 1])
        os.kill(pool.worker_pids[1], signal.SIGKILL)
        pool.send([1, 1])
        with pytest.raises(WorkerError, match="signal SIGKILL"):
            pool.recv()


def test_timeout_raises():
    env = functools.partial(ScriptedPufferEnv, on_step=signal.pause)
    with open_pool(env, 2, backend={"timeout_s": 1.0}) as pool:
        send_and_recv(pool, [1, 1])
        pool.send([1], np.array([1], np.int32))
        with pytest.raises(WorkerError, match=r"may take 1 seconds, got more in environment 1") as caught:
            pool.recv()
        assert "; make it faster, or use pufferlib.make, which has timeout_s. " in str(caught.value)


def no_package():
    raise RuntimeError("no licence")


@pytest.mark.parametrize("maker", [no_package, lambda: 5])
def test_describe_raises_if_the_environment_cannot_be_made(maker):
    settings = config()
    with pytest.raises((WorkerError, APIUsageError), match=r"no licence|expected an environment of Gymnasium.*got 5"):
        WorkerBackend(maker).describe(settings)


def bad_info(env):
    return {"lives": "many"}


def test_info_that_does_not_fit_its_array_raises():
    env = functools.partial(counting_env, None, info=bad_info)
    with open_pool(env, 1, backend={"infos": {"lives": Box(0, 9, (), np.int32)}}) as pool:
        send_and_recv(pool, [1])
        with pytest.raises(WorkerError, match="info 'lives' must be int32"):
            send_and_recv(pool, [1])


class DrawnEnv(FunctionEnv):
    """Environment whose frame shows its step count."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, render_mode=None, fifo=None):
        super().__init__(observe=functools.partial(wait, fifo))
        self.render_mode = render_mode

    def render(self):
        return np.full((4, 6, 3), self.count, np.uint8) if self.render_mode == "rgb_array" else None


def wait(fifo, env):
    if fifo and env.count == 1:
        with open(fifo) as file:
            file.read()
    return np.zeros(1, np.float32)


def test_render_returns_frames_of_the_requested_environments():
    with open_pool(DrawnEnv, 4, render_mode="rgb_array") as pool:
        assert (pool.spec.frame_shape, pool.spec.render_fps) == ((4, 6), 20)
        pool.reset()
        pool.recv()
        send_and_recv(pool, [1, 1], [2, 0])
        send_and_recv(pool, [1], [2])
        pictures = pool.render(np.array([2, 1, 0], np.int32))
        assert pictures.shape == (3, 4, 6, 3)
        assert pictures[:, 0, 0, 0].tolist() == [2, 0, 1]
        with pytest.raises(APIUsageError, match="from 0 to 3, got 4"):
            pool.render([4])
        assert send_and_recv(pool, [1, 1, 1, 1]).elapsed_step.tolist() == [2, 1, 3, 1]


def test_render_waits_for_an_environment_in_flight(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open_pool(functools.partial(DrawnEnv, fifo=str(fifo)), 1, render_mode="rgb_array") as pool:
        send_and_recv(pool, [1])
        pool.send([1])
        writer = threading.Thread(target=fifo.write_text, args=("go on",))
        writer.start()
        assert pool.render([0]).max() == 1
        writer.join()
        assert pool.recv().elapsed_step.tolist() == [1]


def test_another_thread_may_send_while_frames_are_drawn(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def env(seed, render_mode=None):
        return DrawnEnv(render_mode, str(fifo) if seed == 42 else None)

    with open_pool(env, 2, render_mode="rgb_array", num_threads=2) as pool:
        send_and_recv(pool, [1, 1])
        pool.send(np.ones(1), np.array([0], np.int32))
        drawing = threading.Thread(target=pool.render, args=([0],))
        drawing.start()
        text = ""
        while "one thread at a time" not in text:  # until then, the error is about environment 7
            with pytest.raises(APIUsageError) as error:
                pool.render([7])
            text = str(error.value)
        pool.send(np.ones(1), np.array([1], np.int32))
        fifo.write_text("go on")
        drawing.join()
        assert pool.recv().elapsed_step.tolist() == [1, 1]


def test_render_without_render_mode_raises():
    with open_pool(DrawnEnv, 1) as pool:
        assert pool.spec.frame_shape is None
        pool.reset()
        pool.recv()
        with pytest.raises(APIUsageError, match=r"must return a picture, uint8 \(height, width, 3\), got None"):
            pool.render([0])
        assert send_and_recv(pool, [1]).elapsed_step.tolist() == [1]


def test_render_without_render_method_raises():
    with pytest.raises(APIUsageError, match=r"must have a method render\(\) to be drawn, got none"):
        open_pool(FunctionEnv, 1, render_mode="rgb_array").__enter__()


def test_recv_continues_after_ctrl_c(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open_pool(functools.partial(DrawnEnv, fifo=str(fifo)), 1) as pool:
        send_and_recv(pool, [1])
        pool.send([1])
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pool.recv()
        timer.join()
        fifo.write_text("go on")
        assert pool.recv().elapsed_step.tolist() == [1]


def test_second_thread_raises(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open_pool(functools.partial(DrawnEnv, fifo=str(fifo)), 1) as pool:
        send_and_recv(pool, [1])
        pool.send([1])
        found = []
        thread = threading.Thread(target=lambda: found.append(pool.recv()))
        thread.start()
        text = ""
        while "one thread at a time" not in text:  # until then, the error is about environment 7
            with pytest.raises(APIUsageError) as error:
                pool.render([7])
            text = str(error.value)
        fifo.write_text("go on")
        thread.join()
        assert found[0].elapsed_step.tolist() == [1]


def test_close_stops_processes_and_raises_errors():
    def refuse():
        raise OSError("still saving")

    with open_pool(ENDLESS, 2) as pool:
        pids = pool.worker_pids
        pool.close()
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        with pytest.raises(APIUsageError, match="the pool is closed; make a new one"):
            pool.recv()
    settings = config(1)
    backend = WorkerBackend(functools.partial(ScriptedPufferEnv, on_close=refuse))
    pool = backend.make(settings, backend.describe(settings))
    with pytest.raises(WorkerError, match="still saving"):
        pool.close()
    pool.close()


def test_forked_child_does_not_close_the_pool():
    with open_pool(ENDLESS, 2) as pool:
        send_and_recv(pool, [1, 1])
        child = os.fork()
        if child == 0:
            try:
                pool.send([1, 1])
            except APIUsageError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert send_and_recv(pool, [1, 1]).elapsed_step.tolist() == [1, 1]


def test_script_without_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import gymnasium
            import numpy as np
            from pufferlib.envpool.workers import WorkerBackend
            from tests.envpool.pools import config

            class Own(gymnasium.Env):
                observation_space = gymnasium.spaces.Box(0, 9, (1,))
                action_space = gymnasium.spaces.Discrete(2)
                def reset(self, *, seed=None, options=None):
                    return np.zeros(1, np.float32), {}
                def step(self, action):
                    return np.ones(1, np.float32), 0.0, False, False, {}

            settings = config(2)
            backend = WorkerBackend(Own)
            pool = backend.make(settings, backend.describe(settings))
            pool.send([1, 1])
            print(pool.recv().observations.ravel())
            """
        )
    )
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=100, env=own_modules(), check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[0. 0.]\n", "")


def fail():
    raise RuntimeError("no fuel")


def reset_and_step(env):
    with open_pool(env, 2) as pool:
        pool.reset()
        pool.recv()
        send_and_recv(pool, [1, 1])


@pytest.mark.parametrize("phase", ["build", "reset", "step"])
def test_failure_writes_a_replay_bundle(phase, tmp_path, monkeypatch):
    monkeypatch.setenv("PUFFER_REPLAYS", str(tmp_path))
    env = functools.partial(ScriptedPufferEnv, **{f"on_{phase}": fail})
    with pytest.raises(WorkerError) as raised:
        reset_and_step(env)
    (path,) = raised.value.bundles
    bundle = Bundle.load(path)
    assert (bundle.phase, bundle.seed, bundle.is_complete) == (phase, 42 + bundle.index, phase != "step")
    assert bundle.actions.ravel().tolist() == ([1] if phase == "step" else [])
    assert replay(bundle).text.startswith("same outcome ")


@pytest.mark.filterwarnings("error")
def test_pool_that_failed_to_start_is_deleted_without_warning():
    with pytest.raises(WorkerError, match="no environment"), open_pool(_no_env, 1):
        pass
    gc.collect()


def _no_env():
    raise ValueError("no environment")
