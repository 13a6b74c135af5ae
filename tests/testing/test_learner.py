"""Tests of the learner suite: correct learners pass, and each bug is named."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.testing import check_learner
from pufferlib.testing.learner import TASKS
from tests.testing import broken_learners
from tests.tiers import once

EXAMPLE = Path(__file__).parents[2] / "examples" / "07_check_a_learner.py"
BROKEN = [
    ("sign_flipped", "bandit", "it learns the opposite: a sign is wrong"),
    ("rows_mixed_up", "multiagent", "agents' rows are mixed up"),
    ("acts_greedily", "stochastic", "the policy has collapsed to one action, or acts greedily"),
    ("bytes_reversed", "spaces", "unpacked in another order or dtype"),
    ("short_sighted", "password", "a reward at the end does not reach the steps before it"),
    ("short_sighted", "squared", "credit assignment"),
    ("memory_never_reset", "memory", "the recurrent state is not kept from step to step, or not reset at the ends"),
    ("memory_never_kept", "memory", "the recurrent state is not kept from step to step, or not reset at the ends"),
]


def check(train=None, only=None, **others):
    return [*check_learner(train, only, **others)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "only"),
    [
        (1, ["multiagent", "password"]),
        pytest.param(2, None, marks=pytest.mark.all),
        *(pytest.param(seed, None, marks=pytest.mark.nightly) for seed in (1, 3, 4, 5)),
    ],
)
def test_pufferlib_trainer_passes(seed, only):
    results = check(None, only, seed=seed)
    assert [result.env_name for result in results] == (only or [task.env_name for task in TASKS])
    assert all(result.passed and result.finding is None and result.error is None for result in results), results


def test_invalid_actions_are_reported():
    (result,) = check(lambda vecenv, seed, steps: lambda observations: np.full(len(observations), 999), ["bandit"])
    assert result.finding is None
    assert "999" in str(result.error)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_cleanrl_style_loop_passes():
    train = runpy.run_path(str(EXAMPLE))["train"]
    results = check(train)
    assert all(result.passed for result in results), results


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("learner", "env_name", "bug"), once(BROKEN, BROKEN[:2]))
def test_bug_is_named(learner, env_name, bug):
    (result,) = check(getattr(broken_learners, learner), [env_name])
    assert not result.passed
    assert result.error is None
    assert bug in result.finding.bug


def test_failing_learner_does_not_end_suite():
    def train(vecenv, seed, total_timesteps):
        raise ZeroDivisionError("mine")

    results = check(train, ["bandit", "password"])
    assert [(result.passed, type(result.error), result.finding) for result in results] == [
        (False, ZeroDivisionError, None)
    ] * 2
    assert math.isnan(results[0].score)


def test_learner_gets_arguments_and_episode_starts():
    seen = {}

    class Act:
        def __init__(self):
            self.resets = []

        def __call__(self, observations):
            return np.zeros(len(observations), int)

        def reset(self, ended):
            self.resets.append(ended.copy())

    def train(vecenv, seed, total_timesteps):
        observations, _ = vecenv.reset(seed)
        seen.update(rows=len(observations), seed=seed, steps=total_timesteps, act=Act())
        return seen["act"]

    (result,) = check(train, ["password"], seed=7, scale=0.5)
    assert (seen["seed"], seen["steps"]) == (7, 50_000)
    assert 0 <= result.score <= 1
    resets = seen["act"].resets  # at the start of each of four plays of eight steps, and after each step
    assert len(resets) == 4 * 9
    whole = [step for step, rows in enumerate(resets) if rows.all()]
    assert whole == [play * 9 + step for play in range(4) for step in (0, 5)], "episodes of five steps"
    assert all(len(rows) == seen["rows"] for rows in resets)


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ((None, ["bandid"]), UnknownNameError, "unknown environment of the suite 'bandid'; did you mean 'bandit'"),
        ((lambda vecenv: None,), APIUsageError, r"a function train\(vecenv, seed, total_timesteps\), got"),
        ((3,), APIUsageError, r"a function train\(vecenv, seed, total_timesteps\), got 3"),
        ((None, None, 1, 0.0), APIUsageError, r"scale must be above 0, got 0\.0"),
    ],
)
def test_invalid_call_raises_before_training(arguments, kind, sentence):
    with pytest.raises(kind, match=sentence):
        check_learner(*arguments)


def test_learner_without_result_is_reported():
    (result,) = check(lambda vecenv, seed, total_timesteps: None, ["bandit"])
    assert "must return a policy of pufferlib.models, or a function act(observations) -> actions, got None" in str(
        result.error
    )
