"""Trials of a study as this command takes them: begun, taken over from a command that was killed, told of."""

import hashlib
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.sweeps.owners import Owner
from pufferlib.sweeps.result import INTERRUPTED, KILLS, OWNER, REASON, SECONDS, SETTINGS, STEPS
from pufferlib.sweeps.settings import Search

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

__all__ = ["Claims", "OthersInProgress"]

_BEGIN_S = 60.0  # a trial that another machine is just beginning has no owner for less than this
_FIRST = 5  # finished trials before any is pruned: fewer say nothing of what is usual


class OthersInProgress(Exception):  # noqa: N818 - an answer, no error
    """No trial is left to begin, but other commands have some in progress.

    Attributes:
        hosts: Their machines.
    """

    def __init__(self, hosts: set[str]) -> None:
        super().__init__(", ".join(sorted(hosts)))
        self.hosts = hosts


class Claims:
    """The trials of a study, for one command that works on it.

    Args:
        study: Optuna's.
        search: What is searched.
        folder: Of the sweep.
        on_note: Takes a sentence that a person should know.
    """

    def __init__(self, study: "Study", search: Search, folder: Path, on_note: Callable[[str], None]) -> None:
        self._study, self._search, self._note = study, search, on_note
        self.owner = Owner(study, folder)
        study.pruner = _pruner(search, len(study.directions) > 1)
        self._distributions = {space.key: space.to_optuna() for space in search.spaces.values()}

    def begin_with_defaults(self, defaults: dict[str, Any]) -> None:
        """Let the first trial of a new study be the environment's own settings.

        Args:
            defaults: Its values of what is searched; where one is outside of its space, it is trained all the same,
                and the study is told the nearest that is inside.
        """
        with self.owner.alone():
            if self._study.get_trials(deepcopy=False):
                return
            spaces = self._search.spaces
            drawn = {spaces[key].key: spaces[key].drawn_of(value) for key, value in defaults.items()}
            self._study.enqueue_trial(drawn, {SETTINGS: defaults})
        for key, value in defaults.items():
            if not spaces[key].holds(value):
                about = f"{value}, which is outside of its space, {spaces[key]}"
                self._note(f"the first trial has the environment's {key}, {about}")

    def claim(self) -> "Trial | None":
        """A trial to train: one whose command was killed, or else a new one; None when all are finished.

        Raises:
            OthersInProgress: Others are in progress elsewhere, and with these there are enough.
        """
        with self.owner.alone():
            trials = self._study.get_trials(deepcopy=False)
            running = [trial for trial in trials if trial.state.name == "RUNNING"]
            for trial in running:
                if self._is_left(trial) and (taken := self._take_over(trial)):
                    return taken
            left = {trial.number for trial in running if self._is_left(trial)}
            running = [trial for trial in running if trial.number not in left]
            if self.count_finished() + len(running) < self._search.sweep.trials:
                return self._begin(len(trials))
        if others := [trial for trial in running if trial.user_attrs.get(OWNER) != self.owner.id]:
            raise OthersInProgress({self.owner.host_of(trial.user_attrs.get(OWNER)) for trial in others})
        return None

    def count_finished(self) -> int:
        """Trials that are done, however they ended; those that were interrupted are not."""
        return sum(
            trial.state.is_finished() and not trial.user_attrs.get(INTERRUPTED)
            for trial in self._study.get_trials(deepcopy=False)
        )

    def best_score(self) -> float:
        """The best score so far; NaN if no trial has finished."""
        trials = self._study.get_trials(deepcopy=False)
        best = min if self._search.sweep.direction == "minimize" else max
        return best((trial.values[0] for trial in trials if trial.state.name == "COMPLETE"), default=math.nan)

    def report(self, trial: "Trial", step: int, score: float) -> bool:
        """Take a point of its curve; True if the trial is to be pruned."""
        # Not by ``trial.report``, which takes no second objective, and no point of a trial that is gone on with again.
        self._study._storage.set_trial_intermediate_value(trial._trial_id, step, score)
        return not self._search.is_pareto and self._study.pruner.prune(self._study, self._frozen(trial))

    def finish(self, trial: "Trial", score: float, seconds: float, steps: int) -> None:
        """Take its result."""
        self._set_cost(trial, seconds, steps)
        cost = seconds if self._search.sweep.cost == "seconds" else steps
        self._study.tell(trial.number, [score, cost] if self._search.is_pareto else score)

    def prune(self, trial: "Trial", seconds: float, steps: int) -> None:
        """Take it for pruned."""
        self._set_cost(trial, seconds, steps)
        self._end(trial.number, "PRUNED")

    def fail(self, trial: "Trial", reason: str) -> None:
        """Take it for failed, for that reason."""
        trial.set_user_attr(REASON, reason)
        self._end(trial.number, "FAIL")

    def count_kill(self, trial: "Trial") -> int:
        """Times that the process of this trial was killed, with this one."""
        kills = int(self._frozen(trial).user_attrs.get(KILLS, 0)) + 1
        trial.set_user_attr(KILLS, kills)
        return kills

    def _begin(self, count: int) -> "Trial":
        from optuna.samplers import TPESampler

        # Of its own for each trial: a command that goes on must not draw again what the one before it drew.
        self._study.sampler = TPESampler(seed=self._seed(count))
        trial = self._study.ask(self._distributions)
        trial.set_user_attr(OWNER, self.owner.id)
        if SETTINGS not in trial.user_attrs:
            spaces = self._search.spaces.values()
            trial.set_user_attr(
                SETTINGS, {space.setting: space.setting_of(trial.params[space.key]) for space in spaces}
            )
        return trial

    def _seed(self, count: int) -> int:
        machine = self.owner.id if self._search.sweep.storage else ""  # others may begin one in the same moment
        text = f"{self._search.sweep.seed} {count} {machine}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    def _is_left(self, trial: "FrozenTrial") -> bool:
        owner = trial.user_attrs.get(OWNER)
        if owner is None and self._search.sweep.storage:
            start = trial.datetime_start or datetime.now()
            return datetime.now() - start > timedelta(seconds=_BEGIN_S)
        return self.owner.is_gone(owner)

    def _take_over(self, left: "FrozenTrial") -> "Trial | None":
        """Go on with a trial whose command was killed; None for one that had no settings yet."""
        from optuna.trial import Trial

        trial = Trial(self._study, left._trial_id)
        if SETTINGS in left.user_attrs:
            trial.set_user_attr(OWNER, self.owner.id)
            return trial
        trial.set_user_attr(INTERRUPTED, True)
        self._end(left.number, "FAIL")
        return None

    def _end(self, number: int, state: str) -> None:
        from optuna.trial import TrialState

        self._study.tell(number, state=TrialState[state])

    def _frozen(self, trial: "Trial") -> "FrozenTrial":
        return self._study._storage.get_trial(trial._trial_id)

    def _set_cost(self, trial: "Trial", seconds: float, steps: int) -> None:
        trial.set_user_attr(SECONDS, round(seconds, 3))
        trial.set_user_attr(STEPS, steps)


def _pruner(search: Search, is_pareto: bool) -> "BasePruner":
    from optuna.pruners import NopPruner, PercentilePruner

    if is_pareto or not search.sweep.prune:
        return NopPruner()
    return PercentilePruner(
        100 * (1 - search.sweep.prune),
        n_startup_trials=_FIRST,
        n_warmup_steps=math.floor(20 * search.sweep.prune_after),
        n_min_trials=_FIRST - 1,
    )
