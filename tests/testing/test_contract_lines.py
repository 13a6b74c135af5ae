"""Tests of check_env and examine with environments that break each line of docs/contract.md."""

import itertools
import logging
import sys
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import ParallelEnv

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.seeding import env_seed
from pufferlib.testing import CONTRACT, ContractError, check_env, examine
from tests.testing.test_defects import LENGTH, Walk
from tests.tiers import once

STEPS = 60


class Native(pufferlib.PufferEnv):
    """Environment of two agents without a defect, in every autoreset mode."""

    single_observation_space, single_action_space, num_agents = Box(-100, 100, (3,)), Discrete(2), 2

    def __init__(self, buf=None, autoreset="same_step"):
        super().__init__(buf)
        self.autoreset = autoreset

    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(env_seed(seed, 0))
        self.masks[:] = True
        self.start()
        return self.observations, []

    def start(self):
        self.clock = 0
        self.observe()

    def observe(self):
        self.observations[:] = self.random.normal(size=3)

    def step(self, actions):
        is_over = self.clock == LENGTH
        self.rewards[:], self.truncations[:] = 0, False
        if is_over and self.autoreset == "disabled":
            self.masks[:] = False
        elif is_over:
            self.start()
        else:
            self.act()
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def act(self):
        self.clock += 1
        self.observe()
        self.rewards[:], self.truncations[:] = 1, self.clock == LENGTH
        if self.clock == LENGTH and self.autoreset == "same_step":
            self.final_observations[:] = self.observations
            self.start()

    def close(self):
        pass


class WithoutSpace(Native):
    def __init__(self, buf=None):
        self.single_observation_space = Dict(a=Discrete(2))
        super().__init__(buf)


class WithoutAgents(Native):
    num_agents = 0


class WithoutActionSpace(Walk):
    action_space = None


class ReturnsOneRow(Native):
    def step(self, actions):
        observations, *others = super().step(actions)
        return observations[:1], *others


class WritesAfterItsRows(Native):
    def act(self):
        super().act()
        batch = self.rewards.base
        if batch is not None and len(batch) > 2:
            batch[3] = 1


class ReturnsFour(Walk):
    def step(self, action):
        return super().step(action)[:4]


class ConstantObservation(Walk):
    def observe(self):
        return np.zeros(2, np.float32)


class ConstantNumberWithinBounds(Walk):
    observation_space = Box(0, 1, (1,))

    def observe(self):
        return np.full(1, 0.5, np.float32)


class StepWritesNoObservation(Native):
    def act(self):
        observations = self.observations.copy()
        super().act()
        if self.clock:
            self.observations[:] = observations


class Infinite(Walk):
    observation_space = Box(-np.inf, np.inf, (2,))

    def observe(self):
        return np.array([np.inf if self.count == 3 else self.place, self.count], np.float32)


class InfiniteInAField(Walk):
    observation_space = Dict(place=Box(-np.inf, np.inf, (2,)))

    def observe(self):
        return {"place": np.array([self.place, -np.inf if self.count == 3 else 0], np.float32)}


class FirstObservationOutside(Walk):
    def observe(self):
        return np.array([1000, self.count], np.float32)


class OtherShape(Walk):
    def observe(self):
        return np.zeros(3 if self.count == 3 else 2, np.float32)


class RewardIsNone(Walk):
    def step(self, action):
        observation, _, *others = super().step(action)
        return observation, None, *others


class Endless(Walk):
    def ends(self):
        return False


class EndlessNative(Native):
    def act(self):
        super().act()
        self.truncations[:] = False


class EndIsNone(Walk):
    def ends(self):
        return None


class UnknownMode(Native):
    def __init__(self, buf=None):
        super().__init__(buf)
        self.autoreset = "next step"


class ResetsAtOnceInEveryMode(Native):
    def act(self):
        super().act()
        if self.autoreset == "next_step" and self.clock == LENGTH:
            self.observe()


class EndsLaterWhenDisabled(Native):
    def act(self):
        self.clock += self.autoreset == "disabled" and self.clock == LENGTH - 2
        super().act()


class NeverPresent(Native):
    def reset(self, seed=None):
        super().reset(seed)
        self.masks[:] = False
        return self.observations, []

    def act(self):
        self.masks[:] = False


