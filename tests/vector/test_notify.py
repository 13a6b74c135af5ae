"""``vecenv.notify()``: calls ``notify`` of each environment before its next step or reset, on every backend."""

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from tests.envs import FunctionEnv, ScriptedPufferEnv

BACKENDS = [{"backend": "Serial"}, {"backend": "Multiprocessing", "num_workers": 1}]


class Notified(ScriptedPufferEnv):
    """Environment whose observation is its number of steps plus a tenth for each notification."""

    def notify(self):
        self.observations += 0.1


class World(gymnasium.Wrapper):
    """Wrapper whose reward is the number of notifications."""

    map_number = 0

    def notify(self):
        self.map_number += 1

    def step(self, action):
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, self.map_number, terminated, truncated, info


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: options["backend"])
def test_notify_is_called_once_before_the_next_step_or_reset(options):
    with pufferlib.vector.make(Notified, num_envs=2, **options) as vecenv:
        vecenv.reset()
        vecenv.notify()
        seen = [vecenv.step([0, 0])[0].tolist() for _ in range(2)]
        assert seen == [[[pytest.approx(1.1)]] * 2, [[pytest.approx(2.1)]] * 2]
        vecenv.notify()
        assert vecenv.reset()[0].tolist() == [[0], [0]]  # notified before the reset, and not again after it
        assert vecenv.step([0, 0])[0].tolist() == [[1], [1]]


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: options["backend"])
def test_notify_passes_through_wrappers_and_emulation(options):
    def creator(buf):
        return GymnasiumPufferEnv(TimeLimit(World(FunctionEnv()), 100), buf=buf)

    with pufferlib.vector.make(creator, num_envs=2, **options) as vecenv:
        vecenv.reset()
        vecenv.notify()
        vecenv.notify()  # two calls before the next step count as one
        assert vecenv.step([0, 0])[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    "creator", [ScriptedPufferEnv, lambda: GymnasiumPufferEnv(FunctionEnv())], ids=["native", "emulated"]
)
def test_environment_without_notify_raises(creator):
    vecenv = pufferlib.vector.make(creator, backend="Serial")
    vecenv.reset()
    vecenv.notify()
    with pytest.raises(NotImplementedError, match=r"(ScriptedPuffer|Function)Env: define notify\(\)") as caught:
        vecenv.step([0])
    assert "while notifying environment 0" in caught.value.__notes__
    vecenv.close()
    with pytest.raises(APIUsageError, match=r"Serial.notify: the environments are closed"):
        vecenv.notify()
