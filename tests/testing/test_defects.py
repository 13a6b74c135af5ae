"""Tests of check_env with environments that have exactly one defect."""

import io
import os
import random
import threading
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.seeding import env_seed
from pufferlib.testing import CONTRACT, ContractError, check_env, examine
from tests.envs import ScriptedParallelEnv, alive
from tests.tiers import as_all

LENGTH = 10


class Walk(gymnasium.Env):
    """Walk of ``LENGTH`` steps on a line, without a defect. Subclasses add one defect each."""

    observation_space, action_space = Box(-100, 100, (2,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.normal(), 0
        return self.observe(), {}

    def step(self, action):
        self.place += 2 * int(action) - 1
        self.count += 1
        return self.observe(), self.place, self.ends(), False, {}

    def observe(self):
        return np.array([self.place, self.count], np.float32)

    def ends(self):
        return self.count == LENGTH


class UnseededGenerator(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset()


class GlobalGenerator(Walk):
    def observe(self):
        return np.array([self.place, random.random()], np.float32)


class DrawsInInit(Walk):
    def __init__(self):
        self.start = np.random.default_rng().normal()

    def observe(self):
        return np.array([self.place, self.start], np.float32)


class LeavesItsSpace(Walk):
    def observe(self):
        return np.array([self.place, 50 * self.count], np.float32)


class LeavesAFieldOfItsSpace(Walk):
    observation_space = Dict({"place": Box(-100, 100, (2,)), "level": Box(0, 3, (), np.int64)})

    def observe(self):
        return {"place": super().observe(), "level": self.count}


class DividesTwice(Walk):
    observation_space = Box(0, 255, (40, 40, 1), np.float32)

    def observe(self):
        return np.full((40, 40, 1), self.count / 255, np.float32)


class BlackPicture(Walk):
    observation_space = Box(0, 255, (40, 40, 3), np.uint8)

    def observe(self):
        return np.full((40, 40, 3), self.count / 255).astype(np.uint8)


class NeverEnds(Walk):
    def step(self, action):
        outcome = super().step(action)
        if self.count == LENGTH:
            self.reset()
        return outcome

    def ends(self):
        return False


class ReportsWithoutEnd(Walk):
    def step(self, action):
        *outcome, _ = super().step(action)
        return *outcome, {"episode": {"r": 1.0}} if self.count % LENGTH == 0 else {}

    def ends(self):
        return False


class KeepsState(Walk):
    best = 0.0

    def observe(self):
        self.best = max(self.best, self.place)
        return np.array([self.place, self.best], np.float32)


class SharesState(Walk):
    visits = [0]  # noqa: RUF012 - the defect

    def reset(self, *, seed=None, options=None):
        self.visits[0] = 0
        return super().reset(seed=seed)

    def observe(self):
        self.visits[0] += 1
        return np.array([self.place, self.visits[0] % 50], np.float32)


class SeedsTheGlobalGenerator(Walk):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            random.seed(seed)
        return super().reset(seed=seed)

    def observe(self):
        return np.array([self.place, random.random()], np.float32)


class InfoIsAList(Walk):
    def step(self, action):
        return *super().step(action)[:4], []


class Prints(Walk):
    def step(self, action):
        print("stepping with", action)
        return super().step(action)


class PrintsFromC(Walk):
    def step(self, action):
        os.write(1, b"stepping in C\n")
        return super().step(action)


class LeaksMemory(Walk):
    def __init__(self):
        self.history = []

    def reset(self, *, seed=None, options=None):
        self.history.append(np.ones(2000))
        return super().reset(seed=seed)


class LeaksFiles(Walk):
    def __init__(self):
        self.files = []

    def reset(self, *, seed=None, options=None):
        self.files.append(open(os.devnull))  # noqa: SIM115 - the defect
        return super().reset(seed=seed)

    def close(self):
        for file in self.files:
            file.close()


class LeaksThreads(Walk):
    def __init__(self):
        self.over = threading.Event()

    def reset(self, *, seed=None, options=None):
        threading.Thread(target=self.over.wait, daemon=True).start()
        return super().reset(seed=seed)

    def close(self):
        self.over.set()


class StaysOpen(Walk):
    kept: list[io.IOBase] = []  # noqa: RUF012 - keeps the files open

    def __init__(self):
        self.kept.append(open(os.devnull))  # noqa: SIM115 - the defect


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        (UnseededGenerator, "seed", "the same seed must give the same observations, got others in step 0; draw only"),
        (GlobalGenerator, "seed", "the same seed must give the same observations, got others in step 0; draw only"),
        (DrawsInInit, "seed", "same observations in every copy, got others in step 0; in __init__ draw"),
        (LeavesItsSpace, "observations", r"observations must be in Box.*, got 150.0 in row 0; widen the space"),
        (
            LeavesAFieldOfItsSpace,
            "observations",
            r"must be in the space of the environment, got 4 in \['level'\]; widen",
        ),
        (DividesTwice, "observations", r"must use the range that Box\(0.0, 255.0.* declares, got none above 0.039"),
        (BlackPicture, "observations", r"must use the range that Box\(0, 255.* declares, got none above 0; they are"),
        (NeverEnds, "ends", "must be set in terminals or truncations, got a reset without an end in step 10"),
        (ReportsWithoutEnd, "ends", "must be set in terminals or truncations, got an info with 'episode' and no end"),
        (KeepsState, "reset", "same observations after any earlier episodes, got others in step 0, but not in a new"),
        (SharesState, "copies", "same observations while another copy plays, got others in step 1; keep state"),
        (SeedsTheGlobalGenerator, "copies", "same observations while another copy plays, got others in step 1"),
        (InfoIsAList, "infos", r"the info must be a dict, got \[\]; return \{\}"),
        (Prints, "silence", r"must write nothing to the terminal, got 'stepping with \d'; remove the print"),
        (PrintsFromC, "silence", "must write nothing to the terminal, got 'stepping in C'; remove the print"),
        as_all((LeaksMemory, "leaks", r"must not leak, got about 1\d{4} more bytes with each episode; clear")),
        (LeaksFiles, "leaks", "episodes must not leak, got about 1 more open files with each episode; in reset, close"),
        as_all((LeaksThreads, "leaks", "must not leak, got about 1 more threads with each episode; in reset, join")),
        (StaysOpen, "leaks", "close must release everything, got 1 more open files with each environment; in close"),
    ],
)
def test_defect_of_gymnasium_env_is_found(kind, line, message):
    assert_found(partial(GymnasiumPufferEnv, env_creator=kind), line, message)
    for file in StaysOpen.kept:
        file.close()


def assert_found(creator, line, message):
    with pytest.raises(ContractError, match=message) as error:
        check_env(creator, steps=60)
    assert error.value.line == line
    assert str(error.value).endswith(f"(line {list(CONTRACT).index(line) + 1} of the contract)")


class Batch(pufferlib.PufferEnv):
    """Batch of environments without a defect, each with its own generator. Autoreset is "same_step"."""

    single_observation_space, single_action_space = Box(-100, 100, (3,)), Discrete(2)

    def __init__(self, num_envs=2, buf=None):
        self.num_envs = self.num_agents = num_envs
        super().__init__(buf)
        self.randoms = []

    def reset(self, seed=None):
        if seed is not None:
            self.randoms = [np.random.default_rng(env_seed(seed, game)) for game in range(self.num_envs)]
        self.masks[:] = True
        self.clock = 0
        self.observe()
        return self.observations, []

    def observe(self):
        self.observations[:] = [random.normal(size=3) for random in self.randoms]

    def step(self, actions):
        self.clock += 1
        self.observe()
        self.rewards[:], self.truncations[:] = 1, self.clock == LENGTH
        if self.clock == LENGTH:
            self.final_observations[:] = self.observations
            self.restart()
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def restart(self):
        self.reset()

    def close(self):
        pass


class WipesRewards(Batch):
    def restart(self):
        self.reset()
        self.rewards[:] = 0

    def reset(self, seed=None):
        outcome = super().reset(seed)
        self.rewards[:] = 0
        return outcome


class WipesEnds(Batch):
    def reset(self, seed=None):
        outcome = super().reset(seed)
        self.truncations[:] = False
        return outcome


class FillsTwoOfThree(Batch):
    def observe(self):
        self.observations[:, :2] = [random.normal(size=2) for random in self.randoms]


class SharesOneGenerator(Batch):
    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        return super().reset(seed)

    def observe(self):
        self.observations[:] = self.random.normal(size=(self.num_envs, 3))


class AbsentRowChanges(Batch):
    def step(self, actions):
        outcome = super().step(actions)
        self.masks[1], self.rewards[1], self.truncations[1] = False, 0, False
        return outcome


class InfosAreStrings(Batch):
    def step(self, actions):
        return *super().step(actions)[:4], ["an info"]


def test_batch_without_defect_passes():
    check_env(Batch)


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        (WipesRewards, "rewards", "a reset within a step must not change rewards, got 0.0 instead of 1.0 in row 0 in"),
        (WipesEnds, "ends", "a reset within a step must not change truncations, got False instead of True in row 0"),
        (
            FillsTwoOfThree,
            "observations",
            "must fill the whole row.* got 33% of the bytes not written by reset, first in",
        ),
        (
            SharesOneGenerator,
            "batch",
            "same observations with num_envs=3 as with 2 in the environments of both, got others",
        ),
        (
            AbsentRowChanges,
            "absent",
            "row of an absent agent must not change, got another .* row 1 in step 2",
        ),
        (InfosAreStrings, "infos", r"infos must be a list of dicts, got \['an info'\]; return \[\]"),
    ],
)
def test_defect_of_batch_is_found(kind, line, message):
    assert_found(kind, line, message)


