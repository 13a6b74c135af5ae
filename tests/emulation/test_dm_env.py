"""DMEnvPufferEnv, tested with environments that follow the dm_env interface without the package."""

import enum
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

import pufferlib.vector
from pufferlib import APIUsageError
from pufferlib.emulation import DMEnvPufferEnv, DMEnvToGymnasium
from pufferlib.emulation.dm_env import space_of
from tests.envs import SamplePufferEnv


class StepType(enum.IntEnum):
    FIRST, MID, LAST = range(3)


class TimeStep(SimpleNamespace):
    def last(self):
        return self.step_type is StepType.LAST


def array(shape=(), dtype=np.float64, **others):
    """Make a dm_env spec, such as a BoundedArray with ``minimum`` or a DiscreteArray with ``num_values``."""
    return SimpleNamespace(shape=shape, dtype=np.dtype(dtype), **others)


class Script:
    """dm_env environment that observes its number of steps and random numbers.

    Args:
        discounts: Discount of each step. The episode ends with the last one.
        reward: Reward of each step.
    """

    def __init__(self, discounts=(1.0, 1.0, 0.0), reward=0.5):
        self.discounts, self.reward, self.rng, self.got = discounts, reward, np.random.RandomState(0), []

    def observation_spec(self):
        return {"step": array(dtype=np.int32), "chance": array((2,), minimum=0.0, maximum=[1.0, 2.0])}

    def action_spec(self):
        return array(dtype=np.int32, num_values=4)

    def observe(self):
        return {"step": np.int32(self.count), "chance": self.rng.uniform(size=2)}

    def reset(self):
        self.count = 0
        return TimeStep(step_type=StepType.FIRST, reward=None, discount=None, observation=self.observe())

    def step(self, action):
        self.got.append(action)
        self.count += 1
        kind = StepType.LAST if self.count == len(self.discounts) else StepType.MID
        discount = self.discounts[self.count - 1]
        return TimeStep(step_type=kind, reward=self.reward, discount=discount, observation=self.observe())

    def close(self):
        self.got = None


class SeededScript(Script):
    def seed(self, seed):
        self.rng = np.random.RandomState(seed)


def test_specs_become_spaces():
    env = DMEnvToGymnasium(Script(), reseed=lambda env, seed: None)
    assert env.observation_space == Dict(
        {
            "step": Box(-(2**31), 2**31 - 1, (), np.int32),
            "chance": Box(np.zeros(2), np.array([1.0, 2.0]), dtype=np.float64),
        }
    )
    assert env.action_space == Discrete(4)
    assert space_of("x", [array(dtype=bool), array((3,), np.float32)]) == Tuple(
        [Box(0, 1, (), np.bool_), Box(-np.inf, np.inf, (3,), np.float32)]
    )


def test_observations_and_actions_pass_through_emulation():
    env = DMEnvPufferEnv(env_creator=SeededScript, seed=3)
    flat, _ = env.reset()
    fields = flat.view(env.obs_dtype)[0]
    assert fields["step"] == 0
    np.testing.assert_array_equal(fields["chance"], np.random.RandomState(3).uniform(size=2))
    flat, reward, *_ = env.step(2)
    assert (flat.view(env.obs_dtype)[0]["step"], reward) == (1, 0.5)
    assert env.unwrapped.dm_env.got == [2]
    env.close()
    assert env.unwrapped.dm_env.got is None


@pytest.mark.parametrize(
    ("discounts", "ends", "infos"),
    [
        ((1.0, 0.0), [(False, False), (True, False)], [{}, {}]),
        ((1.0, 1.0), [(False, False), (False, True)], [{}, {}]),
        ((0.9, 0.5), [(False, False), (False, True)], [{"discount": 0.9}, {"discount": 0.5}]),
        ((0.0, None), [(False, False), (False, True)], [{"discount": 0.0}, {}]),
    ],
)
def test_discount_of_last_step_decides_between_terminal_and_truncation(discounts, ends, infos):
    env = DMEnvPufferEnv(SeededScript(discounts))
    env.reset(seed=0)
    outcomes = [env.step(0) for _ in discounts]
    assert [outcome[2:4] for outcome in outcomes] == ends
    assert [outcome[4] for outcome in outcomes] == infos
    assert env.done


def task_of_dm_control():
    env = Script()
    env.task = SimpleNamespace(random=env.rng)
    return env


@pytest.mark.parametrize(
    "kwargs",
    [
        {"env_creator": SeededScript},
        {"env_creator": task_of_dm_control},
        {"env_creator": Script, "reseed": lambda env, seed: env.rng.seed(seed)},
    ],
    ids=["seed()", "task", "reseed"],
)
def test_reset_seed_reproduces_observations(kwargs):
    env = DMEnvPufferEnv(**kwargs)
    first, again, other = (env.reset(seed=seed)[0].tobytes() for seed in (1, 1, 2))
    assert first == again != other


def test_environment_without_seed_warns():
    env = DMEnvPufferEnv(Script())
    env.reset()
    with pytest.warns(UserWarning, match=r"^Script cannot be seeded: .* add a method seed\(seed\), or pass reseed"):
        env.reset(seed=1)


def test_dm_env_environments_run_in_a_batch():
    kwargs = {"env_creator": SeededScript}
    with pufferlib.vector.make(DMEnvPufferEnv, env_kwargs=kwargs, num_envs=2, backend="Serial") as envs:
        envs.reset(seed=1)
        ends = [envs.step([0, 1])[2].tolist() for _ in range(4)]
        assert ends == [[False] * 2, [False] * 2, [True] * 2, [False] * 2]


@pytest.mark.parametrize("env", [Script, SamplePufferEnv(), 3])
def test_objects_that_are_no_dm_env_environment_are_refused(env):
    with pytest.raises(APIUsageError, match=r"DMEnvPufferEnv: env must be a dm_env.Environment, got .*; pass an inst"):
        DMEnvPufferEnv(env)


def test_specs_and_rewards_without_space_are_refused():
    with pytest.raises(APIUsageError, match=r"observation\['name'\] spec must describe arrays of numbers, got .*wrap"):
        space_of("observation", {"name": array(dtype=object)})
    env = DMEnvPufferEnv(SeededScript(reward=np.ones(2)))
    env.reset(seed=0)
    with pytest.raises(APIUsageError, match=r"reward of a dm_env environment must be one number, got array"):
        env.step(0)
