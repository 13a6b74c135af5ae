"""Board of runs: a page with a table of the runs in a folder, their curves, videos, sweeps and leagues.

The page asks for small JSON answers. An export is the same page beside the same answers as files.
"""

import contextlib
import json
import math
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.runs.compare import group_runs, short_names
from pufferlib.runs.folder import STAMP, STAMP_WIDTH
from pufferlib.runs.listing import differing_settings
from pufferlib.runs.report import ELO, SCORE, finite
from pufferlib.runs.statistics import Estimate, estimate_iqm
from pufferlib.web.load import MachineLoad
from pufferlib.web.metrics import GrowingCurve, thin
from pufferlib.web.server import Reply, Request, read_static, send_file
from pufferlib.web.watched import WatchedFolder, WatchedRun

__all__ = ["Board"]


PAGE = "board.html"
STATIC = {
    "base.css": "text/css",
    "board.css": "text/css",
    "uPlot.min.css": "text/css",
    "uPlot.iife.min.js": "text/javascript",
    "board.js": "text/javascript",
    "charts.js": "text/javascript",
    "parallel.js": "text/javascript",
    "statistics.js": "text/javascript",
}
VIDEO = ".mp4"
POINTS, EXPORTED_POINTS = 500, 250  # largest number of points of a curve
READ_AHEAD_S = 4.0  # most seconds of reading before a page asks
READ_S = 0.25  # seconds of reading after which an answer is sent without the rest
RESAMPLES = 5000  # of an interval in the table

Groups = list[tuple[str, list[WatchedRun]]]  # label and runs of each group
_Grouping = tuple[list[object], dict[str, str], Groups]  # state of the runs, names of settings that differ, groups


