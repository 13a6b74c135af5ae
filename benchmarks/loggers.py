"""Cost of loggers: breakout's training with all of them on, beside the same with metrics.jsonl alone.

    python benchmarks/loggers.py             # the share of its time that CSV, TensorBoard and W&B (offline) cost
    python benchmarks/loggers.py --rounds 2  # to see that it works

One training takes turns with them and without, so that nothing else differs; after each turn it waits until the
trackers have written what they got. CPU time counts, which other programs hardly change. The cost is that of the
calls of all loggers in an update, and of their threads in a second, since these get an update in each track.interval:
on a machine that does nothing else, both are shares of the training's time. What a turn with them uses above one
without has what they do to the caches too, but noise of several percent of a busy machine. Also writes
benchmarks/results/loggers.json.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import psutil
from report import RESULTS, machine, write

GOAL = 0.01
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


def main() -> int:
    """Measure, and say whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each")
    parser.add_argument("--updates", type=int, default=40, help="of a turn")
    options = parser.parse_args()
    from pufferlib.train.config import load_config
    from pufferlib.train.loggers import JsonlLogger, open_tracking
    from pufferlib.train.runs import Run
    from pufferlib.train.trainer import Trainer

    settings = {"train.num_threads": 1, "train.device": "cpu", "track.wandb.mode": "offline"}
    config = load_config("breakout", {**settings, "track.loggers": TRACKERS})
    with tempfile.TemporaryDirectory() as folder:
        run = Run.at(Path(folder))
        with open_tracking(config, run) as tracking, closing(Trainer(config, run.folder)) as trainer:
            trackers = Timed(tracking)
            trainer.loggers = [JsonlLogger(run.metrics), trackers]
            for _ in range(WARM_UP):
                trainer.step()
            measured = measure(trainer, trackers, options.rounds, options.updates)
    update_s = statistics.median(measured["without"])
    calls, threads, helper = (statistics.mean(measured[name]) for name in ("calls", "threads", "helper"))
    cost = calls / update_s + threads
    more = statistics.mean(a - b for a, b in zip(measured["with"], measured["without"], strict=True)) / update_s
    print(f"an update of breakout takes {update_s * 1e3:.1f} ms of CPU time with metrics.jsonl alone")
    print(f"all loggers use {cost:.2%} of the time, and W&B's own process {helper:.2%}; goal {GOAL:.0%}")
    print(f"a turn with them uses {more:+.2%} of a turn without")
    write(
        RESULTS / "loggers.json",
        {"machine": machine(), "cost": cost, "helper": helper, "more": more, "update_s": measured},
    )
    return 0 if cost <= GOAL else 1


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
    sys.exit(main())
