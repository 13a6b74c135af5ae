"""on_crash="restart": a worker that fails is replaced, and the batch goes on and says so."""

import functools
import gc
import os
import random
import re
import signal
import sys
import threading
import time

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.seeding import env_seed

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

GO_ON, RAISE, EXIT, KILL, SLEEP = range(5)


def obey(action):
    if action == RAISE:
        raise ValueError("boom")
    if action == EXIT:
        os._exit(3)
    if action == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    while action == SLEEP:
        time.sleep(60)


class Obedient(pufferlib.PufferEnv):
    """Observes its seed and how often it has acted; fails on command."""

    def __init__(self, buf=None, seed=0, on_build=None, on_reset=None):
        self.single_observation_space = gymnasium.spaces.Box(low=0, high=2**31, shape=(2,), dtype=np.int64)
        self.single_action_space = gymnasium.spaces.Discrete(5)
        self.num_agents = 1
        if on_build:
            on_build()
        self.on_reset = on_reset
        super().__init__(buf)

    def reset(self, seed=None):
        if self.on_reset:
            self.on_reset()
        self.observations[:] = seed, 0
        return self.observations, [{"reset": True}]

    def step(self, actions):
        obey(actions[0])
        self.observations[:, 1] += 1
        self.rewards[:] = 1
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        pass


def make(creator=Obedient, num_envs=4, num_workers=2, backend="Multiprocessing", **kwargs):
    return pufferlib.vector.make(
        creator,
        num_envs=num_envs,
        num_workers=num_workers,
        backend=backend,
        overwork=True,
        on_crash="restart",
        seed=5,
        **kwargs,
    )


SEEDS = [env_seed(5, index) for index in range(4)]


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (RAISE, "ValueError: boom, in step of environment 2 "),
        (EXIT, "ended with exit code 3, in step of environment 2 "),
        (KILL, "ended with signal SIGKILL, in step of environment 2 "),
        (SLEEP, "one step of an environment may take timeout_s=6 seconds, got more in environment 2 "),
    ],
)
def test_a_worker_that_fails_is_replaced(command, cause):
    with make(timeout_s=6.0) as vecenv:
        vecenv.reset()
        for _ in range(3):
            vecenv.step([GO_ON] * 4)
        observations, rewards, terminals, truncations, infos = vecenv.step([GO_ON, GO_ON, command, GO_ON])
        new = [env_seed(seed, 1) for seed in SEEDS[2:]]
        assert observations.tolist() == [[SEEDS[0], 4], [SEEDS[1], 4], [new[0], 0], [new[1], 0]]
        assert rewards.tolist() == [1, 1, 0, 0]
        assert terminals.tolist() == [False] * 4
        assert truncations.tolist() == [False, False, True, True]
        assert vecenv.masks.tolist() == [True] * 4
        assert vecenv.final_observations[2:].tolist() == [[SEEDS[2], 3], [SEEDS[3], 3]]  # not the lost step of 3
        assert infos[:2] == [{"reset": True}] * 2
        assert infos[2]["worker_restarts"] == 1
        assert cause in infos[2]["worker_error"]
        assert "seed " + str(SEEDS[2]) in infos[2]["worker_error"]
        observations, _, _, truncations, infos = vecenv.step([GO_ON] * 4)
        assert observations[:, 1].tolist() == [5, 5, 1, 1]
        assert not truncations.any()
        assert infos == []


def test_restarts_are_counted_and_no_seed_comes_twice():
    with make() as vecenv:
        vecenv.reset()
        seed, seeds = SEEDS[3], [SEEDS[3]]
        for restarts in range(1, 6):
            vecenv.step([GO_ON] * 4)
            *_, infos = vecenv.step([GO_ON, GO_ON, GO_ON, RAISE])
            assert infos[-1]["worker_restarts"] == restarts
            seed = env_seed(seed, restarts)
            seeds.append(seed)
            assert vecenv.observations[3].tolist() == [seed, 0]
        assert len(set(seeds)) == 6
        assert vecenv.reset(seed=5)[0][:, 0].tolist() == SEEDS


