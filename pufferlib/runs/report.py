"""Reports of a run for people: its learning curve as an image and its result as JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.paths import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ELO",
    "SCORE",
    "Series",
    "XAxis",
    "finite",
    "last_score",
    "plot_learning_curve",
    "read_metrics",
    "read_scores",
    "smooth",
    "unit_of",
    "write_summary",
]


Series = npt.NDArray[np.float64]
XAxis = Literal["steps", "time"]

MARGINS = {"left": 0.08, "right": 0.985, "top": 0.9, "bottom": 0.13, "wspace": 0.06}  # shares of the figure
CURVE, RAW, BASELINE, EVALUATED, SPREAD = "#0b7285", "#99d1db", "#e8590c", "#5f3dc4", "#d0bfff"
SCORE = "environment/score"
EVALUATION = "evaluation/score"
ELO = "selfplay/elo"

# The smoothed line is a mean over this share of all points, centred at each point.
SMOOTHING = 0.05


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Read the rows of a ``metrics.jsonl``, ordered by agent steps. Null becomes NaN.

    An incomplete last line is left out. A run that was resumed from a checkpoint after a crash repeats some steps. Only
    the later rows count.

    Raises:
        APIUsageError: The file is missing, or a line other than the last is not JSON.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise APIUsageError(f"{path}: cannot be read: {error.strerror}; expected a run's metrics.jsonl") from error
    except UnicodeDecodeError as error:
        raise APIUsageError(f"{path}: expected lines of JSON in UTF-8, got {error}") from error
    rows: list[dict[str, float]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):  # the run was killed while it wrote this line
                break
            raise APIUsageError(f"{path}, line {number}: expected a JSON object, got {line[:40]!r}") from error
        row = {key: math.nan if value is None else float(value) for key, value in row.items()}
        while rows and rows[-1]["agent_steps"] >= row["agent_steps"]:
            rows.pop()
        rows.append(row)
    return rows


def read_scores(path: Path, x: str = "agent_steps", y: str = SCORE) -> tuple[Series, Series]:
    """Return agent steps and scores, or other metrics, of each update that has a score.

    Raises:
        APIUsageError: The file is missing, or a line other than the last is not JSON.
    """
    rows = [row for row in read_metrics(path) if math.isfinite(row.get(y, math.nan))]
    return np.array([row.get(x, math.nan) for row in rows]), np.array([row[y] for row in rows])


def plot_learning_curve(
    path: Path,
    metrics: list[dict[str, float]],
    title: str,
    random_score: float = math.nan,
    stop_score: float = math.nan,
) -> None:
    """Plot the training score, with sampled actions, over agent steps and over time as a PNG.

    Evaluations during training are points with their standard deviation. In self-play against earlier policies, the
    Elo rating is plotted instead of the score, without lines for ``random_score`` and ``stop_score``.

    Args:
        path: Path of the image.
        metrics: Rows, as ``read_metrics`` returns them. Rows without a score are left out.
        title: Title above both panels.
        random_score: Mean score of random play, drawn as a dashed line. NaN draws none.
        stop_score: Score at which training stops, drawn as a dotted line. NaN and infinity draw none.

    Raises:
        BindingMissing: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BindingMissing(f"plot_learning_curve: pictures need matplotlib; {way_to_install('train')}") from error

    # In self-play against earlier versions, the score does not rise while the agent learns, but the Elo rating does.
    key = ELO if any(ELO in row for row in metrics) else SCORE
    rows = [row for row in metrics if math.isfinite(row.get(key, math.nan))]
    score, steps, seconds = _columns(rows, key, "agent_steps", "uptime_s")
    evaluated = [row for row in metrics if math.isfinite(row.get(EVALUATION, math.nan))]
    mean, deviation, at_steps, at_seconds = _columns(
        evaluated, EVALUATION, f"{EVALUATION}_std", "agent_steps", "uptime_s"
    )
    # The object interface avoids matplotlib's global state, which may need a display. Fixed margins are drawn in two
    # thirds of the time of a layout that measures its labels.
    figure = Figure(figsize=(11, 4.5), dpi=110)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw=MARGINS)
    many, steps_label = unit_of("steps", steps.max(initial=0))
    long, time_label = unit_of("time", seconds.max(initial=0))
    _panel(left, steps / many, score, steps_label)
    _panel(right, seconds / long, score, time_label)
    for axes, x in ((left, at_steps / many), (right, at_seconds / long)):
        if mean.size:
            axes.errorbar(x, mean, deviation, fmt="o", color=EVALUATED, markersize=4, ecolor=SPREAD, label="evaluated")
        _lines(axes, *((random_score, stop_score) if key == SCORE else ()))
    left.set_ylabel("score in training (sampled actions)" if key == SCORE else "Elo rating among its earlier selves")
    if left.get_legend_handles_labels()[0]:
        left.legend(frameon=False, loc="best")
    figure.suptitle(title, fontweight="bold")
    figure.savefig(path, format="png")


