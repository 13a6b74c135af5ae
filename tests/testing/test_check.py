"""Tests of check_env with environments that break the contract."""

import re
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.testing import CONTRACT, ContractError, check_env
from tests.envs import FunctionEnv


class Good(pufferlib.PufferEnv):
    """Environment of three agents that keeps the contract."""

    def __init__(self, buf=None, seed=0):
        self.single_observation_space = Box(-1, 1, (2,))
        self.single_action_space = Discrete(3)
        self.num_agents = 3
        super().__init__(buf)
        self.closed = False

    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.observations[:] = self.random.uniform(-1, 1, self.observations.shape)
        return self.observations, []

    def step(self, actions):
        self.observations[:] = self.random.uniform(-1, 1, self.observations.shape)
        self.rewards[:] = actions
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        self.closed = True


def test_valid_env_passes():
    check_env(Good, steps=50, continuing=True)
    env = Good()
    check_env(env, steps=50, continuing=True)
    assert not env.closed
    check_env(lambda buf=None: Good(buf), steps=50, continuing=True)
    check_env(Truncates, steps=50)


class ReturnsCopies(Good):
    def step(self, actions):
        observations, *rest = super().step(actions)
        return observations.copy(), *rest


class ReplacesArray(Good):
    def step(self, actions):
        self.observations = np.zeros((3, 2), np.float32)
        return super().step(actions)


class LeavesSpace(Good):
    def step(self, actions):
        result = super().step(actions)
        self.observations[1] = 2
        return result


class RewardIsNaN(Good):
    def step(self, actions):
        result = super().step(actions)
        self.rewards[1] = np.nan
        return result


class Unseeded(Good):
    def reset(self, seed=None):
        return super().reset(seed=np.random.default_rng().integers(2**31))


class InfosAreADict(Good):
    def step(self, actions):
        *result, _ = super().step(actions)
        return *result, {}


class IgnoresBuf(Good):
    def __init__(self, buf=None):
        super().__init__()


class RewardsAbsentAgents(Good):
    def step(self, actions):
        result = super().step(actions)
        self.rewards[:], self.masks[:] = 1, False
        return result


class RewardsAreFloat64(Good):
    def __init__(self, buf=None):
        super().__init__(buf)
        self.rewards = np.zeros(3)


class ReturnsNone(Good):
    def step(self, actions):
        super().step(actions)


class ResetReturnsArray(Good):
    def reset(self, seed=None):
        return super().reset(seed)[0]


class Truncates(Good):
    """Environment that truncates its second agent in every fifth step."""

    def reset(self, seed=None):
        self.clock = 0
        return super().reset(seed)

    def step(self, actions):
        result = super().step(actions)
        self.clock += 1
        self.truncations[1] = self.clock % 5 == 0
        if self.truncations[1]:
            self.keep_final_observations()
        return result

    def keep_final_observations(self):
        self.final_observations[:] = self.observations


class KeepsNoFinalObservation(Truncates):
    def keep_final_observations(self):
        pass


class KeepsHalfOfFinalObservation(Truncates):
    def keep_final_observations(self):
        self.final_observations[1, 0] = self.observations[1, 0]


class KeepsInvalidFinalObservation(Truncates):
    def keep_final_observations(self):
        self.final_observations[:] = self.observations + 5


class ReplacesFinalObservations(Truncates):
    def keep_final_observations(self):
        self.final_observations = self.observations.copy()


class EndsTwice(Truncates):
    def step(self, actions):
        result = super().step(actions)
        self.terminals[:] = self.truncations
        return result


class SkipsInit(Good):
    def __init__(self, buf=None):
        self.num_agents = 2


class WrongSpace(Good):
    def __init__(self, buf=None):
        super().__init__(buf)
        self.single_action_space = None


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            ReturnsCopies,
            r"ReturnsCopies: observations must be returned as self.observations, got another object; return",
        ),
        (ReplacesArray, r"observations must stay the same array, got another; write in place: self.observations\[:\]"),
        (LeavesSpace, r"observations must be in Box.*, got 2.0 in row 1; widen"),
        (RewardIsNaN, r"rewards must be finite, got nan in row 1; look"),
        (
            ReturnsNone,
            r"ReturnsNone: step must return observations, rewards, .* and infos, got None; return exactly these five",
        ),
        (
            ResetReturnsArray,
            r"ResetReturnsArray: reset must return observations and infos, got ndarray; return self.observations, \[\]",
        ),
        (
            KeepsNoFinalObservation,
            r"final_observations must have the last .* got row 1 not written in step 5; before .* starts",
        ),
        (KeepsHalfOfFinalObservation, r"final_observations must have the last .* got row 1 not written in step 5"),
        (KeepsInvalidFinalObservation, r"final_observations must be in Box.*, got \d.* in row 1"),
        (ReplacesFinalObservations, r"final_observations must stay the same array, got another; write in place"),
        (EndsTwice, r"an episode must end with a terminal or a truncation, got both in row 1; do not truncate"),
        (Unseeded, r"the same seed must give the same observations, got others in step 0"),
        (InfosAreADict, r"infos must be a list of dicts, got \{\}; return \[\]"),
        (IgnoresBuf, r"observations must be the array given in buf, got another; pass buf on"),
        (RewardsAbsentAgents, r"rewards of absent agents must be 0, got 1.0 in row 0; clear"),
        (RewardsAreFloat64, r"rewards must be an array float32 \(3,\), got float64 \(3,\)"),
        (SkipsInit, r"single_observation_space is missing; call super"),
        (WrongSpace, r"single_action_space must be Discrete, MultiDiscrete or Box, got None"),
    ],
)
def test_broken_env_raises(broken, message):
    with pytest.raises(ContractError, match=message) as error:
        check_env(broken)
    assert isinstance(error.value, AssertionError)
    assert isinstance(error.value, pufferlib.PufferError)