class InfosAreATuple(Native):
    def reset(self, seed=None):
        return super().reset(seed)[0], ({},)


class ShowsItsNumber(Walk):
    """Environment that observes how many were made before it."""

    made = itertools.count()

    def __init__(self):
        super().__init__()
        self.number = next(self.made)

    def observe(self):
        return np.array([self.place, self.number % 97], np.float32)


class KeepsTheClock(Walk):
    total = 0

    def observe(self):
        self.total += 1
        return np.array([self.place, self.total % 90], np.float32)


class SharesItsGoal(Walk):
    """Environment whose goal is a class attribute that each copy draws from its own generator."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        type(self).goal = self.np_random.normal()
        return self.observe(), {}

    def observe(self):
        return np.array([self.place, getattr(self, "goal", 0)], np.float32)


class SharedBoard(Native):
    def __init__(self, num_envs=1, buf=None):
        self.num_agents = 2 * num_envs
        super().__init__(buf)

    def observe(self):
        self.observations[:] = self.random.normal(size=3) + self.num_agents


class LeaksAtTheEnd(Native):
    def __init__(self, buf=None):
        super().__init__(buf)
        self.history = []

    def act(self):
        super().act()
        if self.truncations[0]:
            self.history.append(np.ones(2000))


class LogsToTheTerminal(Walk):
    def reset(self, *, seed=None, options=None):
        logging.StreamHandler(sys.stderr).emit(logging.makeLogRecord({"msg": "new episode"}))
        return super().reset(seed=seed)


class UnknownAgent(ParallelEnv):
    metadata = {"name": "unknown"}  # noqa: RUF012
    possible_agents = ["a"]  # noqa: RUF012

    def observation_space(self, agent):
        return Discrete(2)

    action_space = observation_space

    def reset(self, seed=None, options=None):
        self.agents = self.possible_agents
        return {"a": 0}, {"a": {}}

    def step(self, actions):
        return {"a": 1, "z": 0}, {"a": 0.0}, {"a": False}, {"a": False}, {"a": {}}


class MissingReward(UnknownAgent):
    def step(self, actions):
        return {"a": 1}, {"A": 0.0}, {"a": False}, {"a": False}, {"a": {}}


def of_gymnasium(kind):
    return partial(GymnasiumPufferEnv, env_creator=kind)


def of_pettingzoo(kind):
    return partial(PettingZooPufferEnv, env_creator=kind)


BROKEN = [
    ("spaces", WithoutSpace, "single_observation_space must be a Box, got Dict"),
    ("spaces", WithoutAgents, "num_agents must be an int >= 1, got 0"),
    ("spaces", of_gymnasium(WithoutActionSpace), "action space None is not supported; use Box"),
    ("spaces", of_pettingzoo(UnknownAgent), r"unknown agent 'z'; possible agents: \['a'\]"),
    ("arrays", ReturnsOneRow, "observations must be returned as self.observations, got another object"),
    (
        "arrays",
        WritesAfterItsRows,
        "rewards must be written only in the 2 rows of the environment, got another .* after",
    ),
    ("arrays", of_gymnasium(ReturnsFour), "step must return observation, reward, .* got 4 values"),
    (
        "observations",
        of_gymnasium(ConstantObservation),
        "must change during an episode, got the same .* of 50 st",
    ),
    ("observations", of_gymnasium(ConstantNumberWithinBounds), "must change during an episode"),
    ("observations", StepWritesNoObservation, "must change during an episode.*; write the observation in step"),
    ("observations", of_gymnasium(Infinite), "observations must be finite, got inf in row 0; look for a division"),
    ("observations", of_gymnasium(InfiniteInAField), r"must be finite, got -inf in row 0|got -inf in \['place'\]"),
    ("observations", of_gymnasium(FirstObservationOutside), "observation must have values in Box.*, got .* to 1000.0"),
    ("observations", of_gymnasium(OtherShape), r"observation must have shape \(2,\), got shape \(3,\)"),
    ("rewards", of_gymnasium(RewardIsNone), "the reward must be a finite number .*, got None"),
    ("rewards", of_pettingzoo(MissingReward), "must return one reward for each living agent, got none for 'a'"),
    ("ends", of_gymnasium(Endless), "an episode must end, got no terminal and no truncation in 10000 steps; set term"),
    ("ends", EndlessNative, "an episode must end, got no terminal and no truncation in 10000 steps"),
    ("ends", of_gymnasium(EndIsNone), "terminated must be True or False, got None"),
    (
        "autoreset",
        UnknownMode,
        "autoreset must be one of 'next_step', 'same_step', 'disabled', got 'next step'; set the",
    ),
    (
        "autoreset",
        ResetsAtOnceInEveryMode,
        "'next_step' observations must have the last observation .* in step 10; show",
    ),
    (
        "autoreset",
        EndsLaterWhenDisabled,
        "must end in the same step in every mode, got the first end in step 10 .* 9 wi",
    ),
    ("absent", NeverPresent, "some agent must be present, got masks that are False for all agents in every step"),
    ("infos", InfosAreATuple, r"infos must be a list of dicts, got \(\{\},\); return \[\]"),
    ("seed", of_gymnasium(ShowsItsNumber), "the same seed must give the same observations in every copy"),
    ("reset", of_gymnasium(KeepsTheClock), "the same observations after any earlier episodes"),
    ("copies", of_gymnasium(SharesItsGoal), "same observations while another copy plays"),
    ("batch", SharedBoard, "same observations with num_envs=2 as with 1"),
    ("leaks", LeaksAtTheEnd, "episodes must not leak, got about 1.* more bytes with each"),
    ("silence", of_gymnasium(LogsToTheTerminal), "must write nothing to the terminal, got 'new episode'"),
]


@pytest.fixture
def short_search(monkeypatch):
    """Search for the end of an episode for 1,000 instead of 10,000 steps, which saves a second."""
    monkeypatch.setattr("pufferlib.testing.check.LONGEST_EPISODE", 1000)


def name_of(value):
    return getattr(value, "__name__", None) or value.keywords["env_creator"].__name__


@pytest.mark.parametrize(("line", "creator", "message"), BROKEN, ids=[name_of(case[1]) for case in BROKEN])
def test_broken_line_is_found(line, creator, message):
    with pytest.raises(ContractError, match=message) as error:
        check_env(creator, steps=STEPS)
    assert error.value.line == line


ONE_PER_LINE = [*{case[0]: case for case in BROKEN}.values()]
FEW = ONE_PER_LINE[::4]  # all lines are examined in the same way, and the test above finds all broken lines


@pytest.mark.parametrize(("line", "creator", "message"), once(BROKEN, FEW), ids=[name_of(case[1]) for case in BROKEN])
def test_examine_finds_broken_line(line, creator, message, short_search):
    assert line in {result.line for result in examine(creator, steps=STEPS) if result.state == "broken"}


def test_every_line_has_an_environment_that_breaks_it():
    assert {case[0] for case in BROKEN} == set(CONTRACT)


def test_environments_without_a_defect_pass():
    check_env(Native, steps=STEPS)
    check_env(of_gymnasium(Walk), steps=STEPS)


def test_examine_checks_other_lines_after_a_step_that_breaks_one():
    states = {result.line: result.state for result in examine(of_gymnasium(Infinite), steps=STEPS)}
    assert states.pop("observations") == "broken"
    for line in ("seed", "reset", "copies", "leaks", "silence"):
        assert states[line] == "kept"


def test_constant_observations_leave_the_other_lines_kept():
    states = {result.line: result.state for result in examine(of_gymnasium(ConstantObservation), steps=STEPS)}
    assert states.pop("observations") == "broken"
    assert set(states.values()) == {"kept"}


def test_later_first_end_is_reported_with_its_step():
    results = {result.line: result for result in examine(of_gymnasium(Walk), steps=5)}
    assert results["ends"].state == "unknown"
    assert results["ends"].message == "no episode ended: use more steps, at least 10"


def test_continuing_task_needs_no_end(short_search):
    check_env(EndlessNative, steps=STEPS, continuing=True)
    results = {result.line: result for result in examine(EndlessNative, steps=STEPS, continuing=True)}
    assert {result.state for result in results.values()} == {"kept", "unknown"}
    assert results["ends"].message == "no episode ended: use more steps"
