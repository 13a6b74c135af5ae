"""Summaries of runs, read from their folders without opening checkpoints. Hundreds of runs take a second."""

import fnmatch
import glob
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.render.html import table
from pufferlib.runs.folder import RUNS, SEED, Run, all_runs
from pufferlib.runs.report import SCORE
from pufferlib.runs.resume import flat
from pufferlib.runs.status import State, status_of
from pufferlib.settings.toml import read_toml
from pufferlib.text import duration, short

__all__ = ["RunList", "RunSummary", "differing_settings", "find_metric", "list_runs", "select", "summary_of"]


TAIL_BYTES = 65_536  # size of the end of the metrics file that is read


@dataclass(frozen=True)
class RunSummary:
    """Facts of a run.

    Attributes:
        folder: Folder of the run.
        env_name: Name of the environment, or "" if the settings cannot be read.
        name: Name of the run, or "".
        tags: Tags of the run.
        state: "finished", "running", "stopped" or "failed".
        reason: Error of a run that failed.
        score: Mean score of the evaluation. Without an evaluation, the score of the last update that has one, or NaN.
        score_std: Standard deviation over the episodes of the evaluation, or NaN.
        is_evaluated: Whether the score is from the evaluation.
        agent_steps: Number of agent-steps so far.
        train_s: Seconds of training so far.
        settings: All settings by dotted name.
        figures: Last value of each metric in training. NaN if it was not a number.
    """

    folder: Path
    env_name: str
    name: str
    tags: tuple[str, ...]
    state: State
    reason: str
    score: float
    score_std: float
    is_evaluated: bool
    agent_steps: int
    train_s: float
    settings: dict[str, Any]
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name of the folder, with the folder of the seeds in front if it is one of several seeds."""
        in_group = self.folder.name.startswith(SEED)
        return f"{self.folder.parent.name}/{self.folder.name}" if in_group else self.folder.name

    @property
    def metrics(self) -> Path:
        """Path of the metrics of each update."""
        return Run.at(self.folder).metrics


class RunList(list[RunSummary]):
    """List of runs. A notebook shows it as a table, with the settings that differ."""

    def _repr_html_(self) -> str:
        settings = differing_settings(self)
        head = ["run", "environment", "state", "score", "steps", "time", *settings]
        return table(head, ([*_row(run), *(run.settings.get(name, "") for name in settings)] for run in self))


def _row(run: RunSummary) -> list[str]:
    name = registry.short_name(run.env_name)
    return [run.title, name, run.state, short(run.score), short(run.agent_steps), duration(run.train_s)]


def differing_settings(runs: Iterable[RunSummary]) -> list[str]:
    """Return the dotted names of settings that differ between runs of the same environment.

    Names, tags and trackers are left out. A setting that only some runs have also differs.
    """
    by_env: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        if run.settings:
            by_env.setdefault(run.env_name, []).append(run.settings)
    found: dict[str, None] = {}
    for settings in by_env.values():
        names = dict.fromkeys(name for one in settings for name in one)
        first = settings[0]
        for name in names:
            if not name.startswith("track.") and any(one.get(name) != first.get(name) for one in settings):
                found[name] = None
    return list(found)


def list_runs(folder: Path | str = RUNS, envs: Sequence[str] = (), tags: Sequence[str] = ()) -> RunList:
    """Read the runs in a folder, newest first.

    Args:
        folder: Folder of all runs.
        envs: Names of environments or of runs to include. Empty includes all.
        tags: Tags that each run must have.
    """
    wanted = {full for name in envs for full in _env_names(name)}
    found = [summary_of(run) for run in all_runs(Path(folder))]
    named = [run for run in found if not wanted or run.env_name in wanted or run.name in envs]
    chosen = [run for run in named if {*tags} <= {*run.tags}]
    return RunList(sorted(chosen, key=lambda run: run.title, reverse=True))


def summary_of(run: Run) -> RunSummary:
    """Read the summary of a run from its folder. Files that are damaged or missing leave their parts empty."""
    status = status_of(run)
    try:
        settings = read_toml(run.config)
    except APIUsageError:  # damaged or deleted; its metrics can still be listed
        settings = {}
    track = settings.get("track", {})
    result = run.result() if status.state == "finished" else {}
    latest = {} if result else _last_figures(run.metrics)
    score = result.get("score") if result else latest.get(SCORE)
    return RunSummary(
        folder=run.folder,
        env_name=str(settings.get("env_name", "")),
        name=track.get("name", ""),
        tags=tuple(track.get("tags", ())),
        state=status.state,
        reason=status.reason,
        score=_number(score),
        score_std=_number(result.get("score_std")),
        is_evaluated=bool(result),
        agent_steps=int(result.get("agent_steps", latest.get("agent_steps", 0))),
        train_s=float(result.get("train_s", latest.get("uptime_s", 0.0))),
        settings=flat(settings),
        figures={key: _number(value) for key, value in (latest or _last_figures(run.metrics)).items()},
    )


def select(targets: Iterable[Path | str], folder: Path | str = RUNS) -> RunList:
    """Read the runs that ``targets`` name, each once, in the order of the targets.

    Args:
        targets: Folders of runs or of several seeds, patterns of folders ("runs/*breakout*") or of names, names of
            runs, or names of environments for all their runs.
        folder: Folder of all runs.

    Raises:
        UnknownNameError: A target is none of these. The message suggests similar names.
        APIUsageError: A folder is not a run.
    """
    found: dict[Path, RunSummary] = {}
    for target in targets:
        for run in _targeted(str(target), Path(folder)):
            found.setdefault(run.folder.resolve(), run)
    return RunList(found.values())


def find_metric(name: str, found: Iterable[RunSummary]) -> str:
    """Return the metric of these runs that ``name`` means. It is a full name or the last part of one.

    Raises:
        UnknownNameError: No run has such a metric. The message suggests similar ones.
    """
    known = dict.fromkeys(key for run in found for key in run.figures)
    if name in known or not known:
        return name
    ends = [key for key in known if key.rpartition("/")[2] == name]
    if not ends and name != SCORE:
        raise UnknownNameError.of("metric", "metric", name, known)
    return next((key for key in ends if key.startswith("environment/")), ends[0]) if ends else name


def _targeted(target: str, folder: Path) -> list[RunSummary]:
    path = user_path(target)
    if path.is_dir() and (runs := _at(path)):
        return runs
    if glob.has_magic(target):
        if matches := sorted(path for path in map(Path, glob.glob(target)) if path.is_dir()):
            return [run for match in matches for run in _at(match) or _no_run(match)]
        chosen = [run for run in reversed(list_runs(folder)) if _is_match(run, target)]
    else:
        env_names = _env_names(target)
        chosen = [run for run in reversed(list_runs(folder)) if target == run.name or run.env_name in env_names]
    return chosen or (_no_run(path) if path.is_dir() else _unknown(target, folder))


def _env_names(name: str) -> list[str]:
    """Return all names that the settings of a run can have for an environment."""
    return registry.names_of_file(registry.full_name(name.removeprefix("puffer_")))


def _is_match(run: RunSummary, pattern: str) -> bool:
    """Return True if the pattern matches the folder of a run, or the folder of several seeds that it belongs to."""
    return any(fnmatch.fnmatch(name, pattern) for name in (run.title, run.title.partition("/")[0]))


def _at(path: Path) -> list[RunSummary]:
    """Return the run in a folder, or the runs of several seeds, or an empty list."""
    own = Run.at(path)
    seeds = [Run.at(inner.parent) for inner in sorted(path.glob(f"{SEED}*/config.toml"))]
    return [summary_of(run) for run in seeds or [own] if seeds or own.metrics.exists()]


def _no_run(path: Path) -> NoReturn:
    raise APIUsageError(f"{path}: is not a run: it has no metrics.jsonl; expected a folder as in {RUNS}/")


def _unknown(target: str, folder: Path) -> NoReturn:
    known = {name for run in list_runs(folder) for name in (run.env_name, run.name, run.title) if name}
    close = nearest(target, known)
    meant = f"did you mean {' or '.join(map(repr, close))}?"
    hint = meant if close else f"{as_typed('puffer runs')} lists the runs in {folder}"
    raise UnknownNameError(f"{target!r} is not a run, a pattern of runs or an environment with runs; {hint}")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _last_figures(metrics: Path) -> dict[str, Any]:
    """Return the last value of each metric, from the end of the file."""
    figures: dict[str, Any] = {}
    for line in _tail(metrics):
        try:
            figures |= {key: value for key, value in json.loads(line).items() if value is not None}
        except (ValueError, AttributeError):  # the first line is incomplete, and the last one may be
            continue
    return figures


def _tail(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read().splitlines()
    except OSError:
        return []
