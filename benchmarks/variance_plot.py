"""Plot of variance.py, with the throughput of every contestant in percent of the limit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from report import LIMIT

WAYS = {  # labels and colors in the order of the bars: others gray, ours blue
    "SyncVectorEnv": ("Gymnasium, one process", "#d9d9d9"),
    "SB3 SubprocVecEnv": ("SB3 SubprocVecEnv", "#ababab"),
    "AsyncVectorEnv": ("Gymnasium AsyncVectorEnv", "#7a7a7a"),
    "all": ("ours, waiting for all", "#b8d4ee"),
    "all, 4 per worker": ("ours, 4 environments per worker", "#7fb0e0"),
    "first": ("ours, first finished", "#3f83c8"),
    "first, 4 per worker": ("ours, first finished, 4 per worker", "#14497f"),
}
ROW = re.compile(r"(?P<kind>\w+) (?P<mean>[\d.]+ ms) ± (?P<deviation>\d+) %, processes: (?P<processes>\d+)")
KINDS = {"loop": "steps that need a core", "sleep": "steps that sleep"}


def shares(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the throughput of every contestant in percent of the limit, by row."""
    return {
        line["what"]: {name: 100 * line["medians"][LIMIT] / us for name, us in line["medians"].items() if name != LIMIT}
        for line in lines
        if LIMIT in line["medians"]
    }


def plot(path: Path, shares: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a bar chart of ``shares`` and save it as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = {what: match.groupdict() for what in shares if (match := ROW.fullmatch(what))}
    kinds = list(dict.fromkeys((row["kind"], row["processes"]) for row in found.values()))
    means = list(dict.fromkeys(row["mean"] for row in found.values()))
    # The object-oriented interface does not use matplotlib's global state, and needs no display.
    figure = Figure(figsize=(12, 1.2 + 3 * len(kinds)), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(kinds), len(means), sharey=True, squeeze=False)
    for line, (kind, processes) in zip(panels, kinds, strict=True):
        for axes, mean in zip(line, means, strict=True):
            rows = {
                row["deviation"]: shares[what]
                for what, row in found.items()
                if (row["kind"], row["mean"]) == (kind, mean)
            }
            _panel(axes, rows)
            axes.set_title(f"{mean}, {KINDS[kind]}, {processes} processes", fontsize=10)
        line[0].set_ylabel("percent of the limit")
    for axes in panels[-1]:
        axes.set_xlabel("deviation of a step")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, format="png")


def _panel(axes: Any, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a group of bars for each deviation."""
    places, width = np.arange(len(rows)), 0.8 / len(WAYS)
    for number, (way, (label, colour)) in enumerate(WAYS.items()):
        heights = [row.get(way, 0.0) for row in rows.values()]
        axes.bar(places + (number - (len(WAYS) - 1) / 2) * width, heights, width, color=colour, label=label)
    axes.set_xticks(places, [f"{deviation} %" for deviation in rows])
    axes.axhline(100, color="#444444", linewidth=0.8, linestyle=":")
    axes.set_ylim(0, 115)
    axes.spines[["top", "right"]].set_visible(False)
