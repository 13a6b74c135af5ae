"""``puffer runs``: list runs and the settings that differ between them."""

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.cli.console import cell_width, note, print_table, say, style
from pufferlib.cli.options import Parser
from pufferlib.machine.commands import as_typed
from pufferlib.runs.compare import short_names, value_text
from pufferlib.runs.folder import RUNS
from pufferlib.runs.listing import RunSummary, differing_settings, find_metric, list_runs
from pufferlib.text import duration, short

__all__ = ["run"]

PROG = "puffer runs"
COLOURS = {"finished": "good", "running": "accent", "stopped": "warning", "failed": "bad"}
HEADS = ("run", "environment", "tags", "state", "score", "steps", "time")
RIGHT = ("steps", "time")
# Sort keys in descending order. Titles start with the time, so "started" shows the newest runs first.
SORTS: dict[str, Callable[[RunSummary], Any]] = {
    "started": lambda run: run.title,
    "score": lambda run: -math.inf if math.isnan(run.score) else run.score,
    "steps": lambda run: run.agent_steps,
    "time": lambda run: run.train_s,
}


def run(argv: list[str]) -> int:
    """Print a table or a JSON list of runs."""
    parser = Parser(PROG, description="List runs: state, score, steps, time, and the settings that differ.")
    parser.add_argument("envs", nargs="*", metavar="ENV", help="environments or names of runs (default: all)")
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="FOLDER", help="folder with runs (default: runs)")
    parser.add_argument("--tag", action="append", default=[], help="only runs with this tag; may be repeated")
    parser.add_argument("--sort", choices=SORTS, default="started", help="sort order (default: started)")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects, with all settings")
    parser.add_argument(
        "--metric", help="also show the last value of this metric, such as losses/entropy, and sort by it"
    )
    options = parser.parse(argv)
    found = sorted(list_runs(options.runs, options.envs, options.tag), key=SORTS[options.sort], reverse=True)
    metric = find_metric(options.metric, found) if options.metric and found else ""
    if metric:
        found.sort(key=lambda one: _nan_last(one.figures.get(metric, math.nan)), reverse=True)
    for name in {*options.envs} - {one.name for one in found}:
        registry.env_creator(name, PROG)
    if options.json:
        say(json.dumps([_object(one) for one in found], indent=2))
    elif found:
        _print(found, metric)
    else:
        which = f" of {' or '.join(options.envs)}" if options.envs else ""
        tagged = f" with the tag {' and '.join(options.tag)}" if options.tag else ""
        example = as_typed("puffer train", *options.envs[:1] or ["breakout"])
        note(f"there is no run{which}{tagged} in {options.runs}; train one: {example}")
    return 0


def _nan_last(value: float) -> float:
    return value if math.isfinite(value) else -math.inf


def _print(found: Sequence[RunSummary], metric: str) -> None:
    names = short_names(differing_settings(found))
    rows = [_cells(one) for one in found]
    heads = [*HEADS, metric] if metric else [*HEADS]
    for row, one in zip(rows, found, strict=True) if metric else ():
        value = one.figures.get(metric, math.nan)
        row.append(short(value) if math.isfinite(value) else "–")
    columns = [[value_text(one.settings.get(name)) if one.settings else "" for one in found] for name in names]
    shown = _number_that_fit(heads, [*names.values()], columns, rows)
    table = [[*row, *(column[i] for column in columns[:shown])] for i, row in enumerate(rows)]
    print_table([*heads, *[*names.values()][:shown]], table, RIGHT)
    if shown < len(names):
        left = ", ".join([*names.values()][shown:])
        say(style(f"more differing settings ({as_typed(PROG)} --json shows all): {left}", "muted"))
    say(f"Plot their curves: {style(as_typed('puffer plot RUN RUN ...'), 'accent')}")


def _number_that_fit(
    own: Sequence[str], heads: Sequence[str], columns: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]
) -> int:
    """Return the number of settings that fit the terminal, or all of them if the output is not a terminal."""
    if not sys.stdout.isatty():
        return len(heads)
    plain = [[*own], *rows]
    used = sum(max(cell_width(row[i]) for row in plain) + 2 for i in range(len(own)))
    for count, (head, column) in enumerate(zip(heads, columns, strict=True)):
        used += max(map(cell_width, [head, *column])) + 2
        if used > shutil.get_terminal_size().columns:
            return count
    return len(heads)


def _cells(one: RunSummary) -> list[str]:
    score = short(one.score) if math.isfinite(one.score) else "–"
    if one.is_evaluated and math.isfinite(one.score_std):
        score += f" ± {short(one.score_std)}"
    elif math.isfinite(one.score):
        score += " in training"
    return [
        one.title,
        registry.short_name(one.env_name) or "?",
        ", ".join(one.tags),
        style(one.state, COLOURS[one.state]),
        score,
        short(one.agent_steps),
        duration(one.train_s),
    ]


def _object(one: RunSummary) -> dict[str, Any]:
    values = dataclasses.asdict(one) | {"folder": str(one.folder), "tags": list(one.tags)}
    settings = {name: _finite(value, str(value)) for name, value in one.settings.items()}
    figures = {name: _finite(value, None) for name, value in one.figures.items()}
    return {key: _finite(value, None) for key, value in values.items()} | {"settings": settings, "figures": figures}


def _finite(value: Any, other: Any) -> Any:
    """Return ``value``, or ``other`` if it is NaN or infinite, which JSON does not support."""
    return other if isinstance(value, float) and not math.isfinite(value) else value
