"""``vecenv.notify()``: every environment hears of it before it goes on, on every backend."""

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
    """Shows in each observation how often it was notified, a tenth for each, beside its steps."""

    def notify(self):
        self.observations += 0.1


class World(gymnasium.Wrapper):
    """Rewards the number of its map."""

    map_number = 0

    def notify(self):
        self.map_number += 1

    def step(self, action):
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, self.map_number, terminated, truncated, info


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: options["backend"])
def test_environments_hear_of_it_once_before_their_next_step(options):
    with pufferlib.vector.make(Notified, num_envs=2, **options) as vecenv:
        vecenv.reset()
        vecenv.notify()
        seen = [vecenv.step([0, 0])[0].tolist() for _ in range(2)]
        assert seen == [[[pytest.approx(1.1)]] * 2, [[pytest.approx(2.1)]] * 2]
        vecenv.notify()
        assert vecenv.reset()[0].tolist() == [[0], [0]]  # heard of before the reset, and not again after it
        assert vecenv.step([0, 0])[0].tolist() == [[1], [1]]


@pytest.mark.parametrize("options", BACKENDS, ids=lambda options: options["backend"])
def test_the_environment_inside_wrappers_and_emulation_hears_of_it(options):
    def creator(buf):
        return GymnasiumPufferEnv(TimeLimit(World(FunctionEnv()), 100), buf=buf)

    with pufferlib.vector.make(creator, num_envs=2, **options) as vecenv:
        vecenv.reset()
        vecenv.notify()
        vecenv.notify()  # twice before anybody goes on is once
        assert vecenv.step([0, 0])[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    "creator", [ScriptedPufferEnv, lambda: GymnasiumPufferEnv(FunctionEnv())], ids=["native", "emulated"]
)
def test_an_environment_without_notify_is_told(creator):
    vecenv = pufferlib.vector.make(creator, backend="Serial")
    vecenv.reset()
    vecenv.notify()
    with pytest.raises(NotImplementedError, match=r"(ScriptedPuffer|Function)Env: define notify\(\)") as told:
        vecenv.step([0])
    assert "while notifying environment 0" in told.value.__notes__
    vecenv.close()
    with pytest.raises(APIUsageError, match=r"Serial.notify: the environments are closed"):
        vecenv.notify()