def unit_of(x: XAxis, longest: float) -> tuple[float, str]:
    """Return the size and the label of a readable unit for an axis that ends at ``longest``."""
    if x == "steps":
        sizes = [(1e9, "billions"), (1e6, "millions"), (1e3, "thousands")]
        return next(((size, f"agent steps ({text})") for size, text in sizes if longest >= size), (1.0, "agent steps"))
    sizes = [(2 * 3600, "hours"), (180, "minutes")]
    text = next((text for least, text in sizes if longest > least), "seconds")
    return {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}[text], f"time of training ({text})"


def last_score(metrics: list[dict[str, float]]) -> float | None:
    """Return the last value of the smoothed curve in ``plot_learning_curve``, or None if no update had a score."""
    score = np.array([row[SCORE] for row in _with_score(metrics)])
    return float(smooth(score)[-1]) if score.size else None


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the result of a run as indented JSON. NaN and infinity become null, because JSON cannot represent them."""
    replace_file(path, json.dumps(finite(summary), indent=2, default=str) + "\n")


def finite(value: Any) -> Any:
    """Return plain data with None for NaN and infinity, which JSON cannot represent."""
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _with_score(metrics: list[dict[str, float]]) -> list[dict[str, float]]:
    return [row for row in metrics if math.isfinite(row.get(SCORE, math.nan))]


def _columns(rows: list[dict[str, float]], *keys: str) -> list[Series]:
    """Return the values of these metrics, with NaN for rows that lack one."""
    return [np.array([row.get(key, math.nan) for row in rows]) for key in keys]


def _lines(axes: "Axes", random_score: float = math.nan, stop_score: float = math.nan) -> None:
    """Draw the scores to which the curve is compared."""
    if math.isfinite(random_score):
        axes.axhline(random_score, color=BASELINE, linestyle="--", linewidth=1.2, label="random play")
    if math.isfinite(stop_score):
        axes.axhline(stop_score, color=EVALUATED, linestyle=":", linewidth=1.2, label="stop.score")


def _panel(axes: "Axes", x: Series, score: Series, label: str) -> None:
    if score.size:
        marker = "o" if score.size == 1 else ""  # a line through one point is invisible
        axes.plot(x, score, color=RAW, linewidth=0.8, label="in training, each update")
        axes.plot(x, smooth(score), color=CURVE, linewidth=2.2, marker=marker, label="in training, smoothed")
    else:
        axes.text(0.5, 0.5, "no episode ended", ha="center", va="center", transform=axes.transAxes)
    axes.set_xlabel(label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def smooth(values: Series) -> Series:
    """Return the mean over a centred window, which is shorter near the ends."""
    window = max(1, int(values.size * SMOOTHING) | 1)
    kernel = np.ones(window)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(values.size), kernel, "same")
