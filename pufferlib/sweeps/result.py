"""The outcome of a search: its trials, the best of them, and their front of score against cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path
from pufferlib.runs.folder import Run
from pufferlib.sweeps.storage import SWEEPS, find_sweep, open_study, speaks_of_errors
from pufferlib.text import flag
from pufferlib.training.toml import to_toml

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

__all__ = ["SearchTrial", "SweepResult", "load_sweep"]

#: Attributes of a trial in the study.
SETTINGS, OWNER, SECONDS, STEPS, REASON, INTERRUPTED, KILLS = (
    "settings", "owner", "seconds", "steps", "reason", "interrupted", "kills",
)  # fmt: skip


@dataclass(frozen=True)
class SearchTrial:
    """A trial of a search.

    Attributes:
        number: In the order in which they were begun; 0 has the environment's own settings.
        state: "finished", "pruned" (ended early), "failed", "interrupted" (before it had settings) or "running".
        settings: Those that are searched, by dotted keys.
        score: Of its evaluation; of a pruned one the last of its curve; NaN if there is none.
        seconds: Of training.
        steps: Agent-steps of training.
        reason: Why it failed.
        curve: Score in training after so many agent-steps.
        run: Its folder, which ``puffer eval`` and ``puffer play --watch`` take.
        is_minimized: A low score is better.
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
        """The score, or its negative if a low score is better."""
        return -self.score if self.is_minimized else self.score

    def cost(self, kind: str) -> float:
        """Its "seconds" or "steps"."""
        return self.seconds if kind == "seconds" else self.steps


@dataclass(frozen=True)
class SweepResult:
    """A search that is done, or as far as it is.

    Attributes:
        folder: Of the sweep, with its database, runs and report.
        study: Optuna's, with all trials.
    """

    folder: Path
    study: "Study"

    @property
    def about(self) -> dict[str, Any]:
        """Facts that trials share, by ``env_name``, ``objective``, ``cost``, ``metric``, ``spaces``, ``settings``."""
        about: dict[str, Any] = self.study.user_attrs["search"]
        return about

    @property
    def trials(self) -> list[SearchTrial]:
        """All trials that have begun."""
        with speaks_of_errors(self.folder):
            frozen = self.study.get_trials(deepcopy=False)
        interval, low = curve_interval(self.about["longest"]), self.about.get("direction") == "minimize"
        return [_trial_of(each, self.folder, interval, low) for each in frozen if each.state.name != "WAITING"]

    @property
    def best(self) -> SearchTrial:
        """The finished trial of the best score; of several the cheapest.

        Raises:
            APIUsageError: None has finished yet.
        """
        finished = [trial for trial in self.trials if trial.state == "finished"]
        if not finished:
            failed = sum(trial.state == "failed" for trial in self.trials)
            advice = "mend that" if failed else "go on with the search"
            raise APIUsageError(f"{self.folder}: no trial has finished yet, {failed} have failed; {advice}")
        return max(finished, key=lambda trial: (trial.merit, -trial.cost(self.about["cost"])))

    @property
    def front(self) -> list[SearchTrial]:
        """Finished trials to which no other is better in score and as cheap, the cheapest first."""
        cost = self.about["cost"]
        front: list[SearchTrial] = []
        finished = [trial for trial in self.trials if trial.state == "finished"]
        for trial in sorted(finished, key=lambda trial: (trial.cost(cost), -trial.merit)):
            if not front or trial.merit > front[-1].merit:
                front.append(trial)
        return front

    def flags(self, trial: SearchTrial) -> str:
        """The settings of a trial as they are typed, with those that the whole search was given."""
        return " ".join(flag(key, value) for key, value in {**self.fixed, **trial.settings}.items())

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings, by dotted keys, that the search was begun with."""
        fixed: dict[str, Any] = self.study.user_attrs.get("fixed", {})
        return fixed

    def save_best(self) -> Path:
        """Write the settings of the best trial as ``best.toml``, for ``puffer train --config``."""
        sections: dict[str, Any] = {"env_name": self.about["env_name"]}
        for key, value in {**self.fixed, **self.best.settings}.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        path = self.folder / "best.toml"
        title = f"# Trial {self.best.number} of this sweep, whose score was {self.best.score:g}."
        path.write_text("\n".join([title, *to_toml(sections)]) + "\n", "utf-8")
        return path

    def report(self) -> Path:
        """Write ``report.html``, which needs nothing but itself, and return its path.

        Raises:
            BindingMissing: matplotlib is not installed.
        """
        from pufferlib.sweeps.report import write_report

        return write_report(self)


def load_sweep(name: str, sweeps: Path | str = SWEEPS) -> SweepResult:
    """A search that was begun before, by its name or folder.

    Raises:
        APIUsageError: There is none, or its database cannot be used.
        BindingMissing: Optuna is not installed.
    """
    folder = find_sweep("pufferlib.sweep", name, user_path(sweeps))
    return SweepResult(folder, open_study(folder))


def curve_interval(longest: int) -> int:
    """Agent-steps between two points of the curves of trials, the longest of which has 20."""
    return max(1, math.ceil(longest / 20))


def run_folder(folder: Path, number: int) -> Path:
    """The folder of a trial's run."""
    return folder / "runs" / f"trial-{number:04}"


def _trial_of(frozen: "FrozenTrial", folder: Path, interval: int, is_minimized: bool) -> SearchTrial:
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