def test_emulated_info_that_is_not_dict_raises():
    class InfoIsAList(FunctionEnv):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], []

    with pytest.raises(ContractError, match=r"where info is a dict, got list as info from .*; return observation"):
        check_env(GymnasiumPufferEnv(InfoIsAList()))


class Modes(Good):
    """Environment with all autoreset modes. Episodes of the first agent have five steps."""

    def __init__(self, buf=None, autoreset="same_step"):
        super().__init__(buf)
        self.num_envs, self.autoreset = 3, autoreset

    def reset(self, seed=None):
        self.clock, self.masks[:] = 0, True
        return super().reset(seed)

    def step(self, actions):
        last = self.observations[0].copy()
        over, mode = self.clock == 5, self.autoreset
        result = super().step(actions)
        self.terminals[0] = False
        if over and mode == "disabled":
            self.observations[0], self.rewards[0], self.masks[0] = last, 0, False
            return result
        if over and mode == "next_step":
            self.rewards[0] = 0
        self.clock = 0 if over else self.clock + 1
        self.terminals[0] = self.clock == 5
        return result


class PaysForResets(Modes):
    def step(self, actions):
        result = super().step(actions)
        self.rewards[0] += self.autoreset == "next_step" and self.clock == 0
        return result


class ChangesAfterEnd(Modes):
    def step(self, actions):
        result = super().step(actions)
        self.observations[0] = self.rewards[1] / 3
        return result


class StaysPresent(Modes):
    def step(self, actions):
        result = super().step(actions)
        self.masks[0] = True
        return result


class IgnoresMode(Modes):
    def __init__(self, buf=None, autoreset="same_step"):
        super().__init__(buf)


def test_all_autoreset_modes_are_checked():
    stepped = set()

    class Recorded(Modes):
        def step(self, actions):
            stepped.add(self.autoreset)
            return super().step(actions)

    check_env(Recorded)
    assert stepped == {"same_step", "next_step", "disabled"}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (PaysForResets, "with autoreset 'next_step' rewards must be 0 in the step after the end, got 1.0 in row 0"),
        (ChangesAfterEnd, "with autoreset 'disabled' the last observation must stay after the end of an episode"),
        (StaysPresent, "with autoreset 'disabled' masks must be 0 in the step after the end, got True in row 0"),
        (IgnoresMode, "autoreset must be 'next_step' when passed to the environment, got 'same_step'"),
    ],
)
def test_broken_autoreset_mode_raises(kind, message):
    with pytest.raises(ContractError, match=message):
        check_env(kind)


class TakesNoSeed(Modes):
    def reset(self):
        return super().reset()


def test_reset_with_kwargs_accepts_seed():
    seeds = set()

    class TakesAnything(Modes):
        def reset(self, **anything):
            seeds.add(anything.get("seed"))
            return super().reset(**anything)

    check_env(TakesAnything)
    assert len(seeds) > 1  # plays with different seeds are compared


@pytest.mark.parametrize(
    ("env", "options", "error", "message"),
    [
        ("breakout", {}, APIUsageError, "env must be an environment, or a class .*, got 'breakout'; for a name, pass"),
        (Modes, {"steps": 0}, APIUsageError, "steps must be at least 1, got 0"),
        (TakesNoSeed, {}, ContractError, r"reset must accept a seed; define reset\(self, seed=None\)"),
    ],
)
def test_invalid_arguments_raise(env, options, error, message):
    with pytest.raises(error, match=message):
        check_env(env, **options)


def test_docs_list_every_line_of_contract():
    page = (Path(__file__).parents[2] / "docs/contract.md").read_text()
    lines = [f"{number}. **{name}**: {text}" for number, (name, text) in enumerate(CONTRACT.items(), 1)]
    assert re.findall(r"^\d+\. .*", page, re.MULTILINE) == lines
