"""Several seeds of the same settings: a run for each, in one folder, and the mean score with its interval."""

import contextlib
import dataclasses
import json
import math
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib import registry
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.machine.paths import replace_file, user_path
from pufferlib.render.html import facts, media
from pufferlib.runs.curves import Line, plot_curves
from pufferlib.runs.folder import SEED, Run, new_folder, removed_if_empty
from pufferlib.runs.report import write_summary
from pufferlib.runs.resume import is_evaluated
from pufferlib.runs.statistics import CONFIDENCE, RESAMPLES, Estimate, estimate_iqm
from pufferlib.settings.config import Config
from pufferlib.text import plural, short

__all__ = [
    "SeedGroup",
    "TrainedSeeds",
    "find_group",
    "new_group",
    "parse_seeds",
    "report_group",
    "train_group",
]


SEEDS = "seeds.json"


@dataclass(frozen=True)
class SeedGroup:
    """Folder of several runs that differ only in their seed.

    Attributes:
        folder: Folder with a run for each seed, ``config.toml``, ``summary.json`` and ``learning_curve.png``.
        seeds: Seeds of the runs.
    """

    folder: Path
    seeds: tuple[int, ...]

    @property
    def argument(self) -> str:
        """Folder as a shell argument, quoted if necessary."""
        return shlex.quote(str(self.folder))

    @property
    def summary(self) -> Path:
        """Path of the result of all runs."""
        return self.folder / "summary.json"

    @property
    def curve(self) -> Path:
        """Path of the plot of all learning curves."""
        return self.folder / "learning_curve.png"

    @property
    def runs(self) -> list[Run]:
        """Runs of all seeds, some of which may not exist yet."""
        return [self.run(seed) for seed in self.seeds]

    def run(self, seed: int) -> Run:
        """Return the run of a seed."""
        return Run.at(self.folder / f"{SEED}{seed}")

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Return the settings that the runs share, with ``overrides`` by dotted name."""
        return Config.load(self.folder / "config.toml", overrides).located(self.folder)

    def with_seeds(self, seeds: tuple[int, ...]) -> "SeedGroup":
        """Return the group with additional seeds."""
        return dataclasses.replace(self, seeds=tuple(dict.fromkeys([*self.seeds, *seeds])))

    def save(self, config: Config) -> None:
        """Write the seeds and the settings."""
        config.save(self.folder / "config.toml")
        replace_file(self.folder / SEEDS, json.dumps(list(self.seeds)) + "\n")


@dataclass(frozen=True)
class TrainedSeeds:
    """Result of several runs that are finished.

    Attributes:
        group: Folder of the runs.
        scores: Mean evaluation score of each run, by seed.
        random_score: Mean score of random play over all runs.
        iqm: Interquartile mean of the scores with its 95 % interval.
    """

    group: SeedGroup
    scores: Mapping[int, float]
    random_score: float
    iqm: Estimate

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(list(self.scores.values())))

    @property
    def std(self) -> float:
        """Standard deviation over the seeds, or 0 for a single seed."""
        return float(np.std(list(self.scores.values()), ddof=min(1, len(self.scores) - 1)))

    @property
    def score(self) -> str:
        """Interquartile mean and its interval as text."""
        return f"{short(self.iqm.value)} ({short(self.iqm.low)} to {short(self.iqm.high)})"

    def _repr_html_(self) -> str:
        """Show the scores and the learning curves in a notebook."""
        shown = facts(str(self), {f"seed {seed}": short(score) for seed, score in self.scores.items()})
        return shown + media(self.group.curve, "learning curves of all seeds")

    def __str__(self) -> str:
        env_name = registry.short_name(self.group.settings().env_name)
        return (
            f"{env_name}: score {self.score}, the interquartile mean of {plural(len(self.scores), 'seed')} and its "
            f"95 % interval; mean {short(self.mean)} ± {short(self.std)}; random play: {short(self.random_score)}"
        )


def parse_seeds(text: str | int, first: int) -> tuple[int, ...]:
    """Parse a number of seeds, which are counted from ``first``, or a list of seeds: ``5`` or ``"1,2,3"``.

    Raises:
        UsageError: The text is neither, or a seed occurs twice.
    """
    words = str(text).split(",")
    try:
        numbers = [int(word) for word in words if word.strip()]
    except ValueError:
        numbers = []
    if len(words) == 1 and numbers and 1 <= numbers[0] <= 10_000:
        return tuple(range(first, first + numbers[0]))
    if len(words) == 1 or not numbers or min(numbers) < 0 or len({*numbers}) < len(numbers):
        raise UsageError(
            f"train.seeds must be a number of seeds, such as 5, or different seeds separated by commas, "
            f"such as 1,2,3; got {str(text)!r}"
        )
    return tuple(numbers)


@contextlib.contextmanager
def new_group(runs: Path, config: Config, seeds: tuple[int, ...]) -> Iterator[SeedGroup]:
    """Return a context with a new folder for runs of these seeds.

    The folder is removed if no run reaches its first update.

    Raises:
        APIUsageError: The folder cannot be created.
    """
    group = SeedGroup(new_folder(runs, config.env_name, config.track.name), seeds)
    try:
        group.save(config)
        yield group
    finally:
        if not any(run.folder.exists() for run in group.runs):
            for file in group.folder.iterdir():
                file.unlink()
            group.folder.rmdir()


def find_group(folder: Path) -> SeedGroup | None:
    """Return the group in a folder, or None if the folder is not a group.

    Raises:
        APIUsageError: The list of seeds is damaged.
    """
    folder = user_path(folder)
    try:
        text = (folder / SEEDS).read_text("utf-8")
    except OSError:
        return None
    try:
        return SeedGroup(folder, tuple(map(int, json.loads(text))))
    except (ValueError, TypeError) as error:
        raise APIUsageError(
            f"{folder / SEEDS}: expected a list of seeds, such as [42, 43], got {text[:40]!r}"
        ) from error


def train_group(
    group: SeedGroup, config: Config, train_one: Callable[[Config, Run, Run | None], object]
) -> TrainedSeeds:
    """Train each seed that is not finished, or must be evaluated again, one after the other. Return the result of all.

    Args:
        group: Folder of the runs.
        config: Settings that the runs share.
        train_one: Function that trains and evaluates a run with these settings. The third argument is the run to
            resume, or None.
    """
    for seed, run in zip(group.seeds, group.runs, strict=True):
        own = config.override({"train.seed": seed})
        if run.has_checkpoint:
            if not is_evaluated(own, run):
                train_one(own, run, run)
            continue
        run.folder.mkdir(exist_ok=True)
        with removed_if_empty(run):
            train_one(own, run, None)
    return report_group(group)


def report_group(group: SeedGroup) -> TrainedSeeds:
    """Write the summary of all seeds and the plot of their learning curves.

    Raises:
        APIUsageError: A run has no result.
        BindingMissing: matplotlib is not installed.
    """
    results = {seed: _result(group.run(seed)) for seed in group.seeds}
    scores = {seed: result["score"] for seed, result in results.items()}
    random_score = float(np.mean([result["random_score"] for result in results.values()]))
    trained = TrainedSeeds(group, scores, random_score, estimate_iqm(list(scores.values())))
    env_name = registry.short_name(group.settings().env_name)
    summary = {
        "env_name": group.settings().env_name,
        "seeds": list(group.seeds),
        "scores": list(scores.values()),
        "score_iqm": trained.iqm.value,
        "score_iqm_low": trained.iqm.low,
        "score_iqm_high": trained.iqm.high,
        "confidence": CONFIDENCE,
        "resamples": RESAMPLES,
        "score_mean": trained.mean,
        "score_std": trained.std,
        "random_score": random_score,
        "agent_steps": sum(result["agent_steps"] for result in results.values()),
        "train_s": round(sum(result["train_s"] for result in results.values()), 3),
        "runs": [run.folder.name for run in group.runs],
    }
    write_summary(group.summary, summary)
    title = f"{env_name}; evaluated: {trained.score}, IQM of {plural(len(scores), 'seed')}"
    lines = [Line("interquartile mean, 95 % interval", [run.metrics for run in group.runs])]
    try:
        plot_curves(group.curve, {title: lines}, levels={"random play": random_score})
    except Exception as error:  # the summary matters more
        warnings.warn(f"the learning curves are not drawn: {type(error).__name__}: {error}", stacklevel=2)
    return trained


def _result(run: Run) -> dict[str, Any]:
    result = run.result()
    try:
        for name in ("score", "random_score"):  # null where no episode ended
            result[name] = math.nan if result[name] is None else float(result[name])
    except (ValueError, LookupError, TypeError) as error:
        raise APIUsageError(f"{run.summary}: expected the result of a finished run; resume its group") from error
    return result