@pytest.mark.parametrize(
    "layout",
    [
        {"batch_size": 2},
        {"batch_size": 4},
        {"batch_size": 2, "zero_copy": False},
        {"batch_size": 4, "zero_copy": False},
        {"batch_size": 6, "zero_copy": False},
        {"batch_size": 8, "zero_copy": False},
    ],
)
def test_every_kind_of_batch_goes_on(layout):
    chance = random.Random(1)
    with make(num_envs=8, num_workers=4, **layout) as vecenv:
        last = np.full((8, 2), -1)
        told = lost = ended = 0
        deadline = time.monotonic() + 60
        vecenv.async_reset()
        while told < 4 and time.monotonic() < deadline:
            observations, rewards, _, truncations, infos, agents, _ = vecenv.recv()
            told = max([told, *(info.get("worker_restarts", 0) for info in infos)])
            for row, agent in enumerate(agents):
                seed, count = observations[row].tolist()
                if last[agent, 0] < 0 or truncations[row]:
                    assert (count, rewards[row]) == (0, 0)
                    assert seed != last[agent, 0]
                else:
                    assert (seed, count) == (last[agent, 0], last[agent, 1] + 1)
                if truncations[row]:
                    assert vecenv.final_observations[row].tolist() == last[agent].tolist()
                    lost += 1
                last[agent] = seed, count
            actions = [GO_ON] * len(agents)
            if ended == told and min(last[agents, 1]) > 0:
                actions[chance.randrange(len(agents))] = RAISE
                ended += 1
            vecenv.send(actions)
        assert told == 4
        assert lost == 2 * 4


def once(path):
    """A function that raises the first time that it is called, in whatever process."""

    def fail():
        if not path.exists():
            path.touch()
            raise ValueError("boom")

    return fail


def test_a_failure_of_reset_costs_no_episode(tmp_path):
    kwargs = [{}, {}, {"on_reset": once(tmp_path / "failed")}, {}]
    with make([Obedient] * 4, env_kwargs=kwargs) as vecenv:
        observations, infos = vecenv.reset()
        assert observations[:, 1].tolist() == [0] * 4
        assert not vecenv.truncations.any()
        assert infos[-1]["worker_restarts"] == 1
        assert "ValueError: boom, in reset of environment 2 " in infos[-1]["worker_error"]
        assert vecenv.step([GO_ON] * 4)[0][:, 1].tolist() == [1] * 4


def told(info):
    """An info as both backends give it, which differ in their names and in having workers."""
    text = info.get("worker_error", "").replace("vector.Multiprocessing", "vector.Serial")
    return {**info, "worker_error": re.sub(r"worker \d, ", "", text)}


def played(vecenv, failures, num_steps=12):
    """All that comes of steps in which environments fail: ``failures[step]`` says which one."""
    rows = [vecenv.reset()[0].tolist()]
    for step in range(num_steps):
        actions = [RAISE if failures.get(step) == index else GO_ON for index in range(vecenv.num_envs)]
        observations, rewards, terminals, truncations, infos = vecenv.step(actions)
        rows += [array.tolist() for array in (observations, rewards, terminals, truncations, vecenv.masks)]
        rows += [vecenv.final_observations[truncations].tolist(), list(map(told, infos))]
    rows += [vecenv.reset()[0].tolist(), vecenv.step([GO_ON] * vecenv.num_envs)[0].tolist()]
    return rows


@pytest.mark.parametrize("autoreset", [None, "next_step", "same_step", "disabled"])
def test_serial_replaces_what_raises_as_a_worker_of_its_own_is_replaced(autoreset):
    creator = Obedient if autoreset is None else functools.partial(GymnasiumPufferEnv, env_creator=Endless)
    failures = {1: 2, 2: 0, 5: 2, 6: 2, 8: 2}  # twice in a row, which is once less than is borne
    with make(creator, num_workers=4, autoreset=autoreset) as vecenv:
        expected = played(vecenv, failures)
    with make(creator, backend="Serial", autoreset=autoreset) as vecenv:
        assert played(vecenv, failures) == expected
        assert vecenv.driver_env is vecenv.envs[0]


def test_serial_goes_on_when_a_reset_raises(tmp_path):
    kwargs = [{}, {}, {"on_reset": once(tmp_path / "failed")}, {}]
    with make([Obedient] * 4, backend="Serial", batch_size=2, env_kwargs=kwargs) as vecenv:
        vecenv.async_reset()
        vecenv.recv()
        vecenv.send([GO_ON] * 2)
        observations, _, _, truncations, infos, agents, _ = vecenv.recv()
        assert (observations[:, 1].tolist(), agents.tolist()) == ([0, 0], [2, 3])
        assert not truncations.any()
        assert infos[1]["worker_restarts"] == 1
        assert "ValueError: boom, in reset of environment 2 (seed " in infos[1]["worker_error"]
        assert (vecenv.worker_restarts, vecenv.worker_pids) == (1, [])


