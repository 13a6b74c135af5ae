from pufferlib.runs.curves import plot as plot
from pufferlib.runs.find import find_run as find_run, shipped_agent as shipped_agent
from pufferlib.runs.folder import Run as Run, new_run as new_run
from pufferlib.runs.listing import (
    RunList as RunList,
    RunSummary as RunSummary,
    differing_settings as differing_settings,
    list_runs as list_runs,
    select as select,
)
from pufferlib.runs.report import plot_learning_curve as plot_learning_curve, read_metrics as read_metrics
from pufferlib.runs.seeds import TrainedSeeds as TrainedSeeds
from pufferlib.runs.statistics import bootstrap_interval as bootstrap_interval, iqm as iqm
from pufferlib.runs.tensor_file import read_tree as read_tree
