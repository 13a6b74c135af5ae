"""The study of a search: its storage, and the trials that several commands take from it."""

import fcntl
import sqlite3
import threading

import optuna
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.settings.config import load_config
from pufferlib.sweeps import load_sweep, study as study_module, sweep
from pufferlib.sweeps.spaces import load_search
from pufferlib.sweeps.study import OthersRunning, TrialQueue, create_study
from tests.trials import ONLY, SPACES, TINY


@pytest.fixture
def study():
    return optuna.create_study(direction="maximize")


@pytest.fixture
def make_queue(study, tmp_path):
    """Return a function that makes the queue of another command."""

    def make(trials=10, study=study, notes=None, **options):
        overrides = {"trials": trials, "only": "train.gamma,train.learning_rate", **options}
        search = load_search(load_config("squared"), {}, [], overrides)
        return TrialQueue(study, search, tmp_path, [].append if notes is None else notes.append)

    return make


def mark_dead(study, queue):
    """Make the process of a command look dead: its id now belongs to a process that started at another time."""
    key = f"owner:{queue.command.id}"
    study.set_user_attr(key, {**study.user_attrs[key], "started": 0.0})


def test_first_trial_has_defaults_even_outside_their_space(make_queue):
    notes = []
    queue = make_queue(notes=notes, only="train.gamma", **{"train.gamma.min": 0.98})
    queue.enqueue_defaults({"train.gamma": 0.97})
    queue.enqueue_defaults({"train.gamma": 0.97})  # no effect in a study with trials
    trial = queue.claim()
    assert trial.user_attrs["settings"] == {"train.gamma": 0.97}
    assert notes == [
        "the first trial has the environment's train.gamma, 0.97, which is outside of its space, logit, 0.98 to 0.9999"
    ]
    assert queue.claim().user_attrs["settings"]["train.gamma"] >= 0.98


def test_commands_share_requested_number_of_trials(make_queue):
    first, second = make_queue(trials=3), make_queue(trials=3)
    started = [first.claim(), second.claim(), first.claim()]
    assert [trial.number for trial in started] == [0, 1, 2]
    assert len({str(trial.user_attrs["settings"]) for trial in started}) == 3
    with pytest.raises(OthersRunning):
        first.claim()
    for queue, trial in ((first, started[0]), (second, started[1]), (first, started[2])):
        queue.finish(trial, score=1.0, seconds=2.0, steps=3)
    assert first.claim() is None
    assert second.count_finished() == 3


def test_trial_of_dead_command_resumes_with_same_settings(study, make_queue):
    dead = make_queue(trials=1)
    left = dead.claim()
    dead.report(left, 1, 0.5)
    mark_dead(study, dead)
    alive = make_queue(trials=1)
    taken = alive.claim()
    assert taken.number == left.number
    assert taken.user_attrs["settings"] == left.user_attrs["settings"]
    alive.report(taken, 1, 0.5)  # training from a checkpoint repeats points
    alive.finish(taken, score=1.0, seconds=1.0, steps=1)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"]


def test_trial_without_settings_does_not_count(study, make_queue):
    study.ask()
    queue = make_queue(trials=1)
    taken = queue.claim()
    assert taken.number == 1
    assert study.trials[0].user_attrs == {"interrupted": True}
    queue.finish(taken, score=1.0, seconds=1.0, steps=1)
    assert queue.claim() is None


def test_remote_command_is_dead_without_heartbeat(study, make_queue):
    far = make_queue(trials=1)
    far.claim()
    key = f"owner:{far.command.id}"
    facts = {**study.user_attrs[key], "host": "elsewhere 1 2"}
    study.set_user_attr(key, facts)
    near = make_queue(trials=1)
    with pytest.raises(OthersRunning, match="elsewhere"):
        near.claim()
    study.set_user_attr(key, {**facts, "beat": facts["beat"] - 200.0})
    assert near.claim().number == 0


def test_failed_trials_count_and_store_reason(study, make_queue):
    queue = make_queue(trials=1)
    queue.fail(queue.claim(), "NaN in the observation")
    assert queue.claim() is None
    assert study.trials[0].state.name == "FAIL"
    assert study.trials[0].user_attrs["reason"] == "NaN in the observation"


def prune_decisions(queue, scores, last):
    """Finish trials with constant curves of ``scores``. Return the decisions for a curve of ``last``, per point."""
    for score in scores:
        trial = queue.claim()
        for step in range(1, 21):
            queue.report(trial, step, score)
        queue.finish(trial, score=score, seconds=1.0, steps=1)
    trial = queue.claim()
    return [queue.report(trial, step, last) for step in range(1, 11)]


@pytest.mark.parametrize(
    ("options", "last", "pruned_at"),
    [({}, 0.1, 5), ({}, 0.9, None), ({"prune": 0.0}, 0.1, None), ({"prune_after": 0.5}, 0.1, 10),
     ({"prune": 0.2}, 0.29, None), ({"prune": 0.8}, 0.35, 5)],
)  # fmt: skip
def test_trial_below_percentile_is_pruned(make_queue, options, last, pruned_at):
    decisions = prune_decisions(make_queue(**options), [0.2, 0.3, 0.4, 0.5, 0.6], last)
    assert (decisions.index(True) + 1 if True in decisions else None) == pruned_at


def test_pareto_search_never_prunes(make_queue):
    study = optuna.create_study(directions=["maximize", "minimize"])
    queue = make_queue(study=study, objective="score,cost")
    assert not any(prune_decisions(queue, [0.2, 0.3, 0.4, 0.5, 0.6], 0.0))
    assert study.trials[0].values == [0.2, 1.0]


def test_damaged_database_raises(tmp_path):
    (tmp_path / "squared").mkdir()
    (tmp_path / "squared" / "study.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(APIUsageError, match=r"study.db: the study cannot be used .*; it is damaged, or no database"):
        sweep("squared", TINY, sweeps=tmp_path)
    assert (tmp_path / "squared" / "study.db").exists()


def waits_for_the_lock(folder, function, *args):
    """Call ``function`` while the study is locked. Return True if it waits until the lock is released."""
    with (folder / "study.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=function, args=args)
        second.start()
        second.join(0.5)
        waits = second.is_alive()
    second.join()
    return waits


def test_create_study_waits_for_lock(tmp_path):
    search = load_search(load_config("squared"), {}, [], {"only": "train.gamma", "trials": 3})
    assert waits_for_the_lock(tmp_path, create_study, tmp_path, "squared", search)
    assert (tmp_path / "study.db").exists()


def test_load_sweep_waits_for_lock(done):
    assert waits_for_the_lock(done.folder, load_sweep, done.folder.name, done.folder.parent)


def test_database_without_study_raises(tmp_path):
    folder = tmp_path / "squared"
    folder.mkdir()
    optuna.storages.RDBStorage(f"sqlite:///{folder / 'study.db'}")
    with pytest.raises(APIUsageError, match=r"study.db: holds no study .sweep. \(yet\); .* the same command again"):
        load_sweep("squared", tmp_path)


def test_locked_database_raises(done, monkeypatch):
    monkeypatch.setattr(study_module, "LOCKED_S", 0.1)
    holder = sqlite3.connect(done.folder / "study.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(APIUsageError, match=r"study.db: the study cannot be used \(database is locked\); another"):
            sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=9, sweeps=done.folder.parent)
    finally:
        holder.close()
