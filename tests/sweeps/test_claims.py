"""Trials as commands take them: the defaults first, each once, those of the dead again, bad ones pruned."""

import optuna
import pytest

from pufferlib.sweeps.claims import Claims, OthersInProgress
from pufferlib.sweeps.settings import load_search
from pufferlib.training.config import load_config

HERE = "owner:"


@pytest.fixture
def study():
    return optuna.create_study(direction="maximize")


@pytest.fixture
def command(study, tmp_path):
    """Make commands that work on the study, like several at once."""

    def make(trials=10, study=study, **options):
        overrides = {"trials": trials, "only": "train.gamma,train.learning_rate", **options}
        return Claims(study, load_search(load_config("squared"), {}, [], overrides), tmp_path, lambda text: None)

    return make


def say_dead(study, claims):
    """Let others take a command for dead: its number is now another process's."""
    key = HERE + claims.owner.id
    study.set_user_attr(key, {**study.user_attrs[key], "started": 0.0})


def test_the_defaults_come_first_even_where_they_are_outside_of_their_space(study, tmp_path):
    notes = []
    search = load_search(load_config("squared"), {}, [], {"only": "train.gamma", "train.gamma.min": 0.98})
    claims = Claims(study, search, tmp_path, notes.append)
    claims.begin_with_defaults({"train.gamma": 0.97})
    claims.begin_with_defaults({"train.gamma": 0.97})  # of a second command
    trial = claims.claim()
    assert trial.user_attrs["settings"] == {"train.gamma": 0.97}
    assert notes == [
        "the first trial has the environment's train.gamma, 0.97, which is outside of its space, logit, 0.98 to 0.9999"
    ]
    assert claims.claim().user_attrs["settings"]["train.gamma"] >= 0.98


def test_several_commands_begin_exactly_as_many_trials_as_were_asked_for(command):
    first, second = command(trials=3), command(trials=3)
    begun = [first.claim(), second.claim(), first.claim()]
    assert [trial.number for trial in begun] == [0, 1, 2]
    assert len({str(trial.user_attrs["settings"]) for trial in begun}) == 3
    with pytest.raises(OthersInProgress):
        first.claim()
    for claims, trial in ((first, begun[0]), (second, begun[1]), (first, begun[2])):
        claims.finish(trial, score=1.0, seconds=2.0, steps=3)
    assert first.claim() is None
    assert second.count_finished() == 3


def test_a_trial_of_a_dead_command_is_gone_on_with_and_stays_the_same(study, command):
    dead = command(trials=1)
    left = dead.claim()
    dead.report(left, 1, 0.5)
    say_dead(study, dead)
    alive = command(trials=1)
    taken = alive.claim()
    assert taken.number == left.number
    assert taken.user_attrs["settings"] == left.user_attrs["settings"]
    alive.report(taken, 1, 0.5)  # from its checkpoint it tells some of the curve again
    alive.finish(taken, score=1.0, seconds=1.0, steps=1)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"]


def test_a_trial_that_was_killed_before_it_had_settings_does_not_count(study, command):
    study.ask()
    claims = command(trials=1)
    taken = claims.claim()
    assert taken.number == 1
    assert study.trials[0].user_attrs == {"interrupted": True}
    claims.finish(taken, score=1.0, seconds=1.0, steps=1)
    assert claims.claim() is None


def test_a_command_of_another_machine_is_dead_when_it_gives_no_sign_for_minutes(study, command):
    far = command(trials=1)
    far.claim()
    key = HERE + far.owner.id
    facts = {**study.user_attrs[key], "host": "elsewhere 1 2"}
    study.set_user_attr(key, facts)
    near = command(trials=1)
    with pytest.raises(OthersInProgress, match="elsewhere"):
        near.claim()
    study.set_user_attr(key, {**facts, "beat": facts["beat"] - 200.0})
    assert near.claim().number == 0


def test_failed_trials_count_and_have_a_reason(study, command):
    claims = command(trials=1)
    claims.fail(claims.claim(), "NaN in the observation")
    assert claims.claim() is None
    assert study.trials[0].state.name == "FAIL"
    assert study.trials[0].user_attrs["reason"] == "NaN in the observation"


def curves(claims, scores, last):
    """Finish trials with curves of these heights; whether one of the height ``last`` is pruned, point by point."""
    for score in scores:
        trial = claims.claim()
        for step in range(1, 21):
            claims.report(trial, step, score)
        claims.finish(trial, score=score, seconds=1.0, steps=1)
    trial = claims.claim()
    return [claims.report(trial, step, last) for step in range(1, 11)]


@pytest.mark.parametrize(
    ("options", "last", "pruned_at"),
    [({}, 0.1, 5), ({}, 0.9, None), ({"prune": 0.0}, 0.1, None), ({"prune_after": 0.5}, 0.1, 10),
     ({"prune": 0.2}, 0.29, None), ({"prune": 0.8}, 0.35, 5)],
)  # fmt: skip
def test_a_trial_below_a_share_of_the_finished_is_pruned(command, options, last, pruned_at):
    told = curves(command(**options), [0.2, 0.3, 0.4, 0.5, 0.6], last)
    assert (told.index(True) + 1 if True in told else None) == pruned_at


def test_nothing_is_pruned_on_the_way_to_a_front(command):
    study = optuna.create_study(directions=["maximize", "minimize"])
    claims = command(study=study, objective="score,cost")
    assert not any(curves(claims, [0.2, 0.3, 0.4, 0.5, 0.6], 0.0))
    assert study.trials[0].values == [0.2, 1.0]
