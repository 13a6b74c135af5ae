"""Rows of a benchmark with their figures, the description of the machine, and the printed table."""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
OURS, LIMIT, BARE_LOOP = "ours", "limit", "bare environments, one process"
SYNC, ASYNC, SERIAL, PUFFER = "SyncVectorEnv", "AsyncVectorEnv", "our Serial", "PufferLib 3.0.0"
DUMMY, SUBPROC, SB3 = "SB3 DummyVecEnv", "SB3 SubprocVecEnv", "Stable-Baselines3"
CLEANRL = "script in CleanRL's style"
ENVPOOL, ALE = "EnvPool", "ale-py's AtariVectorEnv"
PARALLEL, POOL = "TorchRL ParallelEnv", "TorchRL AsyncEnvPool"

Stored = Mapping[str, Any]  # a row as returned by ``Row.as_dict``


def machine() -> dict[str, Any]:
    """Describe the machine, its software, its load, the commit and the date of a measurement."""
    versions = {name: metadata.version(name) for name in ("pufferlib", "numpy", "gymnasium")}
    return {
        "commit": git("rev-parse", "--short=10", "HEAD"),
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_1min": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
        **versions,
    }


def cpu() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())


def git(*arguments: str) -> str | None:
    """Return the output of git in this checkout, or None if it fails or there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def figure(value: float) -> str:
    """Format a number with three significant digits, or with all digits of the integer part."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Write ``results`` as JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {path}")


@dataclass
class Row:
    """One line of the table, with a cost of ours and the same cost of other libraries.

    Attributes:
        what: Name of the row, unique in its benchmark and the same in every run.
        unit: Unit of all figures. Lower is better.
        most: Maximum for our median, or None.
        ratios: Minimum cost of each contestant, as a multiple of ours.
        limit: Description of the contestant ``LIMIT``.
        figures: Figures of every round, by contestant. Figures with the same index belong to the same round.
        skipped: Reason why there are no figures.
        notes: Other facts about the row, by name.
    """

    what: str
    unit: str
    most: float | None = None
    ratios: dict[str, float] = field(default_factory=dict)
    limit: str = ""
    figures: dict[str, list[float]] = field(default_factory=dict)
    skipped: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """Return the median of a contestant."""
        return statistics.median(self.figures[name])

    def ratio(self, name: str) -> float:
        """Return the cost of a contestant relative to ours: the median over the rounds."""
        pairs = zip(self.figures[name], self.figures[OURS], strict=True)
        return statistics.median(theirs / max(ours, 1e-9) for theirs, ours in pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file, with the ``medians`` of all contestants and their ``times`` ours."""
        medians = {name: self.median(name) for name in self.figures}
        times = {name: self.ratio(name) for name in self.figures if name != OURS} if OURS in self.figures else {}
        return {**vars(self), "medians": medians, "times": times}


def verdict(row: Stored) -> str:
    """Return "yes" or "NO" for whether all goals are reached, "no NAME" for a missing contestant, "" without goals."""
    if row["most"] is None and not row["ratios"]:
        return ""
    missing = [name for name in (OURS, *row["ratios"]) if name not in row["medians"]]
    if missing:
        return f"no {missing[0]}"
    is_near = row["most"] is None or row["medians"][OURS] <= row["most"]
    return "yes" if is_near and all(row["times"][name] >= least for name, least in row["ratios"].items()) else "NO"


def goal(row: Stored) -> str:
    """Describe the goals of a row."""
    parts = [] if row["most"] is None else [f"<= {row['most']:g}"]
    return ", ".join(parts + [f"{name} >= {least:g} x" for name, least in row["ratios"].items()])


def choose_ours(row: Row, layouts: Iterable[str]) -> None:
    """Copy the figures of the fastest of our ``layouts`` to ``OURS``, if any of them could be measured."""
    measured = [name for name in layouts if name in row.figures]
    if measured:
        best = min(measured, key=row.median)
        row.figures, row.skipped = {OURS: row.figures[best], **row.figures}, ""


HEADER = "| what | goal | ours (best) | others (multiple of ours) | limit | reached |\n" + "|---" * 6 + "|"


def line(row: Row) -> str:
    """Format the row for a Markdown table under ``HEADER``."""
    stored = row.as_dict()
    if OURS not in row.figures:
        return f"| {row.what} | {goal(stored)} | {row.skipped or 'not measured'} | | | |"
    ours = f"{row.median(OURS):.3g} {row.unit} ({min(row.figures[OURS]):.3g})"
    others = [name for name in row.figures if name not in (OURS, LIMIT)]
    against = "; ".join(f"{name} {row.median(name):.3g}: {row.ratio(name):.3g} x" for name in others)
    limit = f"{row.median(LIMIT):.3g}: {row.limit}" if LIMIT in row.figures else ""
    return f"| {row.what} | {goal(stored)} | {ours} | {against} | {limit} | {verdict(stored)} |"