def test_serial_ends_with_an_environment_that_raises_again_and_again(tmp_path):
    vecenv = make(backend="Serial")
    vecenv.reset()
    for _ in range(2):
        vecenv.step([GO_ON, RAISE, GO_ON, GO_ON])
    with pytest.raises(WorkerError, match=r"(?s)boom, in step of environment 1 .*failed 3 times without finishing"):
        vecenv.step([GO_ON, RAISE, GO_ON, GO_ON])
    with pytest.raises(APIUsageError, match="by an earlier error; make new environments"):
        vecenv.step([GO_ON] * 4)
    vecenv.close()


def test_serial_ends_when_nothing_can_be_built_anew(tmp_path):
    def on_build():
        if (tmp_path / "broken").exists():
            raise ValueError("broken")

    vecenv = make(backend="Serial", env_kwargs={"on_build": on_build})
    vecenv.reset()
    (tmp_path / "broken").touch()
    with pytest.raises(WorkerError, match=r"(?s)ValueError: broken, in build of environment 2 .*failed 3 times"):
        vecenv.step([GO_ON, GO_ON, RAISE, GO_ON])
    vecenv.close()


def test_a_failure_between_two_resets_is_forgotten():
    with make() as vecenv:
        vecenv.reset()
        vecenv.send([GO_ON, GO_ON, KILL, GO_ON])
        observations, _ = vecenv.reset(seed=5)
        assert observations.tolist() == [[seed, 0] for seed in SEEDS]
        assert not vecenv.truncations.any()
        assert vecenv.step([GO_ON] * 4)[0][:, 1].tolist() == [1] * 4


@pytest.mark.parametrize("command", [RAISE, KILL])
def test_a_worker_that_fails_again_and_again_ends_everything(command):
    vecenv = make()
    vecenv.reset()
    vecenv.step([GO_ON] * 4)
    for _ in range(2):
        vecenv.step([GO_ON, command, GO_ON, GO_ON])
    with pytest.raises(WorkerError, match=r"(?s)in step of environment 1 .*failed 3 times without finishing a step"):
        vecenv.step([GO_ON, command, GO_ON, GO_ON])
    with pytest.raises(APIUsageError, match="the workers were ended by an earlier error; make new environments"):
        vecenv.step([GO_ON] * 4)
    vecenv.close()


def test_a_replacement_that_cannot_be_built_ends_everything(tmp_path):
    def on_build():
        if (tmp_path / "broken").exists():
            raise ValueError("broken")

    vecenv = make(env_kwargs={"on_build": on_build})
    vecenv.reset()
    (tmp_path / "broken").touch()
    with pytest.raises(WorkerError, match=r"(?s)ValueError: broken, in build of environment 2 .*failed 3 times"):
        vecenv.step([GO_ON, GO_ON, KILL, GO_ON])
    vecenv.close()


def test_a_worker_that_cannot_be_made_is_not_restarted(tmp_path):
    with pytest.raises(WorkerError, match="ValueError: boom, in build of environment 0"):
        make(env_kwargs={"on_build": once(tmp_path / "failed")})


