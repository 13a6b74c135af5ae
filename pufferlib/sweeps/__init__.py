"""Search for settings with Optuna: search spaces, trials in worker processes, and reports.

Start with ``pufferlib.sweep``.
"""

from typing import TYPE_CHECKING

from pufferlib.imports import open_door

if TYPE_CHECKING:
    from pufferlib.sweeps.launch import sweep
    from pufferlib.sweeps.progress import ConsoleDisplay, SweepDisplay
    from pufferlib.sweeps.report import write_report
    from pufferlib.sweeps.result import SearchTrial, SweepResult, load_sweep
    from pufferlib.sweeps.spaces import Search, Space, SweepConfig

__all__ = [
    "ConsoleDisplay",
    "Search",
    "SearchTrial",
    "Space",
    "SweepConfig",
    "SweepDisplay",
    "SweepResult",
    "load_sweep",
    "sweep",
    "write_report",
]

_HOME = {
    "ConsoleDisplay": "sweeps.progress",
    "Search": "sweeps.spaces",
    "SearchTrial": "sweeps.result",
    "Space": "sweeps.spaces",
    "SweepConfig": "sweeps.spaces",
    "SweepDisplay": "sweeps.progress",
    "SweepResult": "sweeps.result",
    "load_sweep": "sweeps.result",
    "sweep": "sweeps.launch",
    "write_report": "sweeps.report",
}

__getattr__, __dir__ = open_door(__name__, _HOME, extra="sweep")
