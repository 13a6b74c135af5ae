"""A search from its first trial to its report."""

import fcntl
import io
import json
import re
import threading

import optuna
import pytest

import pufferlib
from pufferlib.errors import APIUsageError, PufferError, UnknownNameError
from pufferlib.sweeps.messages import TrialPace
from pufferlib.sweeps.progress import ConsoleDisplay, SweepDisplay
from pufferlib.sweeps.report import importance_of
from pufferlib.sweeps.result import load_sweep
from pufferlib.sweeps.settings import load_search
from pufferlib.sweeps.storage import create_study
from pufferlib.training.config import load_config
from tests.trials import ONLY, SPACES, TINY


def test_the_study_has_as_many_trials_as_were_asked_for(done):
    assert [trial.number for trial in done.trials] == [0, 1, 2, 3]
    assert {trial.state for trial in done.trials} <= {"finished", "pruned"}
    assert isinstance(done.study, optuna.Study)
    assert len({json.dumps(trial.settings) for trial in done.trials}) == 4


def test_the_first_trial_has_the_environments_own_settings(done):
    own = load_config("squared").train
    first = done.trials[0].settings
    assert first == {
        "train.learning_rate": own.learning_rate,
        "train.gamma": own.gamma,
        "train.update_epochs": own.update_epochs,
    }


def test_each_trial_is_a_whole_run_with_its_settings(done):
    for trial in done.trials:
        settings = trial.run.settings()
        assert settings.train.gamma == trial.settings["train.gamma"]
        assert settings.env["num_envs"] == 32
        if trial.state == "finished":
            summary = json.loads(trial.run.summary.read_text())
            assert summary["score"] == trial.score
            assert trial.steps == summary["agent_steps"] == 4096
            assert trial.run.has_checkpoint
            assert trial.run.curve.exists()
    assert callable(pufferlib.load(done.best.run.folder))


def test_the_best_becomes_a_file_of_settings(done):
    best = load_config("squared", file=done.save_best())
    assert best.train.gamma == done.best.settings["train.gamma"]
    assert best.train.total_timesteps == 4096
    assert f"--train.gamma {done.best.settings['train.gamma']}" in done.flags(done.best)
    assert done.best.score == max(trial.score for trial in done.trials if trial.state == "finished")


def test_the_front_has_no_trial_that_another_one_beats_in_both(done):
    front = done.front
    assert done.best.number in [trial.number for trial in front]
    assert [trial.score for trial in front] == sorted({trial.score for trial in front})
    assert [trial.seconds for trial in front] == sorted(trial.seconds for trial in front)


def test_the_report_is_one_page_that_needs_no_network(done):
    page = done.report().read_text("utf-8")
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"', page)
    assert links
    assert not [link for link in links if "//" in link and "www.w3.org" not in link]
    assert page.count("<svg") >= 4
    for trial in done.trials:
        assert f'<tr id="trial-{trial.number}"' in page
        assert f"<title>trial {trial.number}, {trial.state}" in page
    assert set(importance_of(done)) <= set(SPACES)


def test_called_again_it_has_nothing_to_do_or_goes_on(done):
    again = pufferlib.sweeps.sweep("squared", TINY, spaces=SPACES, only=ONLY, trials=3, sweeps=done.folder.parent)
    assert len(again.trials) == 4
    assert load_sweep("squared", done.folder.parent).best == done.best


@pytest.mark.parametrize(
    ("env", "settings", "options", "message"),
    [
        ("bandit", TINY, {}, r"sweep 'squared': is of squared, got bandit; to search anew, take another --sweep.name"),
        ("squared", {**TINY, "policy.hidden_size": 8}, {},
         r"begun with other settings: policy.hidden_size \(16 before, 8 now\)"),
        ("squared", {**TINY, "train.gamma": 0.9}, {"only": "train.learning_rate,train.update_epochs"},
         r"other spaces: sweep.train.gamma \(distribution logit, min 0.5, max 0.999 before, none now\)"),
        ("squared", TINY, {"objective": "score,cost"}, r"begun with sweep.objective score, got score,cost"),
    ],
)  # fmt: skip
def test_a_study_of_another_search_is_refused(done, env, settings, options, message):
    chosen = {"only": ONLY, "name": "squared", **options}
    spaces = {key: space for key, space in SPACES.items() if key not in settings}
    with pytest.raises(APIUsageError, match=message):
        pufferlib.sweeps.sweep(env, settings, spaces=spaces, sweeps=done.folder.parent, **chosen)


