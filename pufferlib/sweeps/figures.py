"""Pictures of a search as SVG: history, curves, front, importance, slices. Each point leads to its trial."""

import html
import io
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.sweeps.result import SearchTrial, SweepResult
from pufferlib.sweeps.space import Space
from pufferlib.text import duration, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curves", "draw_front", "draw_history", "draw_importance", "draw_slices"]

FINISHED, PRUNED, BEST, FAINT = "#0b7285", "#adb5bd", "#e8590c", "#99d1db"
_COLUMNS = 4  # of slices
_POINT = re.compile(r'<a xlink:href="(#trial-(\d+))"[^>]*>')


def draw_history(result: SweepResult) -> str:
    """Draw the score of each trial, and the best score so far."""
    trials = result.trials

    def draw(figure: "Figure") -> None:
        axes = _axes(figure, "trial", "score")
        _scatter(axes, trials, lambda trial: trial.number)
        finished = [trial for trial in trials if trial.state == "finished"]
        best = [trial.score for trial in itertools.accumulate(finished, _better)]
        numbers = [trial.number for trial in finished]
        axes.step(numbers, best, where="post", color=BEST, linewidth=1.5, label="best so far")
        axes.locator_params(axis="x", integer=True)
        axes.legend(frameon=False, loc="best")

    return _svg("history", draw, trials, (7.2, 3.4))


def _better(one: SearchTrial, other: SearchTrial) -> SearchTrial:
    return other if other.merit > one.merit else one


def draw_curves(result: SweepResult) -> str:
    """Draw the scores in training over agent-steps, the best trial's in bold."""
    trials, best = result.trials, result.best

    def draw(figure: "Figure") -> None:
        axes = _axes(figure, "agent-steps", "score in training")
        for trial in sorted(trials, key=lambda trial: trial.number == best.number):
            is_best, is_pruned = trial.number == best.number, trial.state == "pruned"
            colour = BEST if is_best else PRUNED if is_pruned else FAINT
            steps, scores = list(trial.curve), list(trial.curve.values())
            axes.plot(steps, scores, ".-", color=colour, linewidth=2.4 if is_best else 1.0, markersize=5)
            if is_pruned and steps:
                axes.plot(steps[-1], scores[-1], "x", color=PRUNED, markersize=5)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        handles = [axes.plot([], [], color=colour, linewidth=2)[0] for colour in (BEST, FAINT, PRUNED)]
        axes.legend(handles, [f"trial {best.number}, the best", "others", "pruned"], frameon=False, loc="best")

    return _svg("curves", draw, trials, (7.2, 3.4))


def draw_front(result: SweepResult) -> str:
    """Draw score against cost, and the front of trials that no other beats in both."""
    kind, trials, front = result.about["cost"], result.trials, result.front

    def draw(figure: "Figure") -> None:
        axes = _axes(figure, "seconds of training" if kind == "seconds" else "agent-steps", "score")
        finished = [trial for trial in trials if trial.state == "finished"]
        _scatter(axes, finished, lambda trial: trial.cost(kind))
        costs = [trial.cost(kind) for trial in front]
        axes.step(costs, [trial.score for trial in front], where="post", color=BEST, linewidth=1.5, label="front")
        for trial in front:
            axes.annotate(
                str(trial.number), (trial.cost(kind), trial.score), (4, 4), textcoords="offset points", fontsize=8
            )
        every = [trial.cost(kind) for trial in finished]
        if min(every) > 0 and max(every) > 5 * min(every):
            _log_axis(axes)
        axes.legend(frameon=False, loc="best")

    return _svg("front", draw, trials, (7.2, 3.4))


def draw_importance(shares: Mapping[str, float]) -> str:
    """Draw the share of each setting in the differences between trials, the largest first."""

    def draw(figure: "Figure") -> None:
        axes = _axes(figure, "share of the differences in score", "")
        names = list(shares)[::-1]
        bars = axes.barh(names, [shares[name] for name in names], color=FINISHED)
        axes.bar_label(bars, [f"{shares[name]:.0%}" for name in names], padding=4, fontsize=8)
        axes.margins(x=0.12)

    return _svg("importance", draw, [], (7.2, 0.8 + 0.32 * max(2, len(shares))))