class Board:
    """Page and data of a board, for ``Server``.

    Args:
        folder: Folder of runs, of sweeps or of leagues, one with the folders ``runs``, ``sweeps`` and ``leagues``, a
            sweep, or a single run.

    Raises:
        APIUsageError: ``folder`` does not exist.
    """

    def __init__(self, folder: Path | str) -> None:
        path = user_path(folder)
        if not path.is_dir():
            raise APIUsageError(
                f"puffer board: expected a folder of runs, got {path}, which does not exist; "
                f"train an agent first: {as_typed('puffer train breakout')}"
            )
        self._folder = WatchedFolder(path)
        self._lock = threading.Lock()  # each request has a thread
        self._slow = threading.Lock()  # for sweeps and leagues
        self._id = secrets.token_hex(8)  # so that an open page notices that it asks another board than before
        self._metrics = {SCORE: 0}  # number of each metric, by which the page asks for it
        self._changes = 0  # number of changes of the list of runs and of curves
        self._listed = b""  # list of runs after its last change,
        self._listed_at = 0  # and the number of this change
        self._groups: dict[tuple[Path | None, str], _Grouping] = {}  # of each section
        self._seen: dict[GrowingCurve, int] = {}  # number of the last change of each curve
        self._load = MachineLoad()
        self.runs()
        threading.Thread(target=self._read_ahead, name="puffer-board", daemon=True).start()

    def _read_ahead(self) -> None:
        """Read the scores of the newest runs, so that they are known when the page opens."""
        deadline = time.monotonic() + READ_AHEAD_S
        for known in self._folder.newest():
            with self._lock:
                self._read(known, SCORE, deadline)
            if time.monotonic() > deadline:
                break

    def __call__(self, request: Request) -> Reply:
        """Return the reply to a request for the page or its data."""
        kind, _, name = request.path.removeprefix("/").partition("/")
        match kind, name:
            case (("" | "index.html"), ""):
                return Reply(read_static(PAGE))
            case "static", _ if name in STATIC:
                return Reply(read_static(name), f"{STATIC[name]}; charset=utf-8")
            case "data", _ if (answer := self._answer(name.removesuffix(".json"), request)) is not None:
                return Reply(_text(answer), "application/json")
            case "files", _ if video := self._video(name):
                folder = self._folder.folder
                return send_file(folder, str(video.relative_to(folder)), request)
        return Reply(b"There is no such page.\n", "text/plain; charset=utf-8", HTTPStatus.NOT_FOUND)

    def _answer(self, name: str, request: Request) -> dict[str, Any] | None:
        """Return the answer with a name such as "curves/3", or None if there is none."""
        kind, _, number = name.partition("/")
        index, since = _whole(number), _whole(request.query.get("since", ""))
        if kind in ("sweep", "league"):  # without the lock, because they may take seconds
            with self._lock:
                paths = self._folder.sweeps() if kind == "sweep" else self._folder.leagues()
            return self._study(kind, paths[index]) if 0 <= index < len(paths) else None
        with self._lock:
            if name == "runs":
                return self.runs(since)
            if name == "load":
                return self._load.sample()
            if kind == "curves" and 0 <= index < len(self._metrics):
                wanted = [_whole(word) for word in request.query.get("runs", "").split(",")]
                return self._curves(list(self._metrics)[index], wanted, since)
            if kind == "run" and (known := self._folder.run(index)):
                return self._details(known)
        return None

    def _study(self, kind: str, path: Path) -> dict[str, Any]:
        """Return a sweep or a league, or the "problem" if it cannot be read."""
        with self._slow:
            try:
                return _sweep(path) if kind == "sweep" else _league(path)
            except (PufferError, LookupError, sqlite3.Error) as error:  # a sweep that has just begun lacks its facts
                return {"title": path.stem, "problem": str(error)}

    def runs(self, since: int = -1) -> dict[str, Any]:
        """Return the list of all runs as plain data, or only its "id" and "version" if that is still ``since``."""
        found, sweeps = self._folder.runs(), self._folder.sweeps()
        sections: dict[tuple[Path | None, str], list[WatchedRun]] = {}
        for known in found:
            assert known.summary is not None  # as for all runs that the folder returns
            sections.setdefault((known.sweep, known.summary.env_name), []).append(known)
            for metric in known.summary.figures:
                self._metrics.setdefault(metric, len(self._metrics))
        listed = {
            "folder": str(self._folder.folder.absolute()),
            "example": as_typed("puffer train breakout"),
            "live": True,
            "metrics": list(self._metrics),
            "sections": [
                {
                    "title": registry.short_name(env_name) or "without readable settings",
                    "env_name": env_name,
                    "sweep": sweeps.index(sweep) if sweep in sweeps else None,
                    **self._section(sweep, members),
                }
                for (sweep, env_name), members in sorted(sections.items(), key=_latest_start, reverse=True)
            ],
            "sweeps": [path.name for path in sweeps],
            "leagues": [path.stem for path in self._folder.leagues()],
        }
        text = _text(listed)
        if text != self._listed:
            self._changes += 1
            self._listed, self._listed_at = text, self._changes
        state = {"id": self._id, "version": self._listed_at}
        return state if self._listed_at == since else {**state, **listed}

    def _section(self, sweep: Path | None, members: Sequence[WatchedRun]) -> dict[str, Any]:
        """Return the runs of an environment or a sweep, with the settings that differ between them.

        Runs that differ only in their seed are one group. Each trial of a sweep is a group of its own. The "metric" is
        the one to look at first. In self-play the score does not rise, but the rating does.
        """
        names, groups = self._grouped(sweep, members)
        return {
            "metric": ELO if any(known.summary and ELO in known.summary.figures for known in members) else SCORE,
            "settings": [{"name": name, "short": short} for name, short in names.items()],
            "groups": [
                {"label": label, **_score_of(alike), "runs": [_run(known, names) for known in alike]}
                for label, alike in groups
            ],
        }

    def _grouped(self, sweep: Path | None, members: Sequence[WatchedRun]) -> tuple[dict[str, str], Groups]:
        """Return the names of the settings that differ, with short names, and the groups of the runs by label.

        Comparing the settings of all runs takes a while, so it is only done again if they have changed.
        """
        summaries = [known.summary for known in members if known.summary]
        state: list[object] = [
            (known.id, known.settled, summary.state) for known, summary in zip(members, summaries, strict=True)
        ]
        key = (sweep, summaries[0].env_name)
        if key not in self._groups or self._groups[key][0] != state:
            by_folder = {known.run.folder: known for known in members}
            if sweep is None:
                groups: Groups = [
                    (label, [by_folder.pop(summary.folder) for summary in alike])
                    for label, alike in group_runs(summaries).items()
                ]
                # What remains repeats the settings and the seed of another run.
                groups += [(known.run.folder.name, [known]) for known in by_folder.values()]
            else:
                groups = [(known.run.folder.name, [known]) for known in members]
            self._groups[key] = state, short_names(differing_settings(summaries)), groups
        _, names, groups = self._groups[key]
        return names, groups

    def export(self, out: Path) -> int:
        """Write the page and its data into a folder that any web server can serve. Return the number of runs.

        Args:
            out: Folder. It is created, or is empty or an earlier export.

        Raises:
            APIUsageError: The folder cannot be written to, or has other files.
        """
        out = user_path(out)
        try:
            if out.exists() and any(out.iterdir()) and not (out / "data/runs.json").is_file():
                raise APIUsageError(
                    f"puffer board: --export needs a new or an empty folder, got {out}, which has files"
                )
            for name in ("static", "data", "files"):
                shutil.rmtree(out / name, ignore_errors=True)
                (out / name).mkdir(parents=True)
            (out / "index.html").write_bytes(read_static(PAGE))
            for name in STATIC:
                (out / "static" / name).write_bytes(read_static(name))
            with self._lock:
                return self._export_data(out)
        except OSError as error:
            raise APIUsageError(
                f"puffer board: --export must be a folder that can be written to, got {out} ({error.strerror})"
            ) from error

    def _export_data(self, out: Path) -> int:
        answers: dict[str, Any] = {"runs": {**self.runs(), "id": "", "live": False}}
        found = self._folder.runs()
        for metric, number in self._metrics.items():
            ids = [known.id for known in found]
            answers[f"curves/{number}"] = self._curves(metric, ids, points=EXPORTED_POINTS, read_s=math.inf)
        for known in found:
            answers[f"run/{known.id}"] = details = self._details(known)
            for video in details["videos"]:
                copy = out / "files" / str(known.id) / video
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(known.run.folder / video, copy)
        for kind, paths in (("sweep", self._folder.sweeps()), ("league", self._folder.leagues())):
            answers |= {f"{kind}/{place}": self._study(kind, path) for place, path in enumerate(paths)}
        for name, answer in answers.items():
            file = out / "data" / f"{name}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(_text(answer))
        return len(found)

    def _curves(
        self, metric: str, wanted: Sequence[int], since: int = -1, points: int = POINTS, read_s: float = READ_S
    ) -> dict[str, Any]:
        """Return the curves of runs that have changed since a version.

        Args:
            metric: Name of the metric.
            wanted: Numbers of the runs.
            since: Version of an earlier answer.
            points: Largest number of points of a curve.
            read_s: Seconds after which to stop reading files. The answer then has the "share" that is read.
        """
        deadline = time.monotonic() + read_s
        curves, shares = {}, []
        for known in filter(None, map(self._folder.run, wanted)):
            curve = self._read(known, metric, deadline)
            shares.append(curve.share)
            if self._seen.get(curve, -1) > since and curve.values:
                curves[known.id] = {**thin(curve, points), "damaged": curve.damaged}
        return {"version": self._changes, "share": sum(shares) / len(shares) if shares else 1.0, "curves": curves}

    def _read(self, known: WatchedRun, metric: str, deadline: float) -> GrowingCurve:
        """Return a curve of a run with what its file has now, or less at the deadline."""
        curve = known.curves.setdefault(metric, GrowingCurve(known.run.metrics, metric))
        if time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # no update yet, or deleted meanwhile
                if curve.read(deadline) or curve not in self._seen:
                    self._changes += 1
                    self._seen[curve] = self._changes
        return curve

    def _details(self, known: WatchedRun) -> dict[str, Any]:
        """Return everything about one run."""
        run, summary = known.run, known.summary
        assert summary is not None  # as for all runs that the folder returns
        words = {
            "watch": ("puffer play --watch", run.folder),
            "evaluate": ("puffer eval", run.folder),
            "resume": ("puffer train --resume", run.folder),
            "train again": ("puffer train --config", run.config),
        }
        if not run.has_checkpoint:
            words = {"train again": words["train again"]}
        elif summary.state == "finished":
            del words["resume"]
        return {
            "folder": str(run.folder),
            "settings": {name: _value(value) for name, value in summary.settings.items()},
            "figures": summary.figures,
            "result": {key: value for key, value in run.result().items() if not isinstance(value, dict | list)},
            "commands": {title: as_typed(*command) for title, command in words.items()},
            "videos": sorted(file.name for file in run.folder.glob(f"*{VIDEO}")),
        }

    def _video(self, name: str) -> Path | None:
        """Return the path of the video of a run, such as "3/evaluation.mp4", or None."""
        number, _, file = name.partition("/")
        known = self._folder.run(_whole(number))
        return known.run.folder / file if known and "/" not in file and file.endswith(VIDEO) else None


