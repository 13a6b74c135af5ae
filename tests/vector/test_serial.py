"""The Serial and native backends."""

import contextlib
import copy
import pickle
import signal
import sys

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.machine.signals import RequestedExit, signals_exit
from pufferlib.seeding import env_seed
from tests.envs import SamplePufferEnv, ScriptedPufferEnv


@pytest.mark.parametrize("backend", [pufferlib.PufferEnv, "native", "PufferEnv"])
def test_native_returns_the_environment_itself(backend):
    env = pufferlib.vector.make(SamplePufferEnv, [3], {"bar": 4}, backend=backend, seed=5)
    assert isinstance(env, SamplePufferEnv)
    assert (env.foo, env.bar, env.seed) == (3, 4, env_seed(5, 0))
    env.async_reset()
    assert len(env.recv()) == 7


def test_serial_attributes():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=6, backend="Serial", batch_size=2)
    assert (vecenv.num_envs, vecenv.num_agents, vecenv.agents_per_batch) == (6, 12, 4)
    assert vecenv.driver_env is vecenv.envs[0]
    assert vecenv.observation_space.shape == (4, 1)
    assert vecenv.action_space.shape == (4,)
    assert vecenv.single_observation_space.shape == (1,)
    assert vecenv.single_action_space.n == 2
    assert vecenv.emulated is False
    assert vecenv.autoreset == "same_step"


def test_environments_share_the_arrays_of_the_batch():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=3, backend="Serial")
    vecenv.reset()
    for index, env in enumerate(vecenv.envs):
        env.observations[:] = index
    np.testing.assert_array_equal(vecenv.observations[:, 0], [0, 0, 1, 1, 2, 2])


def test_recv_returns_smaller_batches_in_turn():
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=4, backend="Serial", batch_size=2)
    vecenv.async_reset()
    seen = []
    for _ in range(3):
        *_, agent_ids, masks = vecenv.recv()
        assert agent_ids.dtype == np.int64
        assert masks.all()
        seen.append(agent_ids.tolist())
        vecenv.send(vecenv.action_space.sample())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]


@pytest.mark.parametrize("options", [{"backend": "Serial"}, {"backend": "Multiprocessing", "num_workers": 1}])
def test_calls_in_wrong_order_raise(options):
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, **options)
    name = options["backend"]
    for call in (vecenv.recv, lambda: vecenv.send([0] * 4), lambda: vecenv.step([0] * 4)):
        with pytest.raises(
            APIUsageError, match=rf"{name}.(recv|send): the next call must be async_reset, got (recv|send); "
        ):
            call()
    for attribute in ("observations", "agent_ids"):
        with pytest.raises(APIUsageError, match=rf"{name}.{attribute}: there is no batch yet"):
            getattr(vecenv, attribute)
    vecenv.async_reset()
    with pytest.raises(APIUsageError, match=rf"{name}.send: the next call must be recv, got send"):
        vecenv.send([0] * 4)
    vecenv.recv()
    with pytest.raises(APIUsageError, match=rf"{name}.recv: the next call must be send, got recv"):
        vecenv.recv()
    vecenv.send([0] * 4)
    vecenv.close()
    for call in (vecenv.recv, vecenv.reset, lambda: vecenv.send([0] * 4)):
        with pytest.raises(APIUsageError, match=rf"{name}\..*: the environments are closed; make new ones"):
            call()


@pytest.mark.parametrize("seed", [1.5, "3", True, ["a"], np.array(3)])
def test_wrong_seeds_are_refused(seed):
    vecenv = pufferlib.vector.make(SamplePufferEnv, backend="Serial")
    with pytest.raises(APIUsageError, match=r"Serial.async_reset: seed must be an int or None, got "):
        vecenv.reset(seed=seed)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_sharing_one_environment_is_refused(backend):
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(
        APIUsageError, match=r"must be one of its own, got <CartPoleEnv.*> in two of them; give a class"
    ):
        pufferlib.vector.make(GymnasiumPufferEnv, env_kwargs={"env": env}, num_envs=2, backend=backend, num_workers=1)


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps], ids=["deepcopy", "pickle"])
def test_vector_env_cannot_be_copied_or_pickled(backend, duplicate):
    options = {"num_workers": 1, "overwork": True} if backend == "Multiprocessing" else {}
    with (
        pufferlib.vector.make(SamplePufferEnv, num_envs=2, backend=backend, **options) as envs,
        pytest.raises(APIUsageError, match=f"{backend}: a vector environment must stay in the process that made it"),
    ):
        duplicate(envs)


