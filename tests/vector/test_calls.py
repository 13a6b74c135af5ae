"""Calls of methods, attributes, partial resets and sources of infos, on every backend."""

import functools
import os
import signal
import sys
import time

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, WorkerError
from tests.envs import ScriptedPufferEnv

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

LAYOUTS = {
    "serial": {"backend": "Serial"},
    "serial that restarts": {"backend": "Serial", "on_crash": "restart"},
    "two workers": {"backend": "Multiprocessing", "num_workers": 2},
    "four workers": {"backend": "Multiprocessing", "num_workers": 4},
    "ray": {"backend": "Ray", "num_workers": 2},
}


class TaskError(ValueError):
    def __init__(self, task, worst):
        super().__init__(f"no task {task}")
        self.worst = worst


class Tasks(gymnasium.Env):
    """Environment whose episode length is ``task``, an attribute and an option of ``reset``. It observes its steps."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1000, (2,)), gymnasium.spaces.Discrete(2)
    task = 3

    def __init__(self, name="task"):
        self.name, self.count = name, 0

    def reset(self, *, seed=None, options=None):
        self.count, self.seed = 0, seed
        self.task = (options or {}).get("task", self.task)
        return self._observe(), {"seed": seed, "options": options} if options or seed is not None else {}

    def step(self, action):
        self.count += 1
        over = self.count >= self.task
        return self._observe(), 1.0, over, False, {"steps": self.count} if over else {}

    def _observe(self):
        return np.array([self.count, self.task], np.float32)

    def describe(self, start, *, end="."):
        return f"{start}{self.name} {self.task}{end}"

    def render(self):
        return np.full((1, 1, 3), self.task, np.uint8)

    def fail(self, task):
        raise TaskError(task, 7)

    def unsendable(self):
        return lambda: 0


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.all if name == "ray" else ()) for name in LAYOUTS])
def make(request):
    """Function that makes four environments with this layout. They are closed after the test."""
    layout, made = LAYOUTS[request.param], []
    if layout["backend"] == "Ray":
        pytest.importorskip("ray")

    def make(creator=Tasks, **options):
        creators = [
            functools.partial(GymnasiumPufferEnv, env_creator=creator, env_args=[f"task {i}"]) for i in range(4)
        ]
        made.append(pufferlib.vector.make(creators, num_envs=4, overwork=True, **layout, **options))
        return made[-1]

    yield make
    for vecenv in made:
        vecenv.close()


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Shut down the Ray cluster, if one was started, after the last test of this module."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


def test_call_get_attr_and_set_attr_reach_the_wrapped_environment(make):
    vecenv = make()
    assert vecenv.call("describe", "<", end=">") == [f"<task {i} 3>" for i in range(4)]
    vecenv.reset()
    assert vecenv.call("describe", "", env_ids=[2, 0]) == ["task 2 3.", "task 0 3."]
    assert vecenv.get_attr("name", env_ids=1) == ["task 1"]
    vecenv.set_attr("task", [5, 6], env_ids=[1, 3])
    vecenv.set_attr("name", "same")
    assert vecenv.get_attr("task") == [3, 5, 3, 6]
    assert vecenv.get_attr("name", env_ids=np.array([True, False, False, True])) == ["same", "same"]
    terminals = [vecenv.step([0] * 4)[2].tolist() for _ in range(3)][-1]
    assert terminals == [True, False, True, False], "steps use the new values"


def test_render_draws_one_environment(make):
    vecenv = make()
    vecenv.reset(options={"task": 50})
    vecenv.reset(env_ids=2, options={"task": 60})
    assert [vecenv.render(env).item(0) for env in (0, 2)] == [50, 60]
    with pytest.raises(APIUsageError, match=r"env_ids must name environments 0 to 3, each once, got \[4\]"):
        vecenv.render(4)


def test_load_state_continues_from_save_state(make):
    vecenv = make()
    vecenv.reset(options={"task": 50})
    for count in (3, 1):
        vecenv.reset(env_ids=count, options={"task": 60 + count})
        vecenv.step([0] * 4)
    states = vecenv.save_state()
    shown = vecenv.observations.copy()
    expected = [vecenv.step([1] * 4)[0].tolist() for _ in range(9)]
    assert np.array_equal(vecenv.load_state(states), shown)
    assert [vecenv.step([1] * 4)[0].tolist() for _ in range(9)] == expected
    assert np.array_equal(vecenv.load_state([states[3], states[3]], env_ids=[0, 2])[::2], shown[[3, 3]])
    with pytest.raises(APIUsageError, match=r"load_state: state must be the bytes that save_state returned, got b'x'"):
        vecenv.load_state(b"x", env_ids=2)
    for wrong in (None, 3):
        with pytest.raises(APIUsageError, match=rf"states must be a list of .* returned, got {wrong}; give one state"):
            vecenv.load_state(wrong)
    vecenv.step([0] * 4)


def test_exceptions_of_calls_keep_their_class_and_batch_continues(make):
    vecenv = make()
    vecenv.reset()
    with pytest.raises(TaskError, match="no task 9") as caught:
        vecenv.call("fail", 9, env_ids=[3])
    assert caught.value.worst == 7
    assert caught.value.__notes__[-1].startswith("In environment 3:\nTraceback")
    with pytest.raises(AttributeError, match="nothing"):
        vecenv.get_attr("nothing")
    assert vecenv.step([0] * 4)[0][:, 0].tolist() == [1] * 4


def test_call_between_send_and_recv_is_refused(make):
    vecenv = make()
    vecenv.reset()
    vecenv.send([0] * 4)
    with pytest.raises(APIUsageError, match="the next call must be recv, got call"):
        vecenv.call("describe", "")
    vecenv.recv()
    assert vecenv.call("describe", "", env_ids=0) == ["task 0 3."]


@pytest.mark.parametrize(
    ("env_ids", "message"),
    [
        ([4], r"environments 0 to 3, each once, got \[4\]"),
        ([1, 1], "each once"),
        ([0.5], "a list of ints"),
        ("a", "ints"),
    ],
)
def test_invalid_env_ids_are_refused(env_ids, message):
    with pufferlib.vector.make(ScriptedPufferEnv, num_envs=4, backend="Serial") as vecenv:
        vecenv.reset()
        with pytest.raises(APIUsageError, match=message):
            vecenv.get_attr("num_agents", env_ids=env_ids)


def test_partial_reset_leaves_other_environments_unchanged(make):
    vecenv = make()
    vecenv.reset(seed=1)
    vecenv.step([0] * 4)
    observations, infos = vecenv.reset([10, 11], env_ids=[0, 3], options=[{"task": 2}, None])
    assert observations.tolist() == [[0, 2], [1, 3], [1, 3], [0, 3]]
    assert infos == [{"seed": 10, "options": {"task": 2}}, {"seed": 11, "options": None}]
    assert vecenv.info_sources == [(0, "reset"), (3, "reset")]
    observations, _, terminals, *_ = vecenv.step([0] * 4)
    assert observations[:, 0].tolist() == [1, 2, 2, 1]
    assert not terminals.any()
    observations, _, terminals, *_ = vecenv.step([0] * 4)
    assert terminals.tolist() == [True, True, True, False]
    mask = np.array([False, True, False, False])
    assert vecenv.reset(env_ids=mask)[0][:, 0].tolist() == [2, 0, 3, 2]
    assert vecenv.step([0] * 4)[0][:, 0].tolist() == [0, 1, 0, 3], "the other finished environments reset in this step"


def test_reset_takes_seeds_and_options_as_one_value_or_a_list(make):
    vecenv = make()
    vecenv.reset()  # the first reset seeds each environment
    _, infos = vecenv.reset([5, 6, None, 8], options={"task": 4})
    assert [info["seed"] for info in infos] == [5, 6, None, 8]
    assert vecenv.get_attr("task") == [4] * 4
    vecenv.reset(options=[{"task": 1}, None, None, {"task": 2}])
    assert vecenv.get_attr("task") == [1, 4, 4, 2]
    with pytest.raises(APIUsageError, match="seed must be one for all, or a list of 4, got 2"):
        vecenv.reset([1, 2])
    for wrong in (-1, 2**63):
        with pytest.raises(APIUsageError, match=rf"the seed of an environment must be from 0 to .*, got {wrong}"):
            vecenv.reset([5, 6, wrong, 8])
    with pytest.raises(APIUsageError, match="options must be a dict, or a list of one for each environment, got 3"):
        vecenv.reset(options=3)
    with pytest.raises(APIUsageError, match="options must be one for all, or a list of 1, got 2"):
        vecenv.reset(options=[{}, {}], env_ids=[1])


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_info_sources_name_environment_and_call(make, autoreset):
    vecenv = make(autoreset=autoreset)
    vecenv.reset()
    vecenv.reset([1, None, None, None], options=[None, {"task": 1}, None, {"task": 2}])
    assert vecenv.info_sources == [(0, "reset"), (1, "reset"), (3, "reset")]
    *_, infos = vecenv.step([0] * 4)
    assert infos == [{"steps": 1}]
    assert vecenv.info_sources == [(1, "step")]
    *_, infos = vecenv.step([0] * 4)
    assert vecenv.info_sources == [(3, "step")] if autoreset == "next_step" else [(1, "step"), (3, "step")]
    before = list(vecenv.info_sources)
    vecenv.get_attr("task", env_ids=[0])
    assert vecenv.info_sources == before, "calls leave the infos as they are"


class Greets(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(2)

    def __init__(self, name):
        pass

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {"hello": 1}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, bool(action), False, {"bye": 1} if action else {}


def test_info_sources_distinguish_last_step_and_reset(make):
    vecenv = make(Greets, autoreset="same_step")
    vecenv.reset()
    *_, infos = vecenv.step([0, 1, 0, 1])
    assert infos == [{"bye": 1}, {"hello": 1}] * 2
    assert vecenv.info_sources == [(1, "step"), (1, "reset"), (3, "step"), (3, "reset")]


class Fragile(Greets):
    def step(self, action):
        if action and self.np_random.random() < 2:
            raise RuntimeError("I broke")
        return super().step(0)


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_info_sources_mark_restarts(backend, autoreset):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Fragile, env_args=["fragile"])
    with pufferlib.vector.make(
        creator, num_envs=2, num_workers=2, backend=backend, on_crash="restart", autoreset=autoreset, overwork=True
    ) as vecenv:
        vecenv.reset()
        *_, infos = vecenv.step([0, 1])
        assert [kind for env_id, kind in vecenv.info_sources if env_id == 1][-1] == "restart"
        assert len(infos) == len(vecenv.info_sources)
        assert "worker_error" in infos[-1]


def test_calls_and_partial_resets_outside_the_last_batch_are_refused():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Tasks)
    with pufferlib.vector.make(
        creator, num_envs=4, num_workers=4, batch_size=2, backend="Multiprocessing", overwork=True
    ) as vecenv:
        vecenv.reset()
        assert vecenv.get_attr("task", env_ids=[0, 1]) == [3, 3]
        with pytest.raises(APIUsageError, match=r"those of the last batch, got \[2, 3\]; .* after the recv"):
            vecenv.get_attr("task")
        assert vecenv.reset([4, 5], env_ids=[0, 1])[0].tolist() == [[0, 3], [0, 3]]
        vecenv.send([0, 0])
        vecenv.recv()
        assert vecenv.get_attr("count", env_ids=[2, 3]) == [0, 0]


def test_partial_reset_updates_a_copied_batch():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Tasks)
    with pufferlib.vector.make(
        creator, num_envs=4, num_workers=4, batch_size=2, zero_copy=False, backend="Multiprocessing", overwork=True
    ) as vecenv:
        vecenv.reset()
        vecenv.send([0, 0])
        *_, ids, _ = vecenv.recv()
        observations, _ = vecenv.reset(env_ids=[int(ids[1])], options={"task": 9})
        assert observations[1].tolist() == [0, 9]


def test_unpicklable_result_of_call_raises_and_batch_continues():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Tasks)
    with pufferlib.vector.make(creator, num_envs=2, num_workers=2, backend="Multiprocessing", overwork=True) as vecenv:
        vecenv.reset()
        with pytest.raises(APIUsageError, match="a result must be something that can be pickled, got <function"):
            vecenv.call("unsendable")
        assert vecenv.get_attr("count") == [0, 0]


def test_worker_exit_during_call_raises_worker_error():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Tasks)
    with pufferlib.vector.make(creator, num_envs=2, num_workers=2, backend="Multiprocessing", overwork=True) as vecenv:
        vecenv.reset()
        vecenv.set_attr("describe", os._exit, env_ids=1)
        with pytest.raises(WorkerError, match="in describe of environment 1"):
            vecenv.call("describe", 3)


def test_native_reset_without_options_parameter_raises():
    vecenv = pufferlib.vector.make(ScriptedPufferEnv, num_envs=2, backend="Serial")
    with vecenv, pytest.raises(APIUsageError, match=r"ScriptedPufferEnv: reset must take options .*options=None"):
        vecenv.reset(options={"a": 1})


def test_native_backend_has_call_get_attr_and_set_attr():
    env = pufferlib.vector.make(ScriptedPufferEnv)
    env.set_attr("name", ["squared"])
    assert env.get_attr("name") == ["squared"]
    with pytest.raises(APIUsageError, match=r"a list must hold one value, got 2 for 'name'; .* pass \[values\]"):
        env.set_attr("name", ["squared", "round"])
    env.set_attr("name", [["squared", "round"]])
    assert env.get_attr("name") == [["squared", "round"]]
    assert env.call("reset")[0][1] == []


def test_set_attr_refuses_unknown_attributes_of_c_environments():
    with pufferlib.make("breakout", num_envs=2) as env:
        with pytest.raises(APIUsageError, match=r"Breakout.set_attr: a C environment has no attribute 'ball_size'"):
            env.set_attr("ball_size", 3)
        env.set_attr("name", "bricks")
        assert env.get_attr("name") == ["bricks"]


def test_ctrl_c_interrupts_call_and_batch_continues():
    class Slow(Tasks):
        def wait(self):
            time.sleep(0.5)
            return "late"

    creator = functools.partial(GymnasiumPufferEnv, env_creator=Slow)
    with pufferlib.vector.make(creator, num_envs=2, num_workers=2, backend="Multiprocessing", overwork=True) as vecenv:
        vecenv.reset()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            vecenv.call("wait")
        assert vecenv.get_attr("name") == ["task", "task"], "got the late reply to wait()"
        vecenv.reset()
        vecenv.step([0, 0])


def test_call_sends_and_returns_more_than_mailbox_and_pipe_hold(make):
    vecenv = make()
    for size in (3900, 4200, 1 << 20, 1):
        big = bytes(size)
        vecenv.set_attr("name", big)
        assert vecenv.get_attr("name", env_ids=[1]) == [big]
