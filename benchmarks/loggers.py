"""Cost of loggers: training on breakout with all loggers, compared with only metrics.jsonl.

    python benchmarks/loggers.py             # share of CSV, TensorBoard and W&B (offline) in the training time
    python benchmarks/loggers.py --quick     # quick check

One training run alternates between turns with and without the loggers, so that nothing else differs. After each turn it
waits until the trackers have written their data. All times are CPU time, which other programs hardly affect.

The cost is the CPU time of all logger calls per update, plus the CPU time of their threads per second, because they
receive one update per track.interval. On an otherwise idle machine, both are shares of the training time. The
difference between turns with and without loggers also includes effects on CPU caches, but has several percent of noise
on a busy machine. Also writes benchmarks/results/loggers.json.
"""

import statistics
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import psutil
from report import OURS, Row
from turns import begin, finish, parser

GOAL = 1.0  # percent
UPDATES = 40  # per turn
WARM_UP = 20
TRACKERS = ("csv", "tensorboard", "wandb")


class Timed:
    """Logger that can be switched off, and measures the CPU time of its calls.

    Args:
        logger: Logger that receives the metrics while ``is_on``.
    """

    def __init__(self, logger: Any) -> None:
        self._logger, self.is_on, self.used_s = logger, True, 0.0

    def log(self, metrics: dict[str, float]) -> None:
        """Pass the metrics to the logger."""
        if self.is_on:
            start = time.thread_time()
            self._logger.log(metrics)
            self.used_s += time.thread_time() - start

    def close(self) -> None:
        """Do nothing, because ``open_tracking`` closes the logger."""


def main() -> None:
    """Measure and print the shares of the training time."""
    options = parser(__doc__, "loggers", minutes=5, rounds=15, seconds=0.0).parse_args()
    if options.quick:
        options.rounds = 1
    from pufferlib.runs import Run
    from pufferlib.training import JsonlLogger, Trainer, load_config, open_tracking

    before = begin(options)
    settings = {"train.num_threads": 1, "train.device": "cpu", "track.wandb.mode": "offline"}
    config = load_config("breakout", {**settings, "track.loggers": TRACKERS})
    with tempfile.TemporaryDirectory() as folder:
        run = Run.at(Path(folder))
        with open_tracking(config, run) as tracking, closing(Trainer(config, run.folder)) as trainer:
            trackers = Timed(tracking)
            trainer.loggers = [JsonlLogger(run.metrics), trackers]
            for _ in range(WARM_UP):
                trainer.step()
            measured = measure(trainer, trackers, options.rounds, UPDATES)
    row = row_of(measured)
    for name in row.figures:
        print(f"{name}: {row.median(name):.2f} % of the training's time")
    finish(options, before, {"loggers": [row]})


def row_of(measured: dict[str, list[float]]) -> Row:
    """Return the row with the shares of the loggers, of W&B's own process, and of the difference between turns."""
    update_s = statistics.median(measured["without"])
    ours = [calls / update_s + threads for calls, threads in zip(measured["calls"], measured["threads"], strict=True)]
    more = [(a - b) / update_s for a, b in zip(measured["with"], measured["without"], strict=True)]
    shares = {OURS: ours, "W&B's own process": measured["helper"], "a turn with them, beyond one without": more}
    row = Row("all loggers, of the time of breakout's training", "%", GOAL)
    row.figures = {name: [100 * share for share in each] for name, each in shares.items()}
    return row


def measure(trainer: Any, trackers: Timed, rounds: int, updates: int) -> dict[str, list[float]]:
    """Measure the CPU time of each turn.

    Returns:
        Seconds of CPU time per turn, by name. "with" and "without" are seconds of the process per update, in turns with
        and without trackers. For turns with trackers, there are also the "calls" of loggers per update, and their
        "threads" and "helper" processes per second.
    """
    measured: dict[str, list[float]] = {name: [] for name in ("with", "without", "calls", "threads", "helper")}
    for i in range(2 * rounds):
        trackers.is_on = i % 2 == i // 2 % 2  # A B B A, so that a drift in machine speed cancels
        started, start = time.monotonic(), clocks(trackers)
        for _ in range(updates):
            trainer.step()
        seconds = time.monotonic() - started
        time.sleep(WAIT_S)
        total, own, calls, helper = (after - before for after, before in zip(clocks(trackers), start, strict=True))
        measured["with" if trackers.is_on else "without"].append(total / updates)
        if trackers.is_on:
            measured["calls"].append(calls / updates)
            measured["threads"].append((total - own) / seconds)
            measured["helper"].append(helper / seconds)
    return measured


WAIT_S = 2.5  # enough for trackers that write every two seconds


def clocks(trackers: Timed) -> tuple[float, float, float, float]:
    """Return the CPU time of the process, this thread, the logger calls, and the child processes of trackers."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used += sum(process.cpu_times()[:2])
    return time.process_time(), time.thread_time(), trackers.used_s, used


if __name__ == "__main__":
    main()
