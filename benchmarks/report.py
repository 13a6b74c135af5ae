"""Report of a benchmark: the machine, the figures, and a table."""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
OURS, LIMIT, BARE_LOOP = "ours", "limit", "bare environments, one process"


def machine() -> dict[str, Any]:
    """Describe the machine, its software and its load at the time of the measurement."""
    versions = {name: metadata.version(name) for name in ("pufferlib", "numpy", "gymnasium")}
    return {
        "cpu": cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_1min": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
        **versions,
    }


def cpu() -> str:
    """The name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())


def figure(value: float) -> str:
    """Three digits, and all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Keep ``results`` as JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {path}")


@dataclass
class Row:
    """One line of the table: something that costs us, and what it costs others.

    Attributes:
        what: What is measured.
        unit: Of all figures; less is better.
        most: The goal for our median; None if only ratios are asked for.
        ratios: How many times as much each of these must cost.
        limit: What ``LIMIT`` among the figures is.
        figures: For each contestant, the figure of every round; of one round with one another.
        skipped: Why there are no figures.
        share_of_limit: Share of the limit that is enough where the limit itself does not reach the goals; 0 is never.
    """

    what: str
    unit: str
    most: float | None = None
    ratios: dict[str, float] = field(default_factory=dict)
    limit: str = ""
    figures: dict[str, list[float]] = field(default_factory=dict)
    skipped: str = ""
    share_of_limit: float = 0.0

    def median(self, name: str) -> float:
        """The median of a contestant."""
        return statistics.median(self.figures[name])

    def ratio(self, name: str) -> float:
        """Cost of a contestant relative to ours: the median over the rounds."""
        pairs = zip(self.figures[name], self.figures[OURS], strict=True)
        return statistics.median(theirs / max(ours, 1e-9) for theirs, ours in pairs)

    def is_reached(self) -> bool:
        """Check that all goals are reached; one about a contestant that was not measured is not."""
        if not {OURS, *self.ratios} <= self.figures.keys():
            return False
        if self._meets(OURS):
            return True
        is_forbidden = bool(self.share_of_limit) and LIMIT in self.figures and not self._meets(LIMIT)
        return is_forbidden and self.ratio(LIMIT) >= self.share_of_limit

    def _meets(self, name: str) -> bool:
        """Check all goals for the figures of a contestant."""
        near = self.most is None or self.median(name) <= self.most
        return near and all(self.ratio(peer) / self.ratio_of(name) >= least for peer, least in self.ratios.items())

    def verdict(self) -> str:
        """Say whether the goals are reached, or which contestant is missing to tell."""
        missing = [name for name in self.ratios if name not in self.figures]
        return f"no {missing[0]}" if missing else "yes" if self.is_reached() else "NO"

    def ratio_of(self, name: str) -> float:
        """Cost of a contestant relative to ours; 1 for ours."""
        return 1.0 if name == OURS else self.ratio(name)

    def goal(self) -> str:
        """The goals in words."""
        parts = [] if self.most is None else [f"<= {self.most:g}"]
        return ", ".join(parts + [f"{name} >= {least:g} x" for name, least in self.ratios.items()])

    def as_dict(self) -> dict[str, Any]:
        """Everything, for the JSON file."""
        medians = {name: self.median(name) for name in self.figures}
        ratios = {name: self.ratio(name) for name in self.figures if name != OURS} if OURS in self.figures else {}
        return {**vars(self), "medians": medians, "measured_ratios": ratios, "is_reached": self.is_reached()}


def choose_ours(row: Row, layouts: Iterable[str]) -> None:
    """Let the fastest of our ``layouts`` be our figure, if any of them could be measured."""
    measured = [name for name in layouts if name in row.figures]
    if measured:
        best = min(measured, key=row.median)
        row.figures, row.skipped = {OURS: row.figures[best], **row.figures}, ""


HEADER = "| what | goal | measured (best) | others, and how many times ours | limit | reached |\n" + "|---" * 6 + "|"


def line(row: Row) -> str:
    """The row in a Markdown table under ``HEADER``: median and best of ours, ratios to the others, the limit."""
    if OURS not in row.figures:
        return f"| {row.what} | {row.goal()} | {row.skipped or 'not measured'} | | | |"
    ours = f"{row.median(OURS):.3g} {row.unit} ({min(row.figures[OURS]):.3g})"
    others = [name for name in row.figures if name not in (OURS, LIMIT)]
    against = "; ".join(f"{name} {row.median(name):.3g}: {row.ratio(name):.3g} x" for name in others)
    limit = f"{row.median(LIMIT):.3g}: {row.limit}" if LIMIT in row.figures else ""
    return f"| {row.what} | {row.goal()} | {ours} | {against} | {limit} | {row.verdict()} |"
