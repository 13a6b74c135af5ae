"""``on_crash="restart"``: failed workers are replaced and reported in infos, and the batch continues."""

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
import psutil
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.seeding import env_seed
from tests.envs import counting_env
from tests.tiers import as_all

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

CONTINUE, RAISE, EXIT, KILL, SLEEP = range(5)


def fail_on_command(action):
    if action == RAISE:
        raise ValueError("boom")
    if action == EXIT:
        os._exit(3)
    if action == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    while action == SLEEP:
        time.sleep(60)


class FailingEnv(pufferlib.PufferEnv):
    """Environment that observes its seed and its number of steps, and fails if an action commands it."""

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
        fail_on_command(actions[0])
        self.observations[:, 1] += 1
        self.rewards[:] = 1
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        pass


def make(creator=FailingEnv, num_envs=4, num_workers=2, backend="Multiprocessing", **kwargs):
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


def fail_on_last_action(env):
    fail_on_command(env.actions[-1])
    return {}


# A Gymnasium environment with endless episodes, which observes its number of steps and fails like FailingEnv.
make_endless = functools.partial(
    counting_env, None, 100, action_space=gymnasium.spaces.Discrete(5), info=fail_on_last_action
)


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (RAISE, "ValueError: boom, in step of environment 2 "),
        (EXIT, "ended with exit code 3, in step of environment 2 "),
        (KILL, "ended with signal SIGKILL, in step of environment 2 "),
        (SLEEP, "one step of an environment may take 2 seconds, got more in environment 2 "),
    ],
)
def test_failed_worker_is_replaced(command, cause):
    with make(timeout_s=2.0 if command == SLEEP else 60.0) as vecenv:
        vecenv.reset()
        for _ in range(3):
            vecenv.step([CONTINUE] * 4)
        observations, rewards, terminals, truncations, infos = vecenv.step([CONTINUE, CONTINUE, command, CONTINUE])
        new = [env_seed(seed, 1) for seed in SEEDS[2:]]
        assert observations.tolist() == [[SEEDS[0], 4], [SEEDS[1], 4], [new[0], 0], [new[1], 0]]
        assert rewards.tolist() == [1, 1, 0, 0]
        assert terminals.tolist() == [False] * 4
        assert truncations.tolist() == [False, False, True, True]
        assert vecenv.masks.tolist() == [True] * 4
        assert vecenv.final_observations[2:].tolist() == [
            [SEEDS[2], 3],
            [SEEDS[3], 3],
        ]  # environment 3 also loses its step
        assert infos[:2] == [{"reset": True}] * 2
        assert infos[2]["worker_restarts"] == 1
        assert cause in infos[2]["worker_error"]
        assert "seed " + str(SEEDS[2]) in infos[2]["worker_error"]
        observations, _, _, truncations, infos = vecenv.step([CONTINUE] * 4)
        assert observations[:, 1].tolist() == [5, 5, 1, 1]
        assert not truncations.any()
        assert infos == []


class LargeEnv(pufferlib.PufferEnv):
    """Environment whose spaces and infos do not fit into the pipe of a worker."""

    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (160, 210, 3), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(5)
        self.num_agents = 1
        super().__init__(buf)

    def reset(self, seed=None):
        return self.observations, []

    def step(self, actions):
        infos = []
        if actions[0] == SLEEP:  # the process ends while it sends the info, for which nobody waits yet
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
            infos.append({"large": bytes(2**21)})
        else:
            fail_on_command(actions[0])
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self):
        pass


@pytest.mark.parametrize("command", [EXIT, SLEEP], ids=["large spaces", "killed within a message"])
def test_worker_with_large_messages_is_replaced(command):
    with make(LargeEnv, num_envs=2, timeout_s=20.0) as vecenv:
        vecenv.reset()
        second = psutil.Process(vecenv.worker_pids[1])
        vecenv.send([CONTINUE, command])
        deadline = time.monotonic() + 20
        while second.is_running() and second.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.02)
        _, _, _, truncations, infos, _, _ = vecenv.recv()
        assert truncations.tolist() == [False, True]
        assert infos[0]["worker_restarts"] == 1
        assert not vecenv.step([CONTINUE, CONTINUE])[3].any()