def boom():
    raise ValueError("boom")


def test_error_in_serial_notes_environment_and_actions():
    kwargs = [{"num_agents": 2}, {"num_agents": 2, "on_step": boom}]
    vecenv = pufferlib.vector.make([ScriptedPufferEnv] * 2, env_kwargs=kwargs, num_envs=2, backend="Serial")
    vecenv.reset()
    with pytest.raises(ValueError, match="boom") as caught:
        vecenv.step([0, 1, 1, 0])
    assert caught.value.__notes__ == ["while stepping environment 1 with actions [1, 0]"]
    with pytest.raises(APIUsageError, match="the next call must be async_reset"):
        vecenv.recv()
    vecenv.close()


@pytest.mark.parametrize("seeds", [range(3, 5), np.arange(3, 5)])
def test_seeds_may_be_any_sequence_of_ints(seeds):
    with contextlib.closing(pufferlib.make("CartPole-v1", num_envs=2)) as vecenv:
        listed, _ = vecenv.reset(seed=[3, 4])
        expected = listed.copy()
        assert np.array_equal(vecenv.reset(seed=seeds)[0], expected)


def test_any_int_is_a_seed():
    seeds = []

    class Seeded(SamplePufferEnv):
        def reset(self, seed=None):
            seeds.append(seed)
            return super().reset()

    with pufferlib.vector.make(Seeded, backend="Serial", seed=2**64 + 1) as vecenv:
        vecenv.reset()
        vecenv.reset(seed=-1)
    assert seeds == [env_seed(2**64 + 1, 0), env_seed(-1, 0)]


def test_first_reset_uses_the_seed_of_make():
    class Seeded(SamplePufferEnv):
        def reset(self, seed=None):
            self.observations[:] = -1 if seed is None else seed
            return self.observations, []

    vecenv = pufferlib.vector.make(Seeded, backend="Serial", num_envs=2, seed=4)
    as_float = [[np.float32(env_seed(4, index))] for index in (0, 0, 1, 1)]
    np.testing.assert_array_equal(vecenv.reset()[0], as_float)
    assert (vecenv.reset()[0] == -1).all()
    assert (vecenv.reset(seed=4)[0] == as_float).all()


@pytest.mark.parametrize("on", ["on_build", "on_reset", "on_step", "on_close"])
def test_sys_exit_in_environment_raises_error_with_its_line(on):
    def leave():
        quit()  # raises in the standard library

    def run(kwargs):
        vecenv = pufferlib.vector.make(ScriptedPufferEnv, env_kwargs=kwargs, num_envs=2, backend="Serial")
        vecenv.reset()
        vecenv.step([0, 0])
        vecenv.close()

    line = leave.__code__.co_firstlineno + 1
    with pytest.raises(APIUsageError, match=rf"got SystemExit\(None\) \(\S+test_serial.py, line {line}\)") as caught:
        run({on: leave})
    assert "environment 0" in caught.value.__notes__[0]


def test_sys_exit_in_environment_restarts_it():
    kwargs = {"on_step": lambda: sys.exit(1)}
    vecenv = pufferlib.vector.make(ScriptedPufferEnv, env_kwargs=kwargs, backend="Serial", on_crash="restart")
    vecenv.reset()
    vecenv.step([0])
    assert vecenv.worker_restarts == 1


def close_window():
    raise RequestedExit(0)


@pytest.mark.parametrize(
    ("act", "code"), [(lambda: signal.raise_signal(signal.SIGTERM), 143), (close_window, 0)], ids=["signal", "window"]
)
def test_requested_exit_in_step_is_raised(act, code):
    vecenv = pufferlib.vector.make(ScriptedPufferEnv, env_kwargs={"on_step": act}, backend="Serial")
    vecenv.reset()
    with pytest.raises(SystemExit, match=f"^{code}\\b"), signals_exit():
        vecenv.step([0])
