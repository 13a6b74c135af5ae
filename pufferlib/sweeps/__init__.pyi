from pufferlib.sweeps.launch import sweep as sweep
from pufferlib.sweeps.progress import ConsoleDisplay as ConsoleDisplay, SweepDisplay as SweepDisplay
from pufferlib.sweeps.report import write_report as write_report
from pufferlib.sweeps.result import SearchTrial as SearchTrial, SweepResult as SweepResult, load_sweep as load_sweep
from pufferlib.sweeps.spaces import Search as Search, Space as Space, SweepConfig as SweepConfig