def test_restarts_are_counted_and_use_new_seeds():
    with make() as vecenv:
        vecenv.reset()
        seed, seeds = SEEDS[3], [SEEDS[3]]
        for restarts in range(1, 6):
            vecenv.step([CONTINUE] * 4)
            *_, infos = vecenv.step([CONTINUE, CONTINUE, CONTINUE, RAISE])
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
        as_all({"batch_size": 4}),
        as_all({"batch_size": 2, "zero_copy": False}),
        as_all({"batch_size": 4, "zero_copy": False}),
        {"batch_size": 6, "zero_copy": False},
        as_all({"batch_size": 8, "zero_copy": False}),
    ],
)
def test_every_batch_layout_continues_after_restarts(layout):
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
            actions = [CONTINUE] * len(agents)
            if ended == told and min(last[agents, 1]) > 0:
                actions[chance.randrange(len(agents))] = RAISE
                ended += 1
            vecenv.send(actions)
        assert told == 4
        assert lost == 2 * 4


def fail_once(path):
    """Return a function that raises at its first call in any process. ``path`` is a file that it creates then."""

    def fail():
        if not path.exists():
            path.touch()
            raise ValueError("boom")

    return fail


def test_failed_reset_truncates_no_episode(tmp_path):
    kwargs = [{}, {}, {"on_reset": fail_once(tmp_path / "failed")}, {}]
    with make([FailingEnv] * 4, env_kwargs=kwargs) as vecenv:
        observations, infos = vecenv.reset()
        assert observations[:, 1].tolist() == [0] * 4
        assert not vecenv.truncations.any()
        assert infos[-1]["worker_restarts"] == 1
        assert "ValueError: boom, in reset of environment 2 " in infos[-1]["worker_error"]
        assert vecenv.step([CONTINUE] * 4)[0][:, 1].tolist() == [1] * 4


def without_backend(info):
    """Return ``info`` without the names of backend and worker, which differ between backends."""
    text = info.get("worker_error", "").replace("vector.Multiprocessing", "vector.Serial")
    return {**info, "worker_error": re.sub(r"worker \d, ", "", text)}


def play(vecenv, failures, num_steps=12):
    """Return all that is observed in steps in which environment ``failures[step]`` fails."""
    rows = [vecenv.reset()[0].tolist()]
    for step in range(num_steps):
        actions = [RAISE if failures.get(step) == index else CONTINUE for index in range(vecenv.num_envs)]
        observations, rewards, terminals, truncations, infos = vecenv.step(actions)
        rows += [array.tolist() for array in (observations, rewards, terminals, truncations, vecenv.masks)]
        rows += [vecenv.final_observations[truncations].tolist(), list(map(without_backend, infos))]
    rows += [vecenv.reset()[0].tolist(), vecenv.step([CONTINUE] * vecenv.num_envs)[0].tolist()]
    return rows


@pytest.mark.parametrize("autoreset", [None, "next_step", "same_step", "disabled"])
def test_serial_restarts_like_one_worker_per_environment(autoreset):
    creator = FailingEnv if autoreset is None else functools.partial(GymnasiumPufferEnv, env_creator=make_endless)
    failures = {1: 2, 2: 0, 5: 2, 6: 2, 8: 2}  # two failures in a row, the third would raise
    with make(creator, num_workers=4, autoreset=autoreset) as vecenv:
        expected = play(vecenv, failures)
    with make(creator, backend="Serial", autoreset=autoreset) as vecenv:
        assert play(vecenv, failures) == expected
        assert vecenv.driver_env is vecenv.envs[0]


def test_serial_continues_after_a_failed_reset(tmp_path):
    kwargs = [{}, {}, {"on_reset": fail_once(tmp_path / "failed")}, {}]
    with make([FailingEnv] * 4, backend="Serial", batch_size=2, env_kwargs=kwargs) as vecenv:
        vecenv.async_reset()
        vecenv.recv()
        vecenv.send([CONTINUE] * 2)
        observations, _, _, truncations, infos, agents, _ = vecenv.recv()
        assert (observations[:, 1].tolist(), agents.tolist()) == ([0, 0], [2, 3])
        assert not truncations.any()
        assert infos[1]["worker_restarts"] == 1
        assert "ValueError: boom, in reset of environment 2 (seed " in infos[1]["worker_error"]
        assert (vecenv.worker_restarts, vecenv.worker_pids) == (1, [])


