"""Cost of loggers: breakout's training with all of them on, beside the same with metrics.jsonl alone.

    python benchmarks/loggers.py             # the share of its time that CSV, TensorBoard and W&B (offline) cost
    python benchmarks/loggers.py --rounds 3  # to see that it works

Both trainings are in one process and take turns. CPU time counts, which other programs hardly change. Also writes
benchmarks/results/loggers.json.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import psutil
from report import RESULTS, machine, write

GOAL = 0.01
WARM_UP = 5


def main() -> int:
    """Measure, and say whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each")
    parser.add_argument("--updates", type=int, default=4, help="of a turn")
    options = parser.parse_args()
    from pufferlib.train.config import load_config
    from pufferlib.train.loggers import JsonlLogger, open_tracking
    from pufferlib.train.runs import Run
    from pufferlib.train.trainer import Trainer

    settings = {"train.num_threads": 1, "train.device": "cpu", "track.wandb.mode": "offline"}
    trackers = {"without": (), "with": ("csv", "tensorboard", "wandb")}
    times: dict[str, list[float]] = {name: [] for name in trackers}
    with ExitStack() as opened:
        trainers = {}
        for name, loggers in trackers.items():
            run = Run.at(Path(opened.enter_context(tempfile.TemporaryDirectory())))
            config = load_config("breakout", {**settings, "track.loggers": loggers})
            tracking = opened.enter_context(open_tracking(config, run))
            trainer = opened.enter_context(closing(Trainer(config, run.folder)))
            trainer.loggers = [JsonlLogger(run.metrics), tracking]
            trainers[name] = trainer
            for _ in range(WARM_UP):
                trainer.step()
        time.sleep(1)  # the threads of the trackers have nothing left to do
        helper_s = helpers_cpu_s()
        for _ in range(options.rounds):
            for name, trainer in trainers.items():
                start = time.process_time()
                for _ in range(options.updates):
                    trainer.step()
                times[name].append((time.process_time() - start) / options.updates)
        helper_s = (helpers_cpu_s() - helper_s) / (options.rounds * options.updates)
    update_s = statistics.median(times["without"])
    own = statistics.median(a - b for a, b in zip(times["with"], times["without"], strict=True)) / update_s
    helper = helper_s / update_s
    print(f"an update of breakout takes {update_s * 1e3:.1f} ms of CPU time with metrics.jsonl alone")
    print(f"all loggers cost {own:+.2%} of that, and W&B's own process {helper:+.2%}; goal {GOAL:.0%}")
    write(RESULTS / "loggers.json", {"machine": machine(), "cost": own, "helper": helper, "update_s": times})
    return 0 if own <= GOAL else 1


def helpers_cpu_s() -> float:
    """CPU time of the processes that trackers have started."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used += sum(process.cpu_times()[:2])
    return used


if __name__ == "__main__":
    sys.exit(main())
