"""Tests of the Ray backend on a cluster of three nodes, including lost actors and nodes."""

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.registry.facts import all_facts
from pufferlib.seeding import env_seed
from pufferlib.vector.ray import workers as ray_workers
from pufferlib.vector.ray.cluster import cluster_cpus
from tests.conformance.test_vector_backends import check
from tests.envs import ScriptedPufferEnv, VariedEnv
from tests.tiers import as_nightly

ray = pytest.importorskip("ray", reason="Ray is not installed: puffer install ray")

from ray.cluster_utils import Cluster  # noqa: E402 - after importorskip

pytestmark = [
    pytest.mark.all,  # test_one_node.py runs in the default suite
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("default"),  # Ray warns about itself
]
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no actor imports pytest

NODES, CPUS = 3, 2
OCEAN = [*ocean.names(), *ocean.python_names()]
BINDINGS = [
    f"{facts.name}/{facts.conformance[0]}" for facts in all_facts().values() if facts.conformance and not facts.seeding
]
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def cluster():
    """Start three nodes with two CPUs each, and set RAY_ADDRESS to their address."""
    nodes = Cluster()
    for _ in range(NODES):
        add_node(nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", nodes.address)
        yield nodes
        ray.shutdown()
        nodes.shutdown()


def add_node(nodes):
    return nodes.add_node(num_cpus=CPUS, object_store_memory=80 << 20, include_dashboard=False)


@pytest.fixture(autouse=True)
def _wait_for_actors_to_end(cluster):
    """Check after each test that all actors end and release their CPUs."""
    yield
    if ray.is_initialized():
        wait_for(lambda: ray.available_resources().get("CPU") == NODES * CPUS)


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


class Fragile(VariedEnv):
    """Environment that raises an error for action 4."""

    def __init__(self):
        super().__init__(action_space=Discrete(5))

    def step(self, action):
        if action == 4:
            raise ValueError("boom")
        return super().step(action)


class PlacedEnv(ScriptedPufferEnv):
    """Environment whose reset returns its process and node in an info."""

    def reset(self, seed=None):
        observations, _ = super().reset(seed)
        return observations, [{"pid": os.getpid(), "node": node_id()}]


def node_id():
    import ray

    return ray.get_runtime_context().get_node_id()


def make(creator=PlacedEnv, num_envs=3, num_workers=3, **kwargs):
    return pufferlib.vector.make(creator, num_envs=num_envs, num_workers=num_workers, backend="Ray", **kwargs)


def make_with_last(**kwargs):
    """Make three environments in three actors. The last one gets ``kwargs``."""
    return make([PlacedEnv] * 3, env_kwargs=[{}, {}, kwargs], seed=5)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def boom():
    raise ValueError("boom")


LAYOUTS = {
    "2 actors": {"num_workers": 2},
    "2 actors, one per batch": {"num_workers": 2, "batch_size": 2},
    "4 actors, blocks of 2": {"num_workers": 4, "batch_size": 2},
    "4 actors, first 3": {"num_workers": 4, "batch_size": 3, "zero_copy": False},
}


@pytest.mark.parametrize(
    ("name", "autoreset", "layout"),
    [
        ("native", None, "2 actors"),
        ("absent agents", "next_step", "2 actors, one per batch"),
        as_nightly(("gymnasium", "next_step", "2 actors, one per batch")),
        ("gymnasium", "same_step", "4 actors, blocks of 2"),
        as_nightly(("pettingzoo", "next_step", "2 actors")),
        ("pettingzoo", "same_step", "4 actors, first 3"),
        as_nightly(("rware", None, "2 actors, one per batch")),
        *(pytest.param(name, None, "2 actors, one per batch", marks=pytest.mark.nightly) for name in OCEAN),
        ("puffer_pymultiagent", "disabled", "2 actors"),
    ],
)
def test_same_bytes_as_serial(name, autoreset, layout, nightly):
    check(name, {"backend": "Ray", **LAYOUTS[layout]}, 1000 if nightly else 100, autoreset)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", ["2 actors", "4 actors, first 3"])
@pytest.mark.parametrize("name", BINDINGS)
def test_same_bytes_as_serial_for_every_binding(name, layout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(name, {"backend": "Ray", **LAYOUTS[layout]}, 1000)


def test_actors_spread_over_nodes_and_end_with_close():
    with make(num_envs=6, num_workers=3) as vecenv:
        infos = vecenv.reset()[1]
        pids = [info["pid"] for info in infos]
        assert len({info["node"] for info in infos}) > 1
        assert pids[::2] == pids[1::2]
        assert len(set(pids)) == 3
        assert vecenv.driver_env.num_agents == 1
    wait_for(lambda: not any(map(is_alive, pids)))
    assert ray.is_initialized()
    with pytest.raises(APIUsageError, match="the environments are closed"):
        vecenv.reset()
    vecenv.close()


def test_recv_returns_first_finished_workers(tmp_path):
    gate = tmp_path / "gate"

    def slow():
        while not gate.exists():
            time.sleep(0.01)

    with make([PlacedEnv] * 3, env_kwargs=[{"on_step": slow}, {}, {}], batch_size=1, zero_copy=False) as vecenv:
        vecenv.async_reset()
        seen = []
        deadline = time.monotonic() + TIMEOUT_S
        while (
            0 not in seen or min(seen.count(1), seen.count(2)) < 3
        ):  # an actor may be late, but recv does not wait for it
            assert time.monotonic() < deadline, seen
            *_, agent_ids, _ = vecenv.recv()
            seen += agent_ids.tolist()
            vecenv.send([0])
        assert seen.count(0) == 1
        gate.touch()
        observations, _ = vecenv.reset()
        assert observations.tolist() == [[0]]


@pytest.mark.parametrize("phase", ["build", "reset", "step"])
def test_env_error_raises_worker_error(phase):
    with pytest.raises(WorkerError) as caught:
        run_until_failure(**{f"on_{phase}": boom})
    text = str(caught.value)
    assert text.startswith(f"vector.Ray: ValueError: boom, in {phase} of environment 2 (worker 2, ")
    assert f"seed {env_seed(5, 2)}" in text
    assert "in boom" in text
    assert phase != "step" or "last actions [3]" in text


def run_until_failure(**kwargs):
    vecenv = make_with_last(**kwargs)
    vecenv.reset()
    try:
        vecenv.step([1, 2, 3])
    finally:
        with pytest.raises(APIUsageError, match="the workers were ended by an earlier error"):
            vecenv.recv()


def test_dead_actor_raises_worker_error():
    with pytest.raises(WorkerError) as caught:
        run_until_failure(on_step=lambda: os._exit(3))
    text = str(caught.value)
    assert f"was lost, in step of environment 2 (worker 2, seed {env_seed(5, 2)}, last actions [3])" in text


def test_lost_node_raises_worker_error(cluster):
    vecenv = make(num_envs=6, num_workers=3, seed=5)
    infos = vecenv.reset()[1]
    victim = next(worker for worker in range(3) if infos[2 * worker]["node"] != cluster.head_node.node_id)
    lose_node(cluster, infos[2 * victim]["node"], orderly=True)
    with pytest.raises(WorkerError) as caught:
        step_for_a_while(vecenv)
    first = 2 * victim
    assert f"worker {victim} (" in str(caught.value)
    assert f"was lost, in step of environments {first} to {first + 1} (worker {victim}, seeds " in str(caught.value)
    assert "last actions [" in str(caught.value)
    add_node(cluster)


def step_for_a_while(vecenv):
    """Step until an error. The processes of a lost node stay alive for a moment."""
    for _ in range(TIMEOUT_S * 20):
        vecenv.step(np.arange(vecenv.num_agents) % 5)
        time.sleep(0.05)


def lose_node(cluster, node_id, orderly):
    (node,) = (node for node in cluster.worker_nodes if node.node_id == node_id)
    cluster.remove_node(node, allow_graceful=orderly)


def test_lost_envs_restart_on_another_node(cluster):
    vecenv = make(num_envs=6, num_workers=3, seed=5, on_crash="restart")
    observations, infos = vecenv.reset()
    victim = next(worker for worker in range(3) if infos[2 * worker]["node"] != cluster.head_node.node_id)
    lost, others = slice(2 * victim, 2 * victim + 2), [row for row in range(6) if row // 2 != victim]
    lost_node = infos[2 * victim]["node"]
    lose_node(cluster, lost_node, orderly=False)
    infos, seen = [], None
    while not infos:
        seen = observations.copy()
        observations, rewards, terminals, truncations, infos = vecenv.step([1] * 6)
    assert truncations.nonzero()[0].tolist() == list(range(6))[lost]
    assert not terminals.any()
    assert not rewards.any()
    assert (observations[lost] == 0).all()
    assert (observations[others] == seen[others] + 1).all()
    assert (vecenv.final_observations[lost] == seen[lost]).all()
    *starts, restart = infos
    assert restart["worker_restarts"] == vecenv.worker_restarts >= 1
    assert len(set(vecenv.worker_pids)) == 3
    assert f"of environments {2 * victim} to {2 * victim + 1} (worker {victim}, seeds " in restart["worker_error"]
    assert len(starts) == 2
    assert all(start["node"] != lost_node for start in starts)
    for step in range(1, 4):
        observations, _, _, truncations, infos = vecenv.step([1] * 6)
        assert (observations[lost] == step).all()
        assert not truncations.any()
        assert infos == []
    vecenv.close()
    add_node(cluster)


@pytest.mark.parametrize("autoreset", ["next_step", as_nightly("same_step"), "disabled"])
def test_restart_matches_multiprocessing(autoreset):
    creator = functools.partial(GymnasiumPufferEnv, env_creator=Fragile)
    options = {"num_envs": 4, "num_workers": 2, "seed": 3, "autoreset": autoreset, "on_crash": "restart"}
    seen = {}
    for backend in ("Multiprocessing", "Ray"):
        with pufferlib.vector.make(creator, **options, backend=backend, overwork=True) as vecenv:
            rows = [vecenv.reset()[0].copy()]
            for step in range(12):
                *arrays, infos = vecenv.step([4 if step == 3 else 1, 1, 1, 4 if step == 7 else 2])
                rows += [array.copy() for array in (*arrays, vecenv.masks)]
                # Rows with a final observation: lost environments, and with same_step all ended episodes.
                ended = vecenv.truncations | (vecenv.terminals & (autoreset == "same_step"))
                rows.append(np.where(ended[:, None], vecenv.final_observations, 0))
                restarts = [info for info in infos if "worker_restarts" in info]
                rows.append([info["worker_restarts"] for info in restarts])
                assert step != 3 or rows[-1] == [1]
                assert all("ValueError: boom, in step of environment" in info["worker_error"] for info in restarts)
        seen[backend] = rows
    for expected, got in zip(*seen.values(), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_repeatedly_failing_actor_raises():
    vecenv = make([PlacedEnv] * 2, 2, 2, env_kwargs=[{}, {"on_step": boom}], on_crash="restart")
    vecenv.reset()
    with pytest.raises(WorkerError, match="Worker 1 failed 3 times without finishing a step in between"):
        step_for_a_while(vecenv)


def test_step_timeout_raises(monkeypatch):
    monkeypatch.setattr(ray_workers, "CLOSE_S", 0.5)
    vecenv = make([PlacedEnv] * 2, 2, 2, env_kwargs=[{}, {"on_step": lambda: time.sleep(600)}], timeout_s=12)
    vecenv.reset()
    with pytest.raises(WorkerError, match=r"one step .* may take 12 .*environment 1 \(worker 1"):
        vecenv.step([0, 1])


def test_more_workers_than_cpus_raises():
    with pytest.raises(APIUsageError, match="at most the 6 usable cores of the Ray cluster, got num_workers=7"):
        make(num_envs=7, num_workers=7)


def test_cluster_without_free_cpus_raises(monkeypatch):
    with make(num_envs=4, num_workers=4):
        monkeypatch.setattr(ray_workers, "ROOM_S", 3.0)
        with pytest.raises(APIUsageError) as caught:
            make(num_envs=4, num_workers=4, timeout_s=1)
    text = str(caught.value)
    assert "the cluster must have room for 4 workers, a CPU for each, within 3 seconds, got room for " in text
    assert " free of 6 CPUs on 3 nodes; use fewer workers, or add nodes" in text


def test_recv_can_be_called_again_after_ctrl_c(monkeypatch):
    kwargs = [{"on_step": lambda name=name: [{"name": name}]} for name in "abc"]
    with make([PlacedEnv] * 3, env_kwargs=kwargs) as vecenv:
        vecenv.reset()
        take_infos, asked = ray_workers.ActorWorkers.take_infos, []

        def interrupted(workers, worker):
            asked.append(worker)
            if len(asked) == 2:
                raise KeyboardInterrupt
            return take_infos(workers, worker)

        monkeypatch.setattr(ray_workers.ActorWorkers, "take_infos", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vecenv.step([0, 0, 0])
        *_, infos, _, _ = vecenv.recv()
        assert [info["name"] for info in infos] == list("abc")


def test_error_in_close_is_reported():
    vecenv = make_with_last(on_close=boom)
    with pytest.raises(WorkerError, match="ValueError: boom, in close of worker 2"):
        vecenv.close()


def test_auto_uses_cluster_cpus():
    assert ray.cluster_resources()["CPU"] == 6
    assert cluster_cpus() == 6


def test_actors_unpickle_definitions_of_script():
    command = [sys.executable, Path(__file__).parents[1] / "vector" / "script_with_everything.py", "Ray"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (0, "everything works\n"), done.stderr


def test_actors_get_current_path_variables_and_folder(monkeypatch, tmp_path):
    def on_step():
        module = __import__("module_on_path")
        return [{"name": module.__name__, "value": os.environ.get("TANK"), "folder": os.getcwd()}]

    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "module_on_path.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.chdir(tmp_path)
    for value in ("one", "two"):
        monkeypatch.setenv("TANK", value)
        with make(num_envs=1, num_workers=1, env_kwargs={"on_step": on_step}) as vecenv:
            vecenv.reset()
            expected = {"name": "module_on_path", "value": value, "folder": str(tmp_path)}
            assert vecenv.step([0])[4] == [expected]