def test_failure_before_a_reset_is_not_reported():
    with make() as vecenv:
        vecenv.reset()
        vecenv.send([CONTINUE, CONTINUE, KILL, CONTINUE])
        observations, _ = vecenv.reset(seed=5)
        assert observations.tolist() == [[seed, 0] for seed in SEEDS]
        assert not vecenv.truncations.any()
        assert vecenv.step([CONTINUE] * 4)[0][:, 1].tolist() == [1] * 4


FAILURES = [("Serial", RAISE), ("Multiprocessing", RAISE), ("Multiprocessing", KILL)]


@pytest.mark.parametrize(("backend", "command"), FAILURES)
def test_three_failures_in_a_row_raise(backend, command):
    vecenv = make(backend=backend)
    vecenv.reset()
    vecenv.step([CONTINUE] * 4)
    for _ in range(2):
        vecenv.step([CONTINUE, command, CONTINUE, CONTINUE])
    with pytest.raises(WorkerError, match=r"(?s)in step of environment 1 .*failed 3 times without finishing a step"):
        vecenv.step([CONTINUE, command, CONTINUE, CONTINUE])
    with pytest.raises(APIUsageError, match="by an earlier error; make new environments"):
        vecenv.step([CONTINUE] * 4)
    vecenv.close()


@pytest.mark.parametrize(("backend", "command"), FAILURES)
def test_replacement_that_cannot_be_built_raises(tmp_path, backend, command):
    def on_build():
        if (tmp_path / "broken").exists():
            raise ValueError("broken")

    vecenv = make(backend=backend, env_kwargs={"on_build": on_build})
    vecenv.reset()
    (tmp_path / "broken").touch()
    with pytest.raises(WorkerError, match=r"(?s)ValueError: broken, in build of environment 2 .*failed 3 times"):
        vecenv.step([CONTINUE, CONTINUE, command, CONTINUE])
    vecenv.close()


def test_failure_of_the_first_build_raises(tmp_path):
    with pytest.raises(WorkerError, match="ValueError: boom, in build of environment 0"):
        make(env_kwargs={"on_build": fail_once(tmp_path / "failed")})


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_next_step_autoreset_truncates_lost_episode_and_then_resets(backend):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=make_endless)
    with make(creator, num_envs=2, backend=backend, autoreset="next_step") as vecenv:
        vecenv.reset()
        vecenv.step([CONTINUE, CONTINUE])
        observations, rewards, _, truncations, infos = vecenv.step([CONTINUE, RAISE])
        assert observations.tolist() == [[2], [1]]
        assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, True])
        assert infos[0]["worker_restarts"] == 1
        observations, rewards, _, truncations, infos = vecenv.step([CONTINUE, RAISE])  # ignored by a step that resets
        assert observations.tolist() == [[3], [0]]
        assert (rewards.tolist(), truncations.tolist(), infos) == ([1, 0], [False, False], [])
        assert vecenv.step([CONTINUE, CONTINUE])[0].tolist() == [[4], [1]]
        vecenv.step([CONTINUE, RAISE])
        assert vecenv.reset()[0].tolist() == [[0], [0]]
        assert vecenv.step([CONTINUE, CONTINUE])[0].tolist() == [[1], [1]]
        assert vecenv.masks.all()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_resetting_step_does_not_count_as_finished_step(backend):
    vecenv = make(
        functools.partial(GymnasiumPufferEnv, env_creator=make_endless), backend=backend, autoreset="next_step"
    )
    vecenv.reset()
    for _ in range(4):  # every second step only resets
        vecenv.step([CONTINUE, RAISE, CONTINUE, CONTINUE])
    with pytest.raises(WorkerError, match="failed 3 times without finishing a step"):
        vecenv.step([CONTINUE, RAISE, CONTINUE, CONTINUE])
    vecenv.close()


