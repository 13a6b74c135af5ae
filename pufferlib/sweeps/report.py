"""The page of a search: ``report.html``, which needs no network and no other file."""

import html
import math
import warnings
from pathlib import Path

from pufferlib import registry
from pufferlib.machine.commands import as_typed
from pufferlib.sweeps import figures
from pufferlib.sweeps.result import SearchTrial, SweepResult
from pufferlib.text import duration, plural, short

__all__ = ["importance_of", "write_report"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; max-width: 1120px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin: 2em 0 .3em }
p { margin: .3em 0; max-width: 72ch } .about { color: #495057 }
.pair { display: flex; flex-wrap: wrap; gap: 1.5em } .pair > div { flex: 1 1 480px; min-width: 0 }
svg { width: 100%; height: auto } svg a:hover use { stroke: #e8590c; stroke-width: 3 }
pre { background: #f1f3f5; padding: .8em 1em; border-radius: 6px; white-space: pre-wrap }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .85em; white-space: nowrap }
th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #e9ecef } th { background: #fff }
tr.best td { background: #fff4e6; font-weight: 600 } tr:target td { background: #e3fafc }
tr.pruned td, tr.interrupted td { color: #868e96 } tr.failed td { color: #c92a2a } td.reason { text-align: left }
"""


def write_report(result: SweepResult) -> Path:
    """Write the page of a search into its folder, and return its path.

    Raises:
        APIUsageError: No trial has finished yet.
        BindingMissing: matplotlib is not installed.
    """
    name = registry.short_name(result.about["env_name"])
    body = "\n".join([_head(result, name), _best(result, name), _pictures(result), _table(result)])
    title = f"<title>Sweep of {html.escape(name)}</title>"
    head = f'<head>\n<meta charset="utf-8">\n{title}\n<style>{_STYLE}</style>\n</head>'
    page = f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'
    path = result.folder / "report.html"
    path.write_text(page, "utf-8")
    return path


def importance_of(result: SweepResult) -> dict[str, float]:
    """Share of each setting in the differences in score, the largest first; empty where trials are too few or alike."""
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    finished = [trial for trial in result.trials if trial.state == "finished"]
    if len({trial.score for trial in finished}) < 2 or len(finished) < 4:
        return {}
    target = (lambda trial: trial.values[0]) if result.about["objective"] != "score" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shares = get_param_importances(result.study, evaluator=PedAnovaImportanceEvaluator(), target=target)
    settings = {figures.space_of(key, table).key: key for key, table in result.about["spaces"].items()}
    return {settings[key]: share for key, share in shares.items() if math.isfinite(share)}


def _head(result: SweepResult, name: str) -> str:
    states = [trial.state for trial in result.trials]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    about = result.about
    goal = "the best score" if about["objective"] == "score" else f"the best score for each cost in {about['cost']}"
    searched = ", ".join(f"{key} ({figures.space_of(key, table)})" for key, table in about["spaces"].items())
    facts = f"{plural(len(states), 'trial')}: {counts}. Sought: {goal}. Trial 0 has the environment's own settings."
    return (
        f"<h1>Sweep of {html.escape(name)}</h1>\n"
        f'<p class="about">{facts}</p>\n<p class="about">Searched: {html.escape(searched)}.</p>'
    )


def _best(result: SweepResult, name: str) -> str:
    best = result.best
    command = f"{as_typed('puffer train', name)} {result.flags(best)}"
    outcome = f"score {short(best.score)} after {duration(best.seconds)} of training"
    return (
        f"<h2>The best: trial {best.number}, {outcome}</h2>\n"
        f"<pre>{html.escape(command)}</pre>\n"
        f'<p class="about">The same settings are in <a href="best.toml">best.toml</a>, for --config.</p>'
    )


def _pictures(result: SweepResult) -> str:
    shares = importance_of(result)
    importance = (
        figures.draw_importance(shares) if shares else "<p>Too few trials have finished, or all have one score.</p>"
    )
    return (
        '<p class="about">Points show their settings under the pointer, and lead to the table.</p>\n'
        '<div class="pair">\n'
        f"<div><h2>Scores of the trials</h2>{figures.draw_history(result)}</div>\n"
        f"<div><h2>Score against cost</h2>{figures.draw_front(result)}</div>\n"
        f"<div><h2>In training</h2>{figures.draw_curves(result)}</div>\n"
        f"<div><h2>Importance of the settings</h2>{importance}</div>\n</div>\n"
        f"<h2>Score over each setting</h2>\n{figures.draw_slices(result)}"
    )


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
    picture = trial.run.curve.name if trial.run.curve.exists() else ""
    link = f'<a href="{run}/{picture}">{trial.run.folder.name}</a>' if trial.run.folder.exists() else ""
    reason = html.escape(trial.reason)
    return f'<tr id="trial-{trial.number}" class="{kind}">{text}<td>{link}</td><td class="reason">{reason}</td></tr>'


def _sortable(score: float) -> float:
    return score if math.isfinite(score) else -math.inf
