"""Folders of runs: checkpoints, metrics and results on disk, and tools to find, list and compare runs.

The public names are imported from their modules on first use, because some modules load torch or matplotlib.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.runs.compare import differing_settings
    from pufferlib.runs.curves import plot
    from pufferlib.runs.folder import Run, find_run, new_run, shipped_agent
    from pufferlib.runs.listing import RunSummary, list_runs, select
    from pufferlib.runs.report import plot_learning_curve, read_metrics
    from pufferlib.runs.seeds import TrainedSeeds
    from pufferlib.runs.statistics import bootstrap_interval, iqm
    from pufferlib.runs.tensor_file import read_tree

__all__ = [
    "Run",
    "RunSummary",
    "TrainedSeeds",
    "bootstrap_interval",
    "differing_settings",
    "find_run",
    "iqm",
    "list_runs",
    "new_run",
    "plot",
    "plot_learning_curve",
    "read_metrics",
    "read_tree",
    "select",
    "shipped_agent",
]

_HOME = {
    "Run": "runs.folder",
    "RunSummary": "runs.listing",
    "TrainedSeeds": "runs.seeds",
    "bootstrap_interval": "runs.statistics",
    "differing_settings": "runs.compare",
    "find_run": "runs.folder",
    "iqm": "runs.statistics",
    "list_runs": "runs.listing",
    "new_run": "runs.folder",
    "plot": "runs.curves",
    "plot_learning_curve": "runs.report",
    "read_metrics": "runs.report",
    "read_tree": "runs.tensor_file",
    "select": "runs.listing",
    "shipped_agent": "runs.folder",
}

__getattr__, __dir__ = open_door(__name__, _HOME)
