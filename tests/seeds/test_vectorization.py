"""Examples of the document "Vectorization", unchanged, on a simulated machine with eight cores."""

import sys

import cloudpickle
import numpy as np
import pytest

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.seeding import env_seed
from pufferlib.vector.arguments import Cores
from tests.envs import FunctionEnv, SamplePufferEnv

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest


def env_creator(buf=None, seed=0):
    return GymnasiumPufferEnv(FunctionEnv(), buf=buf, seed=seed)


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(pufferlib.vector.VectorEnv, "_cores", Cores(lambda: 8, "usable cores"))


def receive_agent_ids(vecenv, batches=3):
    """Return the agent ids of each batch that is received."""
    agents = []
    with vecenv:
        vecenv.async_reset()
        for _ in range(batches):
            o, r, d, t, _, env_ids, masks = vecenv.recv()
            assert len(o) == len(r) == len(d) == len(t) == len(env_ids) == len(masks)
            assert masks.all()
            agents.append(env_ids.tolist())
            vecenv.send(vecenv.action_space.sample())
    return agents


def test_example_vector_backends():
    # Single-process execution
    vecenv = pufferlib.vector.make(
        env_creator,
        num_envs=4,
        backend=pufferlib.vector.Serial,
    )
    assert receive_agent_ids(vecenv) == [[0, 1, 2, 3]] * 3


def test_example_serial_backend():
    serial_vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, backend=pufferlib.vector.Serial)
    observations, infos = serial_vecenv.reset()
    actions = serial_vecenv.action_space.sample()
    o, r, d, t, i = serial_vecenv.step(actions)
    assert observations.shape == o.shape == (4, 1)
    assert r.dtype == np.float32
    assert d.dtype == t.dtype == bool
    assert infos == []
    assert len(i) == 2
    serial_vecenv.close()


def test_example_same_arguments():
    vecenv = pufferlib.vector.make(
        SamplePufferEnv,
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[3],
        env_kwargs={"bar": 4},
    )
    assert [(env.foo, env.bar, env.seed) for env in vecenv.envs] == [(3, 4, env_seed(0, 0)), (3, 4, env_seed(0, 1))]


def test_example_arguments_per_environment():
    vecenv = pufferlib.vector.make(
        [SamplePufferEnv, SamplePufferEnv],
        num_envs=2,
        backend=pufferlib.vector.Serial,
        env_args=[[3], [4]],
        env_kwargs=[{"bar": 4}, {"bar": 5}],
    )
    assert [(env.foo, env.bar) for env in vecenv.envs] == [(3, 4), (4, 5)]


def test_serial_implementation_details():
    """The class takes the arguments of the document, and its environments have slices of its arrays."""
    vecenv = pufferlib.vector.Serial([SamplePufferEnv] * 3, [[]] * 3, [{}] * 3, 3, seed=0)
    assert vecenv.driver_env is vecenv.envs[0]
    assert vecenv.agents_per_batch == 6
    vecenv.reset()
    for place, env in enumerate(vecenv.envs):
        for name in ("observations", "rewards", "terminals", "truncations", "masks", "actions"):
            rows = getattr(vecenv, name)[2 * place : 2 * place + 2]
            assert np.shares_memory(getattr(env, name), rows)
            assert getattr(env, name).shape == rows.shape


