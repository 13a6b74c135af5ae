"""Random and invalid calls of the whole interface, compared with a slow model of the rules."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib.envpool as envpool
from pufferlib.envpool import pool_env
from pufferlib.envpool.native import NativeBackend
from pufferlib.envpool.workers import WorkerBackend
from pufferlib.errors import APIUsageError
from tests.envpool.counting import CUT, END, CountingEnv, CountingParallelEnv
from tests.envpool.native_pools import BusyBackend
from tests.tiers import once

IN_C = str(Path(__file__).with_name("counting.c"))
envpool.register("FuzzNative-v0", NativeBackend(IN_C))
envpool.register("FuzzNativeTwo-v0", BusyBackend(IN_C, players=2))
envpool.register("FuzzWorkers-v0", WorkerBackend(CountingEnv))
envpool.register("FuzzWorkersTwo-v0", WorkerBackend(CountingParallelEnv))

HOSTILE_IDS = [
    [-1],
    [10**6],
    [2**40],
    [0, 0],
    [0.5],
    0,
    [],
    "0",
    [[0]],
    [None],
    np.array(1),
    np.ones(2, bool),
    object(),
]
HOSTILE_ACTIONS = [
    0,
    None,
    "left",
    [5],
    [-1],
    [0.5],
    [np.nan],
    [np.inf],
    [[0], [0]],
    [],
    {},
    np.ones((1, 1)),
    [1j],
    [2**70],
]


class Model:
    """Model of the rules in docs/envpool.md, one environment after the other."""

    def __init__(self, config: Any) -> None:
        self.num_envs, self.batch_size = config["num_envs"], config["batch_size"]
        self.players, self.limit, self.autoreset = (
            config[name] for name in ("max_num_players", "max_episode_steps", "autoreset")
        )
        self.is_sync = self.num_envs == self.batch_size
        self.episode, self.count = [-1] * self.num_envs, [0] * self.num_envs
        self.over = [True] * self.num_envs
        self.in_flight: dict[int, Any] = {}  # results, in the order of sending

    def may_send(self, ids: list[int]) -> bool:
        return self.may_reset(ids) and (self.autoreset != "disabled" or not any(self.over[i] for i in ids))

    def may_reset(self, ids: list[int]) -> bool:
        return not any(i in self.in_flight for i in ids)

    def may_recv(self, more: int = 0) -> bool:
        return len(self.in_flight) + more >= (1 if self.is_sync else self.batch_size)

    def send(self, ids: list[int], actions: Any) -> None:
        for i, action in zip(ids, np.reshape(actions, (len(ids), self.players)), strict=True):
            self.in_flight[i] = self._begin(i) if self.over[i] else self._act(i, action)

    def reset(self, ids: list[int]) -> None:
        for i in ids:
            self.in_flight[i] = self._begin(i)

    def _begin(self, i: int) -> Any:
        self.episode[i] += 1
        self.count[i], self.over[i] = 0, False
        return self._rows(i, np.zeros(self.players)), [0] * self.players, False, False, 0

    def _act(self, i: int, action: Any) -> Any:
        self.count[i] += 1
        count = self.count[i]
        rows, rewards = self._rows(i, action), [np.float32(count + each / 10) for each in action]
        ends, cut = END in action, CUT in action and END not in action
        self.over[i] = ends or cut or count == self.limit
        outcome = (rows, rewards, ends, cut or count == self.limit, count)
        if self.over[i] and self.autoreset == "same_step":
            return self._begin(i)[0], *outcome[1:4], 0
        return outcome

    def _rows(self, i: int, action: Any) -> Any:
        return [[i, self.episode[i], self.count[i], each] for each in action]

    def compare(self, ids: list[int], values: Any, info: Any) -> None:
        """Remove these environments from flight, and compare their values with the expected ones."""
        if self.is_sync:
            assert ids == [*self.in_flight]
        else:
            assert len({*ids}) == len(ids) == self.batch_size
        found = [self.in_flight.pop(i) for i in ids]
        assert info["players"]["env_id"].tolist() == [i for i in ids for _ in range(self.players)]
        assert values[0].tolist() == [row for outcome in found for row in outcome[0]]
        assert info["elapsed_step"].tolist() == [outcome[4] for outcome in found]
        if len(values) > 2:
            assert values[1].tolist() == [reward for outcome in found for reward in outcome[1]]
            assert values[2].tolist() == [outcome[2] for outcome in found]
            assert values[3].tolist() == [outcome[3] for outcome in found]


def hostile_call(env: Any, random: np.random.Generator) -> tuple[Any, ...]:
    """Return a random call that must raise an error, with its arguments."""
    num_envs, players = env.num_envs, env.config["max_num_players"]
    ids = HOSTILE_IDS[random.integers(len(HOSTILE_IDS))]
    actions = HOSTILE_ACTIONS[random.integers(len(HOSTILE_ACTIONS))]
    fine = np.zeros(players * num_envs, int)
    calls = [
        (env.step, fine[:players], ids),
        (env.send, {"action": fine[:players], "env_id": ids}),
        (env.reset, ids),
        (env.async_reset, ids),
        (env.render, -1),
        (env.render, [num_envs]),
        (env.step, actions, [0]),
        (env.send, actions, [0]),
        (env.step, actions),
        (env.send, {"action": actions, "env_id": [0]}),
        (env.send, {"action": fine, "id": [0]}),
        (env.step, np.append(fine, 0)),
        (env.step, fine[:players], [0, 1]),
        (env.recv, False, False),
    ]
    return calls[random.integers(len(calls))]


class Fuzz:
    """Random calls of one environment."""

    def __init__(self, task_id: str, seed: int, **keywords: Any) -> None:
        self.env = envpool.make_gymnasium(task_id, seed=0, render_mode="rgb_array", **keywords)
        self.model = Model(self.env.config)
        self.random = np.random.default_rng(seed)

    def play(self, calls: int) -> None:
        names = ["step", "send", "recv", "reset", "async_reset", "render", "hostile"]
        chances = [0.35, 0.15, 0.2, 0.04, 0.05, 0.01, 0.2]
        for name in self.random.choice(names, size=calls, p=chances):
            getattr(self, f"call_{name}")()
        self.env.close()

    def attempt(self, is_allowed: bool, call: Any, *args: Any) -> Any:
        if is_allowed:
            return call(*args)
        with pytest.raises(APIUsageError):
            call(*args)
        return None

    def ids(self) -> list[int]:
        """Return random ids, mostly of environments that are not in flight."""
        idle = [i for i in range(self.model.num_envs) if i not in self.model.in_flight]
        pool = idle if idle and self.random.random() < 0.9 else range(self.model.num_envs)
        return self.random.permutation(pool)[: self.random.integers(1, len(pool) + 1)].tolist()

    def arguments(self, ids: list[int]) -> Any:
        """Return actions for ``ids`` in one of many formats."""
        players = self.model.players
        actions = self.random.integers(0, 5, len(ids) * players)
        shown = actions.astype(self.random.choice(["i1", "i4", "i8", "u2", "f4", "f8"]))
        shown = shown.tolist() if self.random.random() < 0.1 else shown
        given = np.array(ids, self.random.choice(["i4", "i8", "u4"]))
        form = self.random.integers(4)
        if form == 0 and ids == list(range(self.model.num_envs)):
            return actions, (shown,)
        if form == 1:
            return actions, ({"action": shown, "env_id": given, "players.env_id": np.repeat(given, players)},)
        return actions, ({"action": shown, "env_id": given},) if form == 2 else (shown, given)

    def all_or(self, ids: list[int]) -> list[int]:
        return list(range(self.model.num_envs)) if self.random.random() < 0.5 else ids

    def call_send(self) -> None:
        ids = self.all_or(self.ids())
        actions, arguments = self.arguments(ids)
        is_allowed = self.model.may_send(ids)
        self.attempt(is_allowed, self.env.send, *arguments)
        if is_allowed:
            self.model.send(ids, actions)

    def call_step(self) -> None:
        ids = self.all_or(self.ids())
        actions, arguments = self.arguments(ids)
        if not self.model.may_recv(len(ids)) and self.model.may_send(ids):
            return  # the actions may have been sent before the error
        values = self.attempt(self.model.may_send(ids), self.env.step, *arguments)
        if values:
            self.model.send(ids, actions)
            self.check(values)

    def call_recv(self) -> None:
        is_reset = bool(self.random.integers(2))
        values = self.attempt(self.model.may_recv(), self.env.recv, is_reset)
        if values:
            self.check(values)

    def call_reset(self) -> None:
        ids = self.all_or(self.ids())
        is_allowed = self.model.may_reset(ids) and self.model.may_recv(len(ids))
        values = self.attempt(is_allowed, self.env.reset, np.array(ids))
        if values:
            self.model.reset(ids)
            self.check(values)

    def call_async_reset(self) -> None:
        ids = self.ids()
        is_allowed = self.model.may_reset(ids)
        self.attempt(is_allowed, self.env.async_reset, ids)
        if is_allowed:
            self.model.reset(ids)

    def call_render(self) -> None:
        idle = [i for i in range(self.model.num_envs) if i not in self.model.in_flight and self.model.episode[i] >= 0]
        if idle:
            pictures = self.env.render(idle)
            assert pictures.shape == (len(idle), 10, 20, 3)
            assert pictures[:, 0, 0, 1].tolist() == [self.model.count[i] for i in idle]

    def call_hostile(self) -> None:
        self.attempt(False, *hostile_call(self.env, self.random))
        assert self.env.pool.num_in_flight == len(self.model.in_flight)

    def check(self, values: Any) -> None:
        self.model.compare(values[-1]["env_id"].tolist(), values, values[-1])


LAYOUTS = {
    "sync": {"num_envs": 5},
    "async": {"num_envs": 5, "batch_size": 2},
    "limit": {"num_envs": 4, "max_episode_steps": 3},
    "same-step": {"num_envs": 4, "autoreset": "same_step", "max_episode_steps": 4},
    "disabled": {"num_envs": 4, "autoreset": "disabled", "batch_size": 3},
    "threads": {"num_envs": 7, "batch_size": 3, "num_threads": 2},
}
TASKS = ("FuzzNative-v0", "FuzzNativeTwo-v0", "FuzzWorkers-v0", "FuzzWorkersTwo-v0")


IN_THE_DAY = [
    (task_id, layout)
    for task_id in TASKS
    for layout in LAYOUTS
    if "Native" in task_id or layout in ("async", "disabled")
]


@pytest.fixture
def no_wait(monkeypatch):
    """Do not wait for threads that might send. There are none, and many random calls would wait."""
    monkeypatch.setattr(pool_env, "SENDER_TIMEOUT_S", 0.0)


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize(("task_id", "layout"), IN_THE_DAY)
def test_random_calls_match_the_model(task_id, layout):
    Fuzz(task_id, 0, **LAYOUTS[layout]).play(150)


@pytest.mark.all
@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("task_id", TASKS)
def test_many_random_calls_match_the_model(task_id, layout, nightly):
    calls = 100_000 if nightly else 5_000 // len(TASKS)  # per task
    Fuzz(task_id, 1, **LAYOUTS[layout]).play(-(-calls // len(LAYOUTS)))


def call_with_retry(call: Any, *args: Any) -> Any:
    """Repeat a call until no other thread uses the pool."""
    while True:
        try:
            return call(*args)
        except APIUsageError as error:
            if "another thread" not in str(error) and "one thread at a time" not in str(error):
                raise


def play_in_threads(task_id: str, batches: int, **keywords: Any) -> None:
    """Run one thread that sends, one that receives, and one that makes invalid calls."""
    env = envpool.make_gymnasium(task_id, seed=0, render_mode="rgb_array", **keywords)
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    players, counts, is_over = env.config["max_num_players"], np.full(env.num_envs, -1), threading.Event()

    def receive() -> None:
        for _ in range(batches):
            came.put(call_with_retry(env.recv))

    def disturb() -> None:
        random = np.random.default_rng(0)
        while not is_over.wait(1e-4):
            call, *arguments = hostile_call(env, random)
            with pytest.raises(APIUsageError):
                call(*arguments)

    env.async_reset()
    with ThreadPoolExecutor(2) as threads:
        others = [threads.submit(receive), threads.submit(disturb)]
        for sent in range(batches):
            observations, *_, info = came.get(timeout=60)
            ids = info["env_id"]
            counts[ids] += 1
            assert observations[:, 2].tolist() == np.repeat(counts[ids], players).tolist()
            if sent < batches - env.num_envs // len(ids):
                call_with_retry(env.send, np.zeros(len(ids) * players), ids)
        is_over.set()
        for other in others:
            other.result()
    env.close()


@pytest.mark.parametrize("batch_size", once([2, 4], [2]))
@pytest.mark.parametrize("task_id", ["FuzzNativeTwo-v0", "FuzzWorkersTwo-v0"])
def test_threads_get_correct_batches_or_errors(task_id, batch_size, nightly):
    play_in_threads(task_id, 20_000 if nightly else 200, num_envs=4, batch_size=batch_size)