def _latest_start(section: tuple[object, Sequence[WatchedRun]]) -> float:
    return max(_start_of(known.run.folder) for known in section[1])


def _score_of(alike: Sequence[WatchedRun]) -> dict[str, Any]:
    """Return the interquartile mean of the evaluations of runs, or else of their scores in training."""
    summaries = [known.summary for known in alike if known.summary and math.isfinite(known.summary.score)]
    evaluated = [summary for summary in summaries if summary.is_evaluated]
    scores = tuple(summary.score for summary in evaluated or summaries)
    if len(scores) < 2:
        return {"score": scores[0] if scores else None, "low": None, "high": None, "evaluated": bool(evaluated)}
    iqm = _interval(scores)
    return {"score": iqm.value, "low": iqm.low, "high": iqm.high, "evaluated": bool(evaluated)}


def _run(known: WatchedRun, names: Iterable[str]) -> dict[str, Any]:
    """Return a row of the table. ``names`` are the settings of its columns."""
    summary = known.summary
    assert summary is not None  # as for all runs that the folder returns
    return {
        "id": known.id,
        "path": known.path,
        "title": summary.title,
        "name": summary.name,
        "tags": summary.tags,
        "started": _start_of(known.run.folder),
        "state": summary.state,
        "reason": summary.reason,
        "score": summary.score,
        "score_std": summary.score_std,
        "evaluated": summary.is_evaluated,
        "steps": summary.agent_steps,
        "total_steps": summary.settings.get("train.total_timesteps"),
        "train_s": summary.train_s,
        "settings": [_value(summary.settings.get(name)) for name in names],
    }


