"""Learning curves of several runs in one picture."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.training.curves import Curve, band_of, read_curve
from pufferlib.training.episodes import SCORE
from pufferlib.training.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Line", "XAxis", "plot_curves", "unit_of"]

XAxis = Literal["steps", "time"]
METRICS: dict[XAxis, str] = {"steps": "agent_steps", "time": "uptime_s"}

# Told apart by people who see few colours too (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00")
BASELINE = "#7f7f7f"
WIDTHS = {1: 7.2, 2: 11.5}  # of the picture, by panels in a row


@dataclass(frozen=True)
class Line:
    """One line of the picture.

    Attributes:
        label: Name in the legend.
        metrics: The ``metrics.jsonl`` of each run that the line stands for.
    """

    label: str
    metrics: Sequence[Path]


def plot_curves(
    path: Path,
    panels: Mapping[str, Sequence[Line]],
    x: XAxis = "steps",
    random_score: float = math.nan,
    metric: str = SCORE,
) -> None:
    """Draw the score in training, or another metric, of many runs as a PNG, or what the suffix of ``path`` says.

    The line of one run is its smoothed curve over that of each update. The line of several is their interquartile mean,
    in a band: its 95 % bootstrap interval.

    Args:
        path: The picture.
        panels: By the title of each panel, its lines; environments, whose scores have scales of their own.
        x: Agent steps, or seconds of training.
        random_score: Score of random play, a dashed line; NaN draws none.
        metric: What is drawn, by its name in ``metrics.jsonl``.

    Raises:
        APIUsageError: A file of metrics cannot be read.
        BindingMissing: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BindingMissing(f"plot_curves: pictures need matplotlib; {way_to_install('train')}") from error

    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(WIDTHS.get(columns, 15), 4.5 * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=False):
        _draw_panel(axes, title, lines, x, random_score, metric)
    for axes in list(all_axes)[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(path)


def _draw_panel(axes: "Axes", title: str, lines: Sequence[Line], x: XAxis, random_score: float, metric: str) -> None:
    found = [(line, [read_curve(metrics, METRICS[x], metric) for metrics in line.metrics]) for line in lines]
    longest = max((float(curve.x[-1]) for _, curves in found for curve in curves if curve.x.size), default=0.0)
    unit, label = unit_of(x, longest)
    for i, (line, curves) in enumerate(found):
        colour = COLOURS[i % len(COLOURS)]
        draw = _draw_run if len(curves) == 1 else _draw_band
        draw(axes, line, curves, unit, colour)
    if math.isfinite(random_score):
        axes.axhline(random_score, color=BASELINE, linestyle="--", linewidth=1.2, label="random play")
    axes.set_title(title, fontweight="bold")
    axes.set_xlabel(label)
    axes.set_ylabel("score in training (sampled actions)" if metric == SCORE else metric)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="best", fontsize="small")


def _draw_run(axes: "Axes", line: Line, curves: Sequence[Curve], unit: float, colour: str) -> None:
    (curve,) = curves
    axes.plot(curve.x / unit, curve.score, color=colour, alpha=0.25, linewidth=0.8)
    axes.plot(
        curve.x / unit, curve.smooth, color=colour, linewidth=2, marker=_marker(curve.x), label=_label(line, curve)
    )


def _draw_band(axes: "Axes", line: Line, curves: Sequence[Curve], unit: float, colour: str) -> None:
    band = band_of(curves)
    label = f"{line.label} ({plural(len(curves), 'run')})"
    axes.fill_between(
        band.x / unit, band.low, band.high, color=colour, alpha=0.2, linewidth=2 if _marker(band.x) else 0
    )
    label = label if band.x.size else _none(label)
    axes.plot(band.x / unit, band.middle, color=colour, linewidth=2, marker=_marker(band.x), label=label)


def _marker(x: npt.NDArray[np.float64]) -> str:
    """A marker where no line can be seen, since there is one point."""
    return "o" if x.size and x[0] == x[-1] else ""


def _label(line: Line, curve: Curve) -> str:
    return line.label if curve.x.size else _none(line.label)


def _none(label: str) -> str:
    return f"{label}: no episode ended"


def unit_of(x: XAxis, longest: float) -> tuple[float, str]:
    """Size and name of the unit in which an axis that ends at ``longest`` is read best."""
    if x == "steps":
        sizes = [(1e9, "billions"), (1e6, "millions"), (1e3, "thousands")]
        name = next(((size, f"agent steps ({text})") for size, text in sizes if longest >= size), (1.0, "agent steps"))
        return name
    sizes = [(2 * 3600, "hours"), (180, "minutes")]
    text = next((text for least, text in sizes if longest > least), "seconds")
    return {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}[text], f"time of training ({text})"
