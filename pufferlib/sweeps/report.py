"""Report of a search: ``report.html``, a page with Optuna's plots that needs no network and no other file."""

import contextlib
import html
import io
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib import registry
from pufferlib.errors import BindingMissing
from pufferlib.machine.commands import as_typed, way_to_install
from pufferlib.sweeps.result import SearchTrial, SweepResult, curve_interval
from pufferlib.sweeps.study import quiet_optuna
from pufferlib.text import duration, plural, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["write_report"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; max-width: 1120px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin: 2em 0 .3em }
p { margin: .3em 0; max-width: 72ch } .about { color: #495057 }
.pair { display: grid; gap: 0 1.5em; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)) }
.slices { display: grid; gap: 1em; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)) }
svg { width: 100%; height: auto }
pre { background: #f1f3f5; padding: .8em 1em; border-radius: 6px; white-space: pre-wrap }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .85em; white-space: nowrap }
th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #e9ecef } th { background: #fff }
tr.best td { background: #fff4e6; font-weight: 600 }
tr.pruned td, tr.interrupted td { color: #868e96 } tr.failed td { color: #c92a2a } td.reason { text-align: left }
"""
_WIDE, _SMALL = (7.2, 3.6), (3.4, 2.6)  # sizes of plots in inches
_LOGIT_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_BEST, _OTHER = "#e8590c", "#99d1db"


def write_report(result: SweepResult) -> Path:
    """Write ``report.html`` into the folder of a sweep and return its path.

    Raises:
        APIUsageError: No trial has finished.
        BindingMissing: Optuna or matplotlib is not installed.
    """
    name = registry.short_name(result.about["env_name"])
    body = "\n".join([_summary(result, name), _best(result), _plots(result), _table(result)])
    title = f"<title>Sweep of {html.escape(name)}</title>"
    head = f'<head>\n<meta charset="utf-8">\n{title}\n<style>{_STYLE}</style>\n</head>'
    page = f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'
    path = result.folder / "report.html"
    path.write_text(page, "utf-8")
    return path


def _summary(result: SweepResult, name: str) -> str:
    states = [trial.state for trial in result.trials]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    about = result.about
    goal = "the best score" if about["objective"] == "score" else f"the best score for each cost in {about['cost']}"
    searched = ", ".join(f"{space.setting} ({space})" for space in result.spaces)
    return (
        f"<h1>Sweep of {html.escape(name)}</h1>\n"
        f'<p class="about">{plural(len(states), "trial")}: {counts}. Objective: {goal}. Trial 0 has the default '
        f'settings of the environment.</p>\n<p class="about">Searched: {html.escape(searched)}.</p>'
    )


def _best(result: SweepResult) -> str:
    best = result.best
    command = f"{as_typed('puffer train', result.about['env_name'])} {result.flags(best)}"
    outcome = f"score {short(best.score)} after {duration(best.seconds)} of training"
    return (
        f"<h2>The best: trial {best.number}, {outcome}</h2>\n"
        f"<pre>{html.escape(command)}</pre>\n"
        f'<p class="about">The same settings are in <a href="best.toml">best.toml</a>, for --config.</p>'
    )


def _plots(result: SweepResult) -> str:
    with _pyplot():
        importance = _plot_importances(result) or "<p>Too few trials have finished, or all have the same score.</p>"
        return (
            '<div class="pair">\n'
            f"<div><h2>Scores of the trials</h2>{_plot_history(result)}</div>\n"
            f"<div><h2>Score and cost</h2>{_plot_front(result)}</div>\n"
            f"<div><h2>Learning curves</h2>{_plot_curves(result)}</div>\n"
            f"<div><h2>Importance of the settings</h2>{importance}</div>\n</div>\n"
            f'<h2>Score by setting</h2>\n<div class="slices">{_plot_slices(result)}</div>'
        )


@contextlib.contextmanager
def _pyplot() -> Iterator[None]:
    """Prepare pyplot for Optuna's plots, and restore its style and its backend.

    Raises:
        BindingMissing: Optuna or matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError as error:
        raise BindingMissing(f"pufferlib.sweep: a report needs matplotlib; {way_to_install('train')}") from error
    backend: Any = matplotlib.rcParams.copy()["backend"]  # a look-up without ``copy`` would choose one
    # Text stays text, and equal plots have equal bytes.
    options: Any = {"svg.fonttype": "none", "svg.hashsalt": "sweep"}
    with quiet_optuna(), warnings.catch_warnings(), matplotlib.rc_context(options):
        warnings.simplefilter("ignore")  # about plots with few points
        pyplot.switch_backend("agg")
        try:
            yield
        finally:
            pyplot.switch_backend(backend)


def _svg(axes: "Axes", size: tuple[float, float], x: str, y: str = "score") -> str:
    """Return a plot as an SVG element, and close it."""
    from matplotlib import pyplot

    figure: Any = axes.figure
    axes.set_title("")
    axes.set_title("", loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    figure.set_size_inches(size)
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", facecolor="white", metadata={"Date": None})
    pyplot.close(figure)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _target(result: SweepResult) -> dict[str, Any]:
    """Return the arguments that let a plot show the score."""
    target = (lambda trial: trial.values[0]) if result.about["objective"] != "score" else None
    return {"target": target, "target_name": "score"}


def _plot_history(result: SweepResult) -> str:
    from optuna.visualization.matplotlib import plot_optimization_history

    axes = plot_optimization_history(result.study, **_target(result))
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="best", fontsize=8)
    return _svg(axes, _WIDE, "trial")


def _plot_front(result: SweepResult) -> str:
    from optuna import create_study
    from optuna.trial import create_trial
    from optuna.visualization.matplotlib import plot_pareto_front

    # A study of one objective has no front, so the plot gets a copy with two.
    cost = result.about["cost"]
    study = create_study(directions=["minimize", result.about.get("direction", "maximize")])
    finished = [trial for trial in result.trials if trial.state == "finished"]
    study.add_trials(create_trial(values=[trial.cost(cost), trial.score]) for trial in finished)
    axes = plot_pareto_front(study)
    return _svg(axes, _WIDE, "seconds of training" if cost == "seconds" else "agent-steps")


def _plot_curves(result: SweepResult) -> str:
    from optuna.visualization.matplotlib import plot_intermediate_values

    axes, best = plot_intermediate_values(result.study), result.best.number
    for line in axes.lines:
        is_best = line.get_label() == f"Trial{best}"
        line.set(color=_BEST if is_best else _OTHER, linewidth=2.4 if is_best else 1.0, zorder=3 if is_best else 2)
    bold = [line for line in axes.lines if line.get_zorder() == 3]
    axes.legend(bold, [f"trial {best}, the best"] * len(bold), loc="best", fontsize=8)  # not one entry per trial
    interval = curve_interval(result.about["longest"])
    axes.xaxis.set_major_formatter(lambda step, _: short(step * interval))
    return _svg(axes, _WIDE, "agent-steps", "score in training")


def _plot_importances(result: SweepResult) -> str:
    """Plot the importance of each setting. Return "" if there are too few different scores."""
    from optuna.importance import PedAnovaImportanceEvaluator
    from optuna.visualization.matplotlib import plot_param_importances

    if not result.importances:
        return ""
    axes: Any = plot_param_importances(result.study, PedAnovaImportanceEvaluator(), **_target(result))
    names = {space.param_name: space.setting for space in result.spaces}
    axes.set_yticks(axes.get_yticks(), [names[label.get_text()] for label in axes.get_yticklabels()])
    axes.get_legend().remove()
    return _svg(axes, _WIDE, "share of the differences in score", "")


def _plot_slices(result: SweepResult) -> str:
    from optuna.visualization.matplotlib import plot_slice

    slices = []
    for space in result.spaces:
        axes: Any = plot_slice(result.study, [space.param_name], **_target(result))
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        if space.distribution == "logit":  # the study has its own scale for logit and pow2
            ticks = [value for value in _LOGIT_TICKS if space.contains(value)]
            axes.set_xticks([space.encode(value) for value in ticks], [f"{value:g}" for value in ticks])
        elif space.distribution in ("pow2", "int"):
            axes.locator_params(axis="x", integer=True, nbins=5)
            axes.xaxis.set_major_formatter(lambda value, _, space=space: str(space.decode(value)))
        slices.append(_svg(axes, _SMALL, space.setting.removeprefix("train.")))
    return "\n".join(slices)


def _table(result: SweepResult) -> str:
    settings = list(result.about["spaces"])
    titles = ["trial", "state", "score", "seconds", "steps", *(key.partition(".")[2] for key in settings), "run", ""]
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    best = result.best.number
    ranked = sorted(result.trials, key=lambda trial: (trial.state != "finished", -_sortable(trial.merit)))
    rows = "\n".join(_row(result, trial, settings, trial.number == best) for trial in ranked)
    return f'<h2>All trials</h2>\n<div class="wide"><table>\n<tr>{head}</tr>\n{rows}\n</table></div>'


def _row(result: SweepResult, trial: SearchTrial, settings: list[str], is_best: bool) -> str:
    kind = "best" if is_best else trial.state
    values = [str(trial.settings.get(key, "")) for key in settings]
    cells = [str(trial.number), trial.state, short(trial.score), short(trial.seconds), short(trial.steps), *values]
    text = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    run = trial.run.folder.relative_to(result.folder).as_posix()
    curve = trial.run.curve.name if trial.run.curve.exists() else ""
    link = f'<a href="{run}/{curve}">{trial.run.folder.name}</a>' if trial.run.folder.exists() else ""
    reason = html.escape(trial.reason)
    return f'<tr id="trial-{trial.number}" class="{kind}">{text}<td>{link}</td><td class="reason">{reason}</td></tr>'


def _sortable(score: float) -> float:
    return score if math.isfinite(score) else -math.inf