def _start_of(folder: Path) -> float:
    """Return when a run was started, in seconds since 1970. The name of its folder has the time, in local time."""
    for name in (folder.name, folder.parent.name):
        with contextlib.suppress(ValueError):
            return datetime.strptime(name[: STAMP_WIDTH - 1], STAMP).timestamp()
    try:
        return (folder / "config.toml").stat().st_mtime
    except OSError:  # deleted meanwhile
        return 0.0


@lru_cache(maxsize=1024)
def _interval(scores: tuple[float, ...]) -> Estimate:
    return estimate_iqm(scores, resamples=RESAMPLES)


def _value(value: Any) -> Any:
    """Return a setting as a value that JSON can represent."""
    is_plain = (
        value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    )
    return value if is_plain else str(value)


def _whole(text: str) -> int:
    """Return the number that ``text`` is, or -1 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _text(answer: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:  # looking for NaN in all curves beforehand would take longer than writing them
        return json.dumps(finite(answer), separators=(",", ":")).encode()


def _sweep(folder: Path) -> dict[str, Any]:
    """Return the trials of a sweep and the importances of its settings."""
    from pufferlib.sweeps.result import load_sweep  # imports Optuna

    result = load_sweep(folder.name, folder.parent)
    about, trials = result.about, result.trials
    best = result.best if any(trial.state == "finished" for trial in trials) else None
    train = as_typed("puffer train", about["env_name"])
    return {
        "title": folder.name,
        "metric": about["metric"],
        "is_minimized": about.get("direction") == "minimize",
        "spaces": [{"setting": space.setting, **space.as_dict()} for space in result.spaces],
        "best": best.number if best else None,
        "command": f"{train} {result.flags(best)}" if best else "",
        "importances": result.importances,
        "trials": [
            {
                "number": trial.number,
                "state": trial.state,
                "score": trial.score,
                "seconds": trial.seconds,
                "settings": {key: _value(value) for key, value in trial.settings.items()},
                "reason": trial.reason,
                "run": trial.run.folder.name,
            }
            for trial in trials
        ],
    }


def _league(path: Path) -> dict[str, Any]:
    """Return the ratings and the results of a league.

    Raises:
        APIUsageError: The file is not a league.
    """
    from pufferlib.selfplay.league import League  # imports torch

    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if not {"agents", "results"} <= tables:  # opening it as a league would add tables to it
        raise APIUsageError(f"{path}: is not a league; expected a file that puffer league made")
    table = League(path).table()
    if not table.names:
        return {"title": path.stem, "players": []}
    ratings, widths = table.ratings()
    order = sorted(range(len(table.names)), key=lambda i: -ratings[i])
    return {
        "title": path.stem,
        "players": [
            {
                "name": table.names[i],
                "rating": float(ratings[i]),
                "width": float(widths[i]),
                "points": float(table.scores[i].sum()),
                "games": int(table.games[i]),
                "results": [[int(table.wins[i, j]), int(table.draws[i, j]), int(table.wins[j, i])] for j in order],
            }
            for i in order
        ],
    }
