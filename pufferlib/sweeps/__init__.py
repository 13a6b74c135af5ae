"""Search for settings, on Optuna: spaces, trials in worker processes, reports. ``pufferlib.sweep`` does all of it."""

from typing import TYPE_CHECKING

from pufferlib.doors import open_door

if TYPE_CHECKING:
    from pufferlib.sweeps.launch import sweep
    from pufferlib.sweeps.progress import ConsoleDisplay, SweepDisplay
    from pufferlib.sweeps.result import SearchTrial, SweepResult, load_sweep
    from pufferlib.sweeps.settings import Search, SweepConfig
    from pufferlib.sweeps.space import Space

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
]

_HOME = {
    "ConsoleDisplay": "sweeps.progress",
    "Search": "sweeps.settings",
    "SearchTrial": "sweeps.result",
    "Space": "sweeps.space",
    "SweepConfig": "sweeps.settings",
    "SweepDisplay": "sweeps.progress",
    "SweepResult": "sweeps.result",
    "load_sweep": "sweeps.result",
    "sweep": "sweeps.launch",
}

__getattr__, __dir__ = open_door(__name__, _HOME, extra="sweep")
