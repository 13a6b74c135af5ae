"""Learning curves of several runs in one figure, with a confidence band for runs that differ only in their seed."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pufferlib import registry
from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.paths import user_path
from pufferlib.runs.compare import find_setting, group_runs
from pufferlib.runs.folder import RUNS
from pufferlib.runs.listing import RunSummary, find_metric, select
from pufferlib.runs.report import SCORE, Series, XAxis, read_scores, smooth, unit_of
from pufferlib.runs.statistics import iqm
from pufferlib.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Band", "Curve", "Line", "band_of", "plot", "plot_curves", "read_curve"]


POINTS = 200
RESAMPLES = 2000  # at each point, enough for a plot


@dataclass(frozen=True)
class Curve:
    """Score of one run in training.

    Attributes:
        x: Agent steps or seconds, increasing.
        score: Mean score of the episodes that ended in each update.
    """

    x: Series
    score: Series

    @property
    def smooth(self) -> Series:
        """Scores, smoothed as in the learning curve of a run."""
        return smooth(self.score) if self.score.size else self.score


@dataclass(frozen=True)
class Band:
    """Summary of several curves.

    Attributes:
        x: Equidistant points.
        middle: Interquartile mean of the smoothed curves that reach each point.
        low: Lower end of its 95 % bootstrap interval. NaN if fewer than two curves reach the point.
        high: Upper end of the interval.
    """

    x: Series
    middle: Series
    low: Series
    high: Series


def read_curve(metrics: Path, x: str = "agent_steps", y: str = SCORE) -> Curve:
    """Read a curve from a ``metrics.jsonl``. Updates without the metric are left out.

    Args:
        metrics: Path of the file.
        x: Metric of the x axis: "agent_steps" or "uptime_s".
        y: Metric of the y axis.

    Raises:
        APIUsageError: The file cannot be read.
    """
    return Curve(*read_scores(metrics, x, y))


def band_of(curves: Sequence[Curve]) -> Band:
    """Summarize curves of runs that repeat each other: interquartile mean and 95 % interval at each point.

    Each point includes the curves that reach it, so an unfinished run does not shorten the band.
    """
    curves = [curve for curve in curves if curve.x.size]
    if not curves:
        nothing = np.empty(0)
        return Band(nothing, nothing, nothing, nothing)
    x = np.linspace(min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), POINTS)
    scores = np.array([np.interp(x, curve.x, curve.smooth, left=np.nan, right=np.nan) for curve in curves])
    middle, low, high = (np.full(POINTS, np.nan) for _ in range(3))
    rng = np.random.default_rng(0)
    for i in range(POINTS):
        here = scores[np.isfinite(scores[:, i]), i]
        if here.size:
            middle[i] = iqm(here)
        if here.size > 1:
            drawn = here[rng.integers(here.size, size=(RESAMPLES, here.size))]
            low[i], high[i] = np.quantile(iqm(drawn, axis=1), [0.025, 0.975])
    return Band(x, middle, low, high)


METRICS: dict[XAxis, str] = {"steps": "agent_steps", "time": "uptime_s"}

# Colours that are also distinct for colour-blind people (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00")
BASELINE = "#7f7f7f"
WIDTHS = {1: 7.2, 2: 11.5}  # width of the figure, by the number of panels in a row


@dataclass(frozen=True)
class Line:
    """Line of a plot.

    Attributes:
        label: Name in the legend.
        metrics: Path of the ``metrics.jsonl`` of each run that the line represents.
    """

    label: str
    metrics: Sequence[Path]


def plot_curves(
    path: Path,
    panels: Mapping[str, Sequence[Line]],
    x: XAxis = "steps",
    levels: Mapping[str, float] | None = None,
    metric: str = SCORE,
) -> None:
    """Plot the training score, or another metric, of many runs. The format follows from the suffix of ``path``.

    A single run is drawn as its smoothed curve over its value in each update. Several runs are drawn as their
    interquartile mean, with a band for its 95 % bootstrap interval.

    Args:
        path: Path of the image.
        panels: Lines of each panel, by title. Each environment has its own panel, because scores have different scales.
        x: Agent steps, or seconds of training.
        levels: Scores to draw as dashed lines, by label, such as that of random play. NaN draws none.
        metric: Name in ``metrics.jsonl`` of the metric to draw.

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
        _draw_panel(axes, title, lines, x, levels or {}, metric)
    for axes in list(all_axes)[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(path)


def _draw_panel(
    axes: "Axes", title: str, lines: Sequence[Line], x: XAxis, levels: Mapping[str, float], metric: str
) -> None:
    found = [(line, [read_curve(metrics, METRICS[x], metric) for metrics in line.metrics]) for line in lines]
    longest = max((float(curve.x[-1]) for _, curves in found for curve in curves if curve.x.size), default=0.0)
    unit, label = unit_of(x, longest)
    for i, (line, curves) in enumerate(found):
        colour = COLOURS[i % len(COLOURS)]
        draw = _draw_run if len(curves) == 1 else _draw_band
        draw(axes, line, curves, unit, colour)
    for (name, level), style in zip(levels.items(), itertools.cycle(("--", "-.", ":")), strict=False):
        if math.isfinite(level):
            axes.axhline(level, color=BASELINE, linestyle=style, linewidth=1.2, label=name)
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
    label = label if band.x.size else _without_episodes(label)
    axes.plot(band.x / unit, band.middle, color=colour, linewidth=2, marker=_marker(band.x), label=label)


def _marker(x: npt.NDArray[np.float64]) -> str:
    """Return a marker if there is only one point, through which no line is visible."""
    return "o" if x.size and x[0] == x[-1] else ""


def _label(line: Line, curve: Curve) -> str:
    return line.label if curve.x.size else _without_episodes(line.label)


def _without_episodes(label: str) -> str:
    return f"{label}: no episode ended"


FORMATS = (".png", ".svg", ".pdf")


def plot(
    targets: Iterable[Path | str],
    out: Path | str = "curves.png",
    *,
    x: XAxis = "steps",
    by: str = "",
    metric: str = SCORE,
    levels: Mapping[str, float] | None = None,
    runs: Path | str = RUNS,
) -> dict[str, dict[str, list[RunSummary]]]:
    """Plot the learning curves of runs. Runs that differ only in their seed become one line with a band.

    The line is the interquartile mean of the runs, the band its 95 % bootstrap interval. Each environment has its own
    panel.

    Args:
        targets: Runs, as ``select`` takes them.
        out: Path of the image: PNG, SVG or PDF by its suffix.
        x: "steps" of all agents, or "time" of training.
        by: Setting to group by. There is one line for each value, over all runs with it.
        metric: Metric of the runs, such as "environment/perf" (or just "perf") or "losses/entropy".
        levels: Scores to draw as dashed lines, by label, such as that of another library.
        runs: Folder of all runs.

    Returns:
        Runs of each line, by environment and label.

    Raises:
        APIUsageError: A folder is not a run, or ``out`` cannot be written or has another suffix.
        UnknownNameError: A target, a setting or a metric does not exist.
        BindingMissing: matplotlib is not installed.
    """
    out = user_path(out)
    if out.suffix not in FORMATS:
        raise APIUsageError(f"plot: out must end in {', '.join(FORMATS)}, got {out}")
    if not out.absolute().parent.is_dir():
        raise APIUsageError(f"plot: out must be in a folder that exists, got {out}")
    if x not in METRICS:
        raise APIUsageError(f"plot: x must be {' or '.join(METRICS)}, got {x!r}")
    chosen = select(targets, runs)
    if not chosen:
        raise APIUsageError("plot: expected runs, got none")
    metric = find_metric(metric, chosen)
    setting = find_setting(by, chosen) if by else ""
    panels: dict[str, list[RunSummary]] = {}
    names = {run.env_name: registry.short_name(run.env_name) for run in chosen}
    for run in chosen:
        is_unique = [*names.values()].count(names[run.env_name]) == 1  # files of one name may be different environments
        panels.setdefault(names[run.env_name] if is_unique else run.env_name, []).append(run)
    lines = {env: group_runs(members, setting) for env, members in panels.items()}
    pictured = {
        env: [Line(label, [run.metrics for run in alike]) for label, alike in groups.items()]
        for env, groups in lines.items()
    }
    plot_curves(out, pictured, x, levels, metric)
    return lines
