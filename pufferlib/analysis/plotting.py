"""Learning curves of many runs in one picture."""

from collections.abc import Iterable
from pathlib import Path

from pufferlib import registry
from pufferlib.analysis.compare import find_setting, group_runs
from pufferlib.analysis.listing import RunSummary, find_metric, select
from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path
from pufferlib.training.curve_plot import METRICS, Line, XAxis, plot_curves
from pufferlib.training.episodes import SCORE
from pufferlib.training.runs import RUNS

__all__ = ["plot"]

FORMATS = (".png", ".svg", ".pdf")


def plot(
    targets: Iterable[Path | str],
    out: Path | str = "curves.png",
    *,
    x: XAxis = "steps",
    by: str = "",
    metric: str = SCORE,
    runs: Path | str = RUNS,
) -> dict[str, dict[str, list[RunSummary]]]:
    """Draw the learning curves of runs, those that differ in their seed alone as one line in a band.

    The line is the interquartile mean of the runs, the band its 95 % bootstrap interval. Each environment has a panel
    of its own.

    Args:
        targets: As ``select`` takes them.
        out: The picture: PNG, SVG or PDF by its suffix.
        x: "steps" of all agents, or "time" of training.
        by: A setting: one line for each of its values, over all runs that have it.
        metric: A metric of the runs: "environment/perf", "losses/entropy"; "perf" is "environment/perf".
        runs: Folder of all runs.

    Returns:
        The runs of each line, by environment and label.

    Raises:
        APIUsageError: A folder is no run, ``out`` cannot be written, or has another suffix.
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
    for run in chosen:
        panels.setdefault(registry.short_name(run.env_name), []).append(run)
    lines = {env: group_runs(members, setting) for env, members in panels.items()}
    pictured = {
        env: [Line(label, [run.metrics for run in alike]) for label, alike in groups.items()]
        for env, groups in lines.items()
    }
    plot_curves(out, pictured, x, metric=metric)
    return lines