def test_disabled_autoreset_keeps_lost_episode_finished():
    def creator(buf=None, seed=0):
        return GymnasiumPufferEnv(env_creator=make_endless, buf=buf)

    with make(creator, num_envs=2, autoreset="disabled") as vecenv:
        vecenv.reset()
        vecenv.step([CONTINUE, CONTINUE])
        observations, rewards, _, truncations, infos = vecenv.step([CONTINUE, KILL])
        assert observations.tolist() == [[2], [1]]
        assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, True])
        assert infos[0]["worker_restarts"] == 1
        for count in (3, 4):
            observations, rewards, _, truncations, _ = vecenv.step(
                [CONTINUE, KILL]
            )  # ignored by a finished environment
            assert observations.tolist() == [[count], [1]]
            assert (rewards.tolist(), truncations.tolist()) == ([1, 0], [False, False])
            assert vecenv.masks.tolist() == [True, False]
        assert vecenv.reset()[0].tolist() == [[0], [0]]
        assert vecenv.step([CONTINUE, CONTINUE])[0].tolist() == [[1], [1]]
        assert vecenv.masks.all()


class Unending(FailingEnv):
    """FailingEnv with autoreset "disabled", which must be reset before a step."""

    autoreset = "disabled"
    is_reset = False

    def reset(self, seed=None):
        self.is_reset = True
        return super().reset(seed)

    def step(self, actions):
        assert self.is_reset
        return super().step(actions)


def test_lost_environments_wait_for_their_own_reset():
    with make(Unending, num_envs=3, num_workers=1) as vecenv:
        vecenv.reset()
        vecenv.step([CONTINUE] * 3)
        assert vecenv.step([KILL, CONTINUE, CONTINUE])[3].all()
        seeds = [env_seed(seed, 1) for seed in SEEDS[:3]]
        assert vecenv.reset(env_ids=[1])[0][1].tolist() == [seeds[1], 0], "the seed of the replacement"
        for count in (1, 2):
            observations, rewards, *_ = vecenv.step([KILL, CONTINUE, KILL])
            assert observations[1].tolist() == [seeds[1], count]
            assert rewards.tolist() == [0, 1, 0]
        assert vecenv.reset(env_ids=[0, 2])[0][[0, 2]].tolist() == [[seeds[0], 0], [seeds[2], 0]]
        assert vecenv.step([CONTINUE] * 3)[0][:, 1].tolist() == [1, 3, 1]


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_restarts_leak_no_files():
    with make() as vecenv:
        vecenv.reset()
        gc.collect()  # closes files of earlier tests
        before = open_files()
        for _ in range(5):
            vecenv.step([CONTINUE] * 4)
            vecenv.step([KILL, CONTINUE, CONTINUE, CONTINUE])
            assert open_files() <= before  # threads of earlier tests may still close some


def kill_soon(vecenv, chance):
    """Kill a random worker at a random moment within the next 4 ms."""
    pid = chance.choice(vecenv.worker_pids)
    timer = threading.Timer(chance.uniform(0, 0.004), os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def play_until(vecenv, enough):
    """Receive and send until ``enough(agents, infos)`` is true."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        *_, infos, agents, _ = vecenv.recv()
        vecenv.send([CONTINUE] * len(agents))
        if enough(agents.tolist(), infos):
            return
    raise AssertionError("the batch does not continue")


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
            FailingEnv, num_envs=2, num_workers=2, backend="Multiprocessing", overwork=True, timeout_s=60.0
        )
        vecenv.async_reset()
        timer = kill_soon(vecenv, chance)
        with pytest.raises(WorkerError, match="ended with signal SIGKILL, in"):
            play_until(vecenv, lambda *_: False)
        timer.join()
        assert vecenv.worker_pids == []
        vecenv.close()
        del vecenv
        gc.collect()  # errors refer to the shared memory, which needs a file descriptor
        files.append(open_files())
    assert files[-1] <= files[0], files  # other threads may open and close files in between
