"""Cost of loggers: breakout's training with all of them on, beside the same with metrics.jsonl alone.

    python benchmarks/loggers.py             # the share of its time that CSV, TensorBoard and W&B (offline) cost
    python benchmarks/loggers.py --quick     # to see that it works

One training takes turns with them and without, so that nothing else differs; after each turn it waits until the
trackers have written what they got. CPU time counts, which other programs hardly change. The cost is that of the
calls of all loggers in an update, and of their threads in a second, since these get an update in each track.interval:
on a machine that does nothing else, both are shares of the training's time. What a turn with them uses above one
without has what they do to the caches too, but noise of several percent of a busy machine. Also writes
benchmarks/results/loggers.json.
"""

import statistics
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import psutil
from report import OURS, Row
from turns import begin, finish, parser

GOAL = 1.0  # percent
UPDATES = 40  # of a turn
WARM_UP = 20
TRACKERS = ("csv", "tensorboard", "wandb")


class Timed:
    """A logger, and the CPU time of its calls.

    Args:
        logger: Gets the metrics while ``is_on``.
    """

    def __init__(self, logger: Any) -> None:
        self._logger, self.is_on, self.used_s = logger, True, 0.0

    def log(self, metrics: dict[str, float]) -> None:
        """Pass metrics on."""
        if self.is_on:
            start = time.thread_time()
            self._logger.log(metrics)
            self.used_s += time.thread_time() - start

    def close(self) -> None:
        """Do nothing: ``open_tracking`` closes it."""


def main() -> None:
    """Measure, and print the shares of the training's time."""
    options = parser(__doc__, "loggers", minutes=5, rounds=15, seconds=0.0).parse_args()
    if options.quick:
        options.rounds = 1
    from pufferlib.training import JsonlLogger, Run, Trainer, load_config, open_tracking

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
    """Return the row: what the loggers use, W&B's own process, and a turn with them beyond one without."""
    update_s = statistics.median(measured["without"])
    ours = [calls / update_s + threads for calls, threads in zip(measured["calls"], measured["threads"], strict=True)]
    more = [(a - b) / update_s for a, b in zip(measured["with"], measured["without"], strict=True)]
    shares = {OURS: ours, "W&B's own process": measured["helper"], "a turn with them, beyond one without": more}
    row = Row("all loggers, of the time of breakout's training", "%", GOAL)
    row.figures = {name: [100 * share for share in each] for name, each in shares.items()}
    return row


def measure(trainer: Any, trackers: Timed, rounds: int, updates: int) -> dict[str, list[float]]:
    """CPU time in each turn.

    Returns:
        Seconds per update of the process in turns "with" and "without" the trackers; in turns with them also those of
        the "calls" of loggers, and per second those of their "threads" and "helper" processes.
    """
    measured: dict[str, list[float]] = {name: [] for name in ("with", "without", "calls", "threads", "helper")}
    for i in range(2 * rounds):
        trackers.is_on = i % 2 == i // 2 % 2  # A B B A, so that a machine that gets slower or faster favours none
        begun, start = time.monotonic(), clocks(trackers)
        for _ in range(updates):
            trainer.step()
        seconds = time.monotonic() - begun
        time.sleep(WAIT_S)
        total, own, calls, helper = (after - before for after, before in zip(clocks(trackers), start, strict=True))
        measured["with" if trackers.is_on else "without"].append(total / updates)
        if trackers.is_on:
            measured["calls"].append(calls / updates)
            measured["threads"].append((total - own) / seconds)
            measured["helper"].append(helper / seconds)
    return measured


WAIT_S = 2.5  # in which trackers that write every two seconds have written


def clocks(trackers: Timed) -> tuple[float, float, float, float]:
    """CPU time of the process, of this thread, of the calls of the loggers, and of the trackers' own processes."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used += sum(process.cpu_times()[:2])
    return time.process_time(), time.thread_time(), trackers.used_s, used


if __name__ == "__main__":
    main()