class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        self.count = np.zeros(1, np.float32)
        return self.count, {}

    def step(self, action):
        obey(action)
        self.count += 1
        return self.count, 1.0, False, False, {}


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_with_next_step_a_lost_episode_ends_before_the_step_that_resets(backend):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Endless)
    with make(creator, num_envs=2, backend=backend, autoreset="next_step") as vecenv:
        vecenv.reset()
        vecenv.step([GO_ON, GO_ON])
        observations, rewards, _, truncations, infos = vecenv.step([GO_ON, RAISE])
        assert observations.tolist() == [[2], [1]]
        assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, True])
        assert infos[0]["worker_restarts"] == 1
        observations, rewards, _, truncations, infos = vecenv.step([GO_ON, RAISE])  # which nobody obeys
        assert observations.tolist() == [[3], [0]]
        assert (rewards.tolist(), truncations.tolist(), infos) == ([1, 0], [False, False], [])
        assert vecenv.step([GO_ON, GO_ON])[0].tolist() == [[4], [1]]
        vecenv.step([GO_ON, RAISE])
        assert vecenv.reset()[0].tolist() == [[0], [0]]
        assert vecenv.step([GO_ON, GO_ON])[0].tolist() == [[1], [1]]
        assert vecenv.masks.all()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_a_step_that_only_resets_is_none_that_was_finished(backend):
    vecenv = make(functools.partial(GymnasiumPufferEnv, env_creator=Endless), backend=backend, autoreset="next_step")
    vecenv.reset()
    for _ in range(4):  # every other one is a reset
        vecenv.step([GO_ON, RAISE, GO_ON, GO_ON])
    with pytest.raises(WorkerError, match="failed 3 times without finishing a step"):
        vecenv.step([GO_ON, RAISE, GO_ON, GO_ON])
    vecenv.close()


def test_without_autoreset_a_lost_episode_is_over():
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(env_creator=Endless, buf=buf)

    with make(creator, num_envs=2, autoreset="disabled") as vecenv:
        vecenv.reset()
        vecenv.step([GO_ON, GO_ON])
        observations, rewards, _, truncations, infos = vecenv.step([GO_ON, KILL])
        assert observations.tolist() == [[2], [1]]
        assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, True])
        assert infos[0]["worker_restarts"] == 1
        for count in (3, 4):
            observations, rewards, _, truncations, _ = vecenv.step([GO_ON, KILL])  # which nobody obeys
            assert observations.tolist() == [[count], [1]]
            assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, False])
            assert vecenv.masks.tolist() == [True, False]
        assert vecenv.reset()[0].tolist() == [[0], [0]]
        assert vecenv.step([GO_ON, GO_ON])[0].tolist() == [[1], [1]]
        assert vecenv.masks.all()


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_restarts_leak_nothing():
    with make() as vecenv:
        vecenv.reset()
        gc.collect()  # of earlier tests
        before = open_files()
        for _ in range(5):
            vecenv.step([GO_ON] * 4)
            vecenv.step([KILL, GO_ON, GO_ON, GO_ON])
            assert open_files() <= before  # what earlier tests left may be closed by threads of theirs


def kill_soon(vecenv, chance):
    """Kill one of the workers within the next milliseconds, whatever it is doing then."""
    pid = chance.choice(vecenv.worker_pids)
    timer = threading.Timer(chance.uniform(0, 0.004), os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def play_until(vecenv, enough):
    """Receive and send until ``enough`` of agents and infos says so."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        *_, infos, agents, _ = vecenv.recv()
        vecenv.send([GO_ON] * len(agents))
        if enough(agents.tolist(), infos):
            return
    raise AssertionError("the batch does not go on")


@pytest.mark.all
@pytest.mark.parametrize("layout", [{}, {"batch_size": 1}, {"batch_size": 1, "zero_copy": False}])
def test_workers_killed_at_fifty_random_moments(layout):
    chance = random.Random(2)
    with make(num_envs=2, **layout) as vecenv:
        vecenv.async_reset()
        for restarts in range(1, 51):
            timer = kill_soon(vecenv, chance)
            play_until(vecenv, lambda _, infos: any("worker_restarts" in info for info in infos))
            timer.join()
            seen = []
            play_until(vecenv, lambda agents, _: seen.extend(agents) or min(map(seen.count, (0, 1))) > 2)  # noqa: B023
            assert vecenv.worker_restarts == restarts


@pytest.mark.all
def test_workers_killed_at_fifty_random_moments_without_restart():
    chance, files = random.Random(3), []
    for _ in range(50):
        vecenv = pufferlib.vector.make(
            Obedient, num_envs=2, num_workers=2, backend="Multiprocessing", overwork=True, timeout_s=60.0
        )
        vecenv.async_reset()
        timer = kill_soon(vecenv, chance)
        with pytest.raises(WorkerError, match="ended with signal SIGKILL, in"):
            play_until(vecenv, lambda *_: False)
        timer.join()
        assert vecenv.worker_pids == []
        vecenv.close()
        del vecenv
        gc.collect()  # errors refer to the memory, which takes a file
        files.append(open_files())
    assert files[-1] <= files[0], files  # others than ours may come and go between
