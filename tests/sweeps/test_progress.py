"""Progress of a search in a terminal."""

import io
import re

from rich.console import Console

from pufferlib.settings.config import load_config
from pufferlib.sweeps import ConsoleDisplay
from pufferlib.sweeps.spaces import load_search
from pufferlib.sweeps.workers import TrialPace


def test_console_shows_workers_and_finished_trials():
    console = Console(width=200, record=True, force_terminal=True, file=io.StringIO())
    display = ConsoleDisplay(console)
    base = load_config("squared")
    search = load_search(base, {}, [], {"only": "train.gamma", "trials": 3})
    display.begin(search, "sweeps/squared", 1, 0.5)
    display.start(0, 0, {"train.gamma": base.train.gamma})
    display.start(1, 4, {"train.gamma": 0.8})
    display.show_pace(1, TrialPace(0.25, 0.7, 90.0))
    table = str(display.table())
    assert "1 of 3 trials, best score 0.500" in table
    assert re.search(r"worker 1  trial 4     25%  score  0.700   1:30 left  gamma 0.8", table)
    assert "the environment's own settings" in table
    display.finish(1, "finished", 0.8, 3.0, "")
    display.finish(0, "failed", float("nan"), float("nan"), "no memory")
    display.close()
    printed = console.export_text()
    assert "2 of 3  trial 4 score 0.800 in 3.0 s, the best so far  gamma 0.8" in printed
    assert "3 of 3  trial 0 failed: no memory" in printed