def test_a_damaged_database_is_named(tmp_path):
    (tmp_path / "squared").mkdir()
    (tmp_path / "squared" / "study.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(APIUsageError, match=r"study.db: the study cannot be used .*; it is damaged, or no database"):
        pufferlib.sweeps.sweep("squared", TINY, sweeps=tmp_path)
    assert (tmp_path / "squared" / "study.db").exists()


def test_an_unknown_sweep_names_those_that_are_there(done):
    with pytest.raises(APIUsageError, match=r"no sweep 'cube' in .*; there are squared; begin it: .* sweep cube"):
        load_sweep("cube", done.folder.parent)


def test_what_cannot_be_trained_is_said_before_anything_is(tmp_path):
    with pytest.raises(UnknownNameError, match="squarred"):
        pufferlib.sweeps.sweep("squarred", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"sweep.storage must be a URL.*got 'here'"):
        pufferlib.sweeps.sweep("squared", storage="here", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"sweep.name must be the name of a folder in .*, got '../cube'"):
        pufferlib.sweeps.sweep("squared", name="../cube", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"needs a package for this kind of database .*pip install psycopg2-binary"):
        pufferlib.sweeps.sweep("squared", storage="postgresql://nobody@nowhere/optuna", sweeps=tmp_path)
    with pytest.raises(APIUsageError, match=r"a trial trains in one process, got train.processes 2; .* sweep.workers"):
        pufferlib.sweeps.sweep("squared", {"train.processes": 2}, sweeps=tmp_path)
    assert not list(tmp_path.iterdir())


def waits_for_the_lock(folder, function, *args):
    """Call ``function`` while another holds the lock of the folder's study; true if it ends after that alone."""
    with (folder / "study.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=function, args=args)
        second.start()
        second.join(0.5)
        waits = second.is_alive()
    second.join()
    return waits


def test_of_two_that_begin_one_study_the_second_waits_for_the_first(tmp_path):
    search = load_search(load_config("squared"), {}, [], {"only": "train.gamma", "trials": 3})
    assert waits_for_the_lock(tmp_path, create_study, tmp_path, "squared", search)
    assert (tmp_path / "study.db").exists()


def test_who_reads_a_study_waits_until_it_has_begun(done):
    assert waits_for_the_lock(done.folder, load_sweep, done.folder.name, done.folder.parent)


def test_a_study_that_was_killed_while_it_began_is_named(tmp_path):
    folder = tmp_path / "squared"
    folder.mkdir()
    optuna.storages.RDBStorage(f"sqlite:///{folder / 'study.db'}")
    with pytest.raises(APIUsageError, match=r"study.db: holds no study .sweep. \(yet\); .* the same command again"):
        load_sweep("squared", tmp_path)


class Notes(SweepDisplay):
    def __init__(self):
        self.notes, self.ended = [], []

    def note(self, text):
        self.notes.append(text)

    def finish(self, worker, state, score, seconds, reason):
        self.ended.append((state, reason))


def test_failed_trials_are_kept_with_their_reason_and_three_at_first_end_it(tmp_path):
    display = Notes()
    settings = {**TINY, "eval.max_steps": 1}  # no episode ends in time
    with pytest.raises(PufferError, match=r"the first 3 trials all failed.*mend that, and run this again"):
        pufferlib.sweeps.sweep(
            "squared", settings, spaces=SPACES, only=ONLY, trials=5, workers=1, sweeps=tmp_path, display=display
        )
    assert [state for state, _ in display.ended] == ["failed"] * 3
    found = load_sweep("squared", tmp_path)
    assert [trial.state for trial in found.trials] == ["failed"] * 3
    assert "episode" in found.trials[0].reason
    with pytest.raises(APIUsageError, match="no trial has finished yet"):
        found.report()


def test_the_display_has_a_line_for_each_worker_and_each_finished_trial():
    from rich.console import Console

    console = Console(width=200, record=True, force_terminal=True, file=io.StringIO())
    display = ConsoleDisplay(console)
    base = load_config("squared")
    search = load_search(base, {}, [], {"only": "train.gamma", "trials": 3})
    display.begin(search, "sweeps/squared", 1, 0.5)
    display.start(0, 0, {"train.gamma": base.train.gamma})
    display.start(1, 4, {"train.gamma": 0.8})
    display.show_pace(1, TrialPace(0.25, 0.7, 90.0))
    table = str(display.table())
    assert "1 of 3 trials, best score 0.500" in table
    assert re.search(r"worker 1  trial 4     25%  score  0.700   1:30 left  gamma 0.8", table)
    assert "the environment's own settings" in table
    display.finish(1, "finished", 0.8, 3.0, "")
    display.finish(0, "failed", float("nan"), float("nan"), "no memory")
    display.close()
    printed = console.export_text()
    assert "2 of 3  trial 4 score 0.800 in 3.0 s, the best so far  gamma 0.8" in printed
    assert "3 of 3  trial 0 failed: no memory" in printed