BLOCKS = [list(range(start, start + 32)) for start in range(0, 128, 32)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch_size": 32}, BLOCKS),
        ({"batch_size": 128}, [list(range(128))]),
        ({"batch_size": 32, "zero_copy": True}, BLOCKS),
        ({"batch_size": 32, "zero_copy": False}, None),
    ],
    ids=["multiprocessing", "full sync", "partial sync", "full async"],
)
def test_synchronization_modes(eight_cores, options, expected):
    vecenv = pufferlib.vector.make(
        env_creator,
        num_envs=128,  # Total number of environments
        num_workers=8,  # Number of worker processes
        backend=pufferlib.vector.Multiprocessing,
        **options,
    )
    agents = receive_agent_ids(vecenv, 20)
    if expected is None:  # batches of the fastest workers, each with 16 environments
        assert all(
            len({*batch}) == 32 and batch[::16] == [16 * (agent // 16) for agent in batch[::16]] for batch in agents
        )
    else:
        assert agents == 20 // len(expected) * expected


def test_overwork(monkeypatch):
    """More workers than cores need ``overwork=True``."""
    monkeypatch.setattr(pufferlib.vector.VectorEnv, "_cores", Cores(lambda: 1, "usable cores"))
    kwargs = {"num_envs": 2, "num_workers": 2, "backend": pufferlib.vector.Multiprocessing}
    with pytest.raises(APIUsageError, match=r"at most the 1 usable cores, got num_workers=2; .*or overwork=True"):
        pufferlib.vector.make(env_creator, **kwargs)
    assert receive_agent_ids(pufferlib.vector.make(env_creator, overwork=True, **kwargs)) == [[0, 1]] * 3


def test_zero_copy_requires_equal_batches(eight_cores):
    with pytest.raises(APIUsageError, match=r"num_envs must be a multiple of batch_size for contiguous batches"):
        pufferlib.vector.make(
            env_creator, num_envs=8, num_workers=8, batch_size=3, zero_copy=True, backend="Multiprocessing"
        )


def test_example_async_api(eight_cores):
    vecenv = pufferlib.vector.make(
        SamplePufferEnv,
        num_envs=2,
        num_workers=2,
        batch_size=1,
        backend=pufferlib.vector.Multiprocessing,
    )

    # Async reset
    vecenv.async_reset()
    o, r, d, t, i, env_ids, masks = vecenv.recv()

    # Async step
    actions = vecenv.action_space.sample()
    vecenv.send(actions)

    # Get results when ready
    o, r, d, t, i, env_ids, masks = vecenv.recv()
    assert o.shape == (2, 1)
    assert r.dtype == np.float32
    assert d.dtype == t.dtype == masks.dtype == bool
    assert env_ids.tolist() == [2, 3]
    assert i == []
    vecenv.close()


def test_example_autotune(eight_cores, tmp_path, monkeypatch):
    """The arguments are those of the document, but with smaller sizes and shorter times."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    configs = pufferlib.vector.autotune(env_creator, batch_size=2, max_envs=4, time_per_test=0.01)
    best = configs[0]
    assert best.steps_per_second > 0
    assert {"num_envs", "backend"} <= best.kwargs.keys()
    assert {config.kwargs.get("zero_copy") for config in configs} >= {True, False}


def test_common_pattern_maximizing_throughput(eight_cores, monkeypatch):
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 4)
    vecenv = pufferlib.vector.make(
        env_creator,
        num_envs=128,
        num_workers=psutil.cpu_count(logical=False),  # Physical cores
        batch_size=128,
        zero_copy=True,
        backend=pufferlib.vector.Multiprocessing,
    )
    assert receive_agent_ids(vecenv, 1) == [list(range(128))]


def test_common_pattern_minimizing_latency(eight_cores):
    vecenv = pufferlib.vector.make(
        env_creator,
        num_envs=32,
        num_workers=8,
        batch_size=8,  # Small batches
        zero_copy=False,  # Full async
        backend=pufferlib.vector.Multiprocessing,
    )
    assert [len(batch) for batch in receive_agent_ids(vecenv)] == [8] * 3


def test_common_pattern_debugging():
    vecenv = pufferlib.vector.make(
        env_creator,
        num_envs=1,
        backend=pufferlib.vector.Serial,  # Easy to debug
    )
    assert receive_agent_ids(vecenv, 1) == [[0]]


class NotifiedEnv(SamplePufferEnv):
    def notify(self):
        self.rewards += 1


def test_notify_array(eight_cores):
    """In the document the main process notifies the environments of each worker through an array."""
    vecenv = pufferlib.vector.make(NotifiedEnv, num_envs=4, num_workers=2, backend=pufferlib.vector.Multiprocessing)
    with vecenv:
        vecenv.reset()
        vecenv.notify()
        assert vecenv.step(vecenv.action_space.sample())[1].tolist() == [1] * 8


def test_different_creators_per_environment():
    """Creators can differ if their environments have the same spaces."""
    creators = [SamplePufferEnv, lambda buf: SamplePufferEnv(foo=7, buf=buf)]
    vecenv = pufferlib.vector.make(
        creators, num_envs=2, backend=pufferlib.vector.Serial, env_args=[[3], []], env_kwargs=[{"bar": 4}, {}]
    )
    assert [(env.foo, env.bar) for env in vecenv.envs] == [(3, 4), (7, 1)]
