"""Runs as their folders tell of them, without opening a checkpoint, so that hundreds are read in a second."""

import fnmatch
import glob
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.runs.folder import RUNS, SEED, Run, all_runs
from pufferlib.runs.resume import flat
from pufferlib.runs.status import State, status_of
from pufferlib.training.episodes import SCORE
from pufferlib.training.toml import read_toml

__all__ = ["RunSummary", "find_metric", "list_runs", "select"]


TAIL_BYTES = 65_536  # of the metrics, where the last updates are


@dataclass(frozen=True)
class RunSummary:
    """Facts of a run.

    Attributes:
        folder: All files of the run are in it.
        env_name: The environment; "" where its settings cannot be read.
        name: Name that it was given; "" is none.
        tags: Its tags.
        state: "finished", "running", "stopped" or "failed".
        reason: The error of a run that failed.
        score: Mean score of the evaluation, or while there is none, of the last update that had one; NaN without any.
        score_std: Standard deviation over the episodes of the evaluation; NaN without one.
        is_evaluated: The score is that of the evaluation.
        agent_steps: Steps of all agents so far.
        train_s: Seconds of training so far.
        settings: All settings by their dotted names.
        figures: The last value of each metric in training; NaN if it was no number.
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
        """Name of its folder, and of its group's where it is one of several seeds."""
        in_group = self.folder.name.startswith(SEED)
        return f"{self.folder.parent.name}/{self.folder.name}" if in_group else self.folder.name

    @property
    def metrics(self) -> Path:
        """The figures of each update."""
        return Run.at(self.folder).metrics


def list_runs(folder: Path | str = RUNS, envs: Sequence[str] = (), tags: Sequence[str] = ()) -> list[RunSummary]:
    """Read the runs in a folder, the newest first.

    Args:
        folder: Of all runs.
        envs: Names of environments or of runs, to leave out all others.
        tags: Leave out runs that lack one of these.
    """
    wanted = {registry.full_name(name.removeprefix("puffer_")) for name in envs}
    found = [_read(run) for run in all_runs(Path(folder))]
    named = [run for run in found if not wanted or run.env_name in wanted or run.name in envs]
    chosen = [run for run in named if {*tags} <= {*run.tags}]
    return sorted(chosen, key=lambda run: run.title, reverse=True)


def select(targets: Iterable[Path | str], folder: Path | str = RUNS) -> list[RunSummary]:
    """Read the runs that ``targets`` name, each once, in their order.

    Args:
        targets: Folders of runs or of several seeds, patterns of such ("runs/*breakout*", or of names alone), names of
            runs, or names of environments for all runs of each.
        folder: Of all runs.

    Raises:
        UnknownNameError: A target is none of these; the nearest are suggested.
        APIUsageError: A folder is no run.
    """
    found: dict[Path, RunSummary] = {}
    for target in targets:
        for run in _targeted(str(target), Path(folder)):
            found.setdefault(run.folder.resolve(), run)
    return list(found.values())


def find_metric(name: str, found: Iterable[RunSummary]) -> str:
    """Return the metric of some runs that ``name`` means: its whole name, or the end of one.

    Raises:
        UnknownNameError: No run has such a metric; the nearest are suggested.
    """
    known = dict.fromkeys(key for run in found for key in run.figures)
    if name in known or not known:
        return name
    ends = [key for key in known if key.rpartition("/")[2] == name]
    if not ends and name != SCORE:
        raise UnknownNameError.of("metric", "metric", name, known)
    return next((key for key in ends if key.startswith("environment/")), ends[0]) if ends else name


def _targeted(target: str, folder: Path) -> list[RunSummary]:
    if user_path(target).is_dir():
        return _at(user_path(target))
    if glob.has_magic(target):
        if matches := sorted(path for path in map(Path, glob.glob(target)) if path.is_dir()):
            return [run for path in matches for run in _at(path)]
        chosen = [run for run in reversed(list_runs(folder)) if fnmatch.fnmatch(run.title, target)]
    else:
        env_name = registry.full_name(target.removeprefix("puffer_"))
        chosen = [run for run in reversed(list_runs(folder)) if target == run.name or env_name == run.env_name]
    if not chosen:
        raise _unknown(target, folder)
    return chosen


def _at(path: Path) -> list[RunSummary]:
    """The run in a folder, or those of several seeds."""
    own = Run.at(path)
    seeds = [Run.at(inner.parent) for inner in sorted(path.glob(f"{SEED}*/config.toml"))]
    if not seeds and not own.metrics.exists():
        raise APIUsageError(f"{path}: is no run: it has no metrics.jsonl; expected a folder as in {RUNS}/")
    return [_read(run) for run in seeds or [own]]


def _unknown(target: str, folder: Path) -> UnknownNameError:
    known = {name for run in list_runs(folder) for name in (run.env_name, run.name, run.title) if name}
    close = nearest(target, known)
    meant = f"did you mean {' or '.join(map(repr, close))}?"
    hint = meant if close else f"{as_typed('puffer runs')} lists those in {folder}"
    return UnknownNameError(f"{target!r} is no run, no pattern of runs and no environment with a run; {hint}")


def _read(run: Run) -> RunSummary:
    status = status_of(run)
    try:
        settings = read_toml(run.config)
    except APIUsageError:  # damaged or gone: its figures are listed all the same
        settings = {}
    track = settings.get("track", {})
    result = _json(run.summary) if status.state == "finished" else {}
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


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _last_figures(metrics: Path) -> dict[str, Any]:
    """The last value of each figure, from the end of the file."""
    figures: dict[str, Any] = {}
    for line in _tail(metrics):
        try:
            figures |= {key: value for key, value in json.loads(line).items() if value is not None}
        except (ValueError, AttributeError):  # the first line is cut, and the last one may be
            continue
    return figures


def _tail(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read().splitlines()
    except OSError:
        return []