def env_with_info_none():
    def info(env, agent, fate):
        return None if agent == "b" and env.count else {}

    return ScriptedParallelEnv("ab", *[alive("a", "b")] * LENGTH, names="ab", info=info)


def test_agent_info_that_is_not_dict_is_found():
    creator = partial(PettingZooPufferEnv, env_creator=env_with_info_none)
    assert_found(creator, "infos", "info of each agent must be a dict, got None")


def test_examine_continues_after_broken_line():
    class Several(FillsTwoOfThree):
        def step(self, actions):
            print("stepping")
            return super().step(actions)

    found = {result.line: result for result in examine(Several, steps=20)}
    assert list(found) == list(CONTRACT)
    assert {line for line, result in found.items() if result.state == "broken"} == {"observations", "silence"}
    assert found["silence"].message.startswith("Several: reset and step must write nothing")
    assert found["batch"].state == found["leaks"].state == "kept"


def test_broken_reset_is_not_reported_as_shared_state():
    creator = partial(GymnasiumPufferEnv, env_creator=KeepsState)
    found = {result.line: result.state for result in examine(creator, steps=20)}
    assert (found["reset"], found["copies"]) == ("broken", "kept")


def test_examine_reports_seed_defect_once():
    creator = partial(GymnasiumPufferEnv, env_creator=GlobalGenerator)
    found = {result.line: result.state for result in examine(creator, steps=20)}
    assert [line for line, state in found.items() if state == "broken"] == ["seed"]
    assert found["copies"] == found["batch"] == "unknown"


def test_examine_stops_if_env_cannot_be_played():
    class NoRewards(Batch):
        def __init__(self, buf=None):
            super().__init__(buf=buf)
            self.rewards = None

    found = {result.line: result.state for result in examine(NoRewards)}
    assert found.pop("arrays") == "broken"
    assert set(found.values()) == {"unknown"}
