"""Comparison of runs: a list of them with the settings that differ, and their learning curves in one picture."""

from pufferlib.analysis.compare import differing_settings
from pufferlib.analysis.listing import RunSummary, runs, select
from pufferlib.analysis.plotting import plot

__all__ = ["RunSummary", "differing_settings", "plot", "runs", "select"]
