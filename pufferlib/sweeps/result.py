"""Result of a search: its trials, the best one, and the Pareto front of score and cost."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.render.html import facts, table
from pufferlib.runs.folder import Run
from pufferlib.settings.toml import to_toml
from pufferlib.sweeps.spaces import Space
from pufferlib.sweeps.study import (
    DATABASE,
    INTERRUPTED,
    LOCATION,
    REASON,
    SECONDS,
    SETTINGS,
    STEPS,
    open_study,
    quiet_optuna,
    storage_errors,
)
from pufferlib.text import duration, flag, short

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

__all__ = ["SWEEPS", "SearchTrial", "SweepResult", "curve_interval", "load_sweep", "run_folder"]

#: Default folder of all sweeps.
SWEEPS: Path = Path("sweeps")
SHOWN = 10  # trials in a notebook


@dataclass(frozen=True)
class SearchTrial:
    """Trial of a search.

    Attributes:
        number: Number of the trial, counted from 0. Trial 0 has the environment's default settings.
        state: "running", "finished", "pruned" (stopped early), "failed", or "interrupted" (before it had settings).
        settings: Searched settings by dotted name.
        score: Score of the evaluation. Unless the trial is finished, the last score in training, or NaN.
        seconds: Seconds of training, or NaN.
        steps: Agent-steps of training, or NaN.
        reason: Reason of the failure, or "".
        curve: Learning curve, as a dict from agent-steps to score.
        run: Paths of the trial's run, for ``puffer eval`` and ``puffer play --watch``.
        is_minimized: True if a low score is better.
    """

    number: int
    state: str
    settings: dict[str, Any]
    score: float
    seconds: float
    steps: float
    reason: str
    curve: dict[int, float]
    run: Run
    is_minimized: bool = False

    @property
    def merit(self) -> float:
        """The score, negated if a low score is better."""
        return -self.score if self.is_minimized else self.score

    def cost(self, kind: str) -> float:
        """Return ``seconds`` if ``kind`` is "seconds", else ``steps``."""
        return self.seconds if kind == "seconds" else self.steps


@dataclass(frozen=True)
class SweepResult:
    """Result of a finished or running search. Its properties read the current state of the study.

    Attributes:
        folder: Folder of the sweep, with its database, runs and report.
        study: Optuna's study with all trials.
    """

    folder: Path
    study: "Study"

    @property
    def about(self) -> dict[str, Any]:
        """Everything that the trials have in common.

        The keys are ``env_name``, ``objective``, ``cost``, ``metric``, ``spaces``, ``settings`` and ``longest``, and
        ``direction`` if a low score is better.
        """
        about: dict[str, Any] = self.study.user_attrs["search"]
        return about

    @property
    def trials(self) -> list[SearchTrial]:
        """All trials that have started."""
        with storage_errors(self.folder):
            frozen = self.study.get_trials(deepcopy=False)
        interval, is_minimized = curve_interval(self.about["longest"]), self.about.get("direction") == "minimize"
        return [
            _search_trial(each, self.folder, interval, is_minimized) for each in frozen if each.state.name != "WAITING"
        ]

    @property
    def best(self) -> SearchTrial:
        """The finished trial with the best score. If several have it, the cheapest.

        Raises:
            APIUsageError: No trial has finished.
        """
        finished = [trial for trial in self.trials if trial.state == "finished"]
        if not finished:
            failed = sum(trial.state == "failed" for trial in self.trials)
            advice = "fix the cause and continue the search" if failed else "continue the search"
            raise APIUsageError(f"{self.folder}: no trial has finished yet, {failed} have failed; {advice}")
        return max(finished, key=lambda trial: (trial.merit, -trial.cost(self.about["cost"])))

    @property
    def front(self) -> list[SearchTrial]:
        """The finished trials for which no other is better and at most as expensive, cheapest first."""
        cost = self.about["cost"]
        front: list[SearchTrial] = []
        finished = [trial for trial in self.trials if trial.state == "finished"]
        for trial in sorted(finished, key=lambda trial: (trial.cost(cost), -trial.merit)):
            if not front or trial.merit > front[-1].merit:
                front.append(trial)
        return front

    @property
    def spaces(self) -> list[Space]:
        """Search spaces of all settings."""
        return [Space.from_dict(key, table) for key, table in self.about["spaces"].items()]

    @property
    def importances(self) -> dict[str, float]:
        """Share of the differences in score that each setting explains (PED-ANOVA), the largest first.

        Empty if fewer than four trials have finished, or all have the same score.
        """
        scores = [trial.score for trial in self.trials if trial.state == "finished"]
        if len(scores) < 4 or len(set(scores)) < 2:
            return {}
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        target = (lambda trial: trial.values[0]) if self.about["objective"] != "score" else None
        with quiet_optuna(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about few trials
            shares = get_param_importances(self.study, evaluator=PedAnovaImportanceEvaluator(), target=target)
        names = {space.param_name: space.setting for space in self.spaces}
        return {names[name]: float(share) for name, share in shares.items()}

    @property
    def fixed(self) -> dict[str, Any]:
        """Settings of all trials, by dotted name, that the caller or the config file gave."""
        fixed: dict[str, Any] = self.study.user_attrs.get("fixed", {})
        return fixed

    def _repr_html_(self) -> str:
        """Show the best trials and their settings in a notebook."""
        scored = [trial for trial in self.trials if math.isfinite(trial.score)]
        cost = self.about["cost"]
        trials = sorted(scored, key=lambda one: (one.state == "finished", one.merit, -one.cost(cost)), reverse=True)
        names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
        rows = [
            [trial.number, trial.state, short(trial.score), duration(trial.seconds)]
            + [_short_value(trial.settings.get(name, "")) for name in names]
            for trial in trials[:SHOWN]
        ]
        about = {"trials": len(self.trials), "report": self.folder / "report.html"}
        title = f"Sweep of {self.about['env_name']}, finished trials first, the best on top"
        return facts(title, about) + table(["trial", "state", "score", "time", *names], rows)

    def flags(self, trial: SearchTrial) -> str:
        """Return the settings of a trial as flags of ``puffer train``, including ``fixed``."""
        return " ".join(flag(key, value) for key, value in {**self.fixed, **trial.settings}.items())

    def save_best(self) -> Path:
        """Write the settings of the best trial to ``best.toml``, for ``puffer train --config``, and return its path."""
        sections: dict[str, Any] = {"env_name": self.about["env_name"]}
        for key, value in {**self.fixed, **self.best.settings}.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        path = self.folder / "best.toml"
        title = f"# Trial {self.best.number} of this sweep, whose score was {self.best.score:g}."
        path.write_text("\n".join([title, *to_toml(sections)]) + "\n", "utf-8")
        return path


def load_sweep(name: str, sweeps: Path | str = SWEEPS) -> SweepResult:
    """Return the result of an existing search, finished or not.

    Args:
        name: Name or path of its folder.
        sweeps: Folder of all sweeps.

    Raises:
        APIUsageError: There is no such search, or its database cannot be used.
        BindingMissing: Optuna is not installed.
    """
    sweeps = user_path(sweeps)
    for folder in (sweeps / name, Path(name)):
        if (folder / DATABASE).is_file() or (folder / LOCATION).is_file():
            return SweepResult(folder, open_study(folder))
    others = sorted(path.parent.name for file in (DATABASE, LOCATION) for path in sweeps.glob(f"*/{file}"))
    there = f"there are {', '.join(others)}" if others else "there is none yet"
    start = as_typed("puffer sweep", name)
    raise APIUsageError(f"pufferlib.sweep: no sweep {name!r} in {sweeps}; {there}; start it: {start}")


def curve_interval(longest: int) -> int:
    """Return the agent-steps between two points of a learning curve. The longest trial has 20 points."""
    return max(1, math.ceil(longest / 20))


def run_folder(folder: Path, number: int) -> Path:
    """Return the folder of a trial's run."""
    return folder / "runs" / f"trial-{number:04}"


def _search_trial(frozen: "FrozenTrial", folder: Path, interval: int, is_minimized: bool) -> SearchTrial:
    attributes: Mapping[str, Any] = frozen.user_attrs
    state = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}.get(frozen.state.name, "running")
    curve = {step * interval: score for step, score in sorted(frozen.intermediate_values.items())}
    last = list(curve.values())[-1] if curve else math.nan
    return SearchTrial(
        frozen.number,
        "interrupted" if attributes.get(INTERRUPTED) else state,
        attributes.get(SETTINGS, {}),
        frozen.values[0] if state == "finished" else last,
        attributes.get(SECONDS, math.nan),
        attributes.get(STEPS, math.nan),
        attributes.get(REASON, ""),
        curve,
        Run.at(run_folder(folder, frozen.number)),
        is_minimized,
    )


def _short_value(value: object) -> str:
    return short(value) if isinstance(value, float) else str(value)