def draw_slices(result: SweepResult) -> str:
    """Draw the score over each setting that was searched."""
    trials = [trial for trial in result.trials if trial.state in ("finished", "pruned") and trial.settings]
    spaces = {key: space_of(key, table) for key, table in result.about["spaces"].items()}

    def draw(figure: "Figure") -> None:
        rows = math.ceil(len(spaces) / _COLUMNS)
        grid = figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        for axes, (key, space) in zip(grid.flat, spaces.items(), strict=False):
            _slice(axes, trials, key, space)
        for axes in grid.flat[len(spaces) :]:
            axes.set_visible(False)
        for row in grid:
            row[0].set_ylabel("score", fontsize=9)

    return _svg("slices", draw, trials, (11, 2.5 * math.ceil(len(spaces) / _COLUMNS)))


def space_of(setting: str, table: Mapping[str, Any]) -> Space:
    """The space that a study has kept as a table."""
    is_whole = isinstance(table.get("min"), int)
    bounds = float(table.get("min", 0)), float(table.get("max", 0))
    return Space(setting, table["distribution"], *bounds, tuple(table.get("choices", ())), is_whole)


def hint_of(trial: SearchTrial) -> str:
    """Text that a point shows under the pointer."""
    settings = "\n".join(f"{key} {value}" for key, value in trial.settings.items())
    took = f", {duration(trial.seconds)}" if math.isfinite(trial.seconds) else ""
    return f"trial {trial.number}, {trial.state}: score {short(trial.score)}{took}\n{settings}"


def _slice(axes: "Axes", trials: Sequence[SearchTrial], key: str, space: Space) -> None:
    _dress(axes)
    axes.set_title(key.partition(".")[2] if not key.startswith("env.") else key, fontsize=9)
    axes.tick_params(labelsize=7)
    if space.distribution == "choice":
        # The first trial has the environment's own value, which need not be a choice.
        names = list(dict.fromkeys(str(value) for value in (*space.choices, *(t.settings[key] for t in trials))))
        _scatter(axes, trials, lambda trial: names.index(str(trial.settings[key])), size=14)
        axes.set_xticks(range(len(names)), names)
        return
    _scatter(axes, trials, lambda trial: trial.settings[key], size=14)
    values = [trial.settings[key] for trial in trials]
    low, high = min([space.low, *values]), max([space.high, *values])
    if space.distribution == "logit":
        axes.set_xscale("logit", one_half="0.5")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
    elif space.is_curved and low > 0:
        _log_axis(axes, base=2 if space.distribution == "pow2" else 10)
    if space.distribution != "logit":
        axes.margins(x=0.05)
        axes.update_datalim([(low, 0.0), (high, 0.0)], updatey=False)
        axes.autoscale_view()
    else:
        axes.set_xlim(low, high)


def _log_axis(axes: "Axes", base: int = 10) -> None:
    """Let the x-axis be one of few labels, which are plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log", base=base)
    left, right = axes.get_xlim()
    between = (1.0, 2.0, 5.0) if base == 10 and right < 100 * left else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(base=base, subs=between, numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value < 10_000 else short(value))


def _scatter(
    axes: "Axes", trials: Sequence[SearchTrial], place: Callable[[SearchTrial], float], size: float = 26
) -> None:
    for state, colour in (("pruned", PRUNED), ("finished", FINISHED)):
        shown = [trial for trial in trials if trial.state == state and math.isfinite(trial.score)]
        points = axes.scatter(
            [place(trial) for trial in shown],
            [trial.score for trial in shown],
            s=size,
            c=colour,
            alpha=0.85,
            linewidths=0,
            label=state if shown else None,
            zorder=3,
        )
        points.set_urls([f"#trial-{trial.number}" for trial in shown])


def _axes(figure: "Figure", x: str, y: str) -> "Axes":
    axes = figure.subplots()
    _dress(axes)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return axes


def _dress(axes: "Axes") -> None:
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _svg(name: str, draw: Callable[["Figure"], None], trials: Sequence[SearchTrial], size: tuple[float, float]) -> str:
    """Return what ``draw`` draws as an SVG element; points of trials show their settings under the pointer."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BindingMissing(f"pufferlib.sweep: a report needs matplotlib; {way_to_install('train')}") from error
    text = io.StringIO()
    # Text as text, and the same picture as the same bytes; its own names, since a page has several.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(text, format="svg", metadata={"Date": None})
    hints = {str(trial.number): html.escape(hint_of(trial)) for trial in trials}
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    return _POINT.sub(lambda point: f'<a xlink:href="{point[1]}"><title>{hints[point[2]]}</title>', svg)
