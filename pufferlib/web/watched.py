"""Folder of runs, sweeps and leagues that is looked at again and again while trainings write into it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pufferlib.runs.folder import RUNS, SEED, Run, all_runs
from pufferlib.runs.listing import RunSummary, summary_of
from pufferlib.runs.status import status_of
from pufferlib.web.metrics import GrowingCurve

__all__ = ["WatchedFolder", "WatchedRun"]


SWEEPS, LEAGUES = "sweeps", "leagues"
STUDIES = ("study.db", "storage.txt")  # a folder with one of them is a sweep


@dataclass
class WatchedRun:
    """Run in a watched folder.

    Attributes:
        id: Number of the run. It stays the same while the folder is watched.
        path: Path of its folder in the watched folder, as text.
        run: Paths of the run.
        sweep: Folder of its sweep, or None.
        summary: Latest summary, or None if the run cannot be read or was deleted.
        curves: Curves that were asked for, by metric.
        settled: State of the file of settings, which seldom changes.
    """

    id: int
    path: str
    run: Run
    sweep: Path | None
    summary: RunSummary | None = None
    curves: dict[str, GrowingCurve] = field(default_factory=dict)
    settled: object = None
    signature: object = None  # state of its files when the summary was read


class WatchedFolder:
    """Runs, sweeps and leagues in a folder. Links that lead out of the folder are ignored.

    Args:
        folder: Folder of runs, of sweeps or of leagues, one with the folders ``runs``, ``sweeps`` and ``leagues``, a
            sweep, or a single run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder.resolve()
        self._known: dict[Path, WatchedRun] = {}
        self._by_id: list[WatchedRun] = []
        self._latest: list[WatchedRun] = []

    def runs(self) -> list[WatchedRun]:
        """Return the runs that can be read, newest first. Only runs whose files have changed are read again."""
        found: dict[Path, WatchedRun] = {}
        for run, sweep in self._find():
            if (known := self._known.get(run.folder)) is None:
                if not all(map(self._is_inside, (run.folder, run.config, run.metrics, run.summary))):
                    continue
                path = run.folder.relative_to(self.folder).as_posix()
                known = self._known[run.folder] = WatchedRun(len(self._known), path, run, sweep)
                self._by_id.append(known)
            known.settled = _state_of(run.config)
            signature = (known.settled, _state_of(run.metrics), _state_of(run.summary), status_of(run))
            if signature != known.signature:
                known.signature = signature
                try:
                    known.summary = summary_of(run)
                except (LookupError, TypeError, ValueError, OSError):  # damaged, or deleted meanwhile
                    known.summary = None
            if known.summary:
                found[run.folder] = known
        for folder in self._known.keys() - found.keys():  # deleted
            gone = self._known[folder]
            gone.summary, gone.signature, gone.curves = None, None, {}
        self._latest = [found[folder] for folder in sorted(found, reverse=True)]
        return self._latest

    def newest(self) -> list[WatchedRun]:
        """Return the runs that were found last, without looking for others."""
        return self._latest

    def run(self, number: int) -> WatchedRun | None:
        """Return the run with a number, or None if there is none, or it was deleted."""
        known = self._by_id[number] if 0 <= number < len(self._by_id) else None
        return known if known and known.summary else None

    def sweeps(self) -> list[Path]:
        """Return the folders of the sweeps."""
        patterns = [f"{place}{file}" for file in STUDIES for place in ("", "*/", f"{SWEEPS}/*/")]
        found = {file.parent for pattern in patterns for file in self.folder.glob(pattern)}
        return sorted(filter(self._is_inside, found))

    def leagues(self) -> list[Path]:
        """Return the files of the leagues."""
        found = [*self.folder.glob("*.db"), *self.folder.glob(f"{LEAGUES}/*.db")]
        return sorted(file for file in found if file.name not in STUDIES and self._is_inside(file))

    def _find(self) -> Iterator[tuple[Run, Path | None]]:
        """Yield all runs, each with the folder of its sweep or None."""
        if (single := Run.at(self.folder)).config.is_file():
            seeds = [Run.at(file.parent) for file in self.folder.glob(f"{SEED}*/config.toml")]
            yield from ((run, None) for run in seeds or [single])
            return
        sweeps = self.sweeps()
        if self.folder not in sweeps:
            yield from ((run, None) for place in (self.folder, self.folder / RUNS) for run in all_runs(place))
        for sweep in sweeps:
            yield from ((run, sweep) for run in all_runs(sweep / RUNS))

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self._root)


def _state_of(file: Path) -> tuple[int, int] | None:
    """Return a value that changes whenever the file does."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size
