"""One training in two processes beside the same in one, on as many cores each: the gain of a second core.

    python benchmarks/processes.py             # Pong by NatureCNN, on two cores
    python benchmarks/processes.py --rounds 5

Needs the extras train and atari. The contestants take turns, each in processes of its own that may run on nothing but
their cores. A figure is the time of a step of one agent in the last updates. Also writes
benchmarks/results/processes.json.
"""

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import OURS, Row
from sides import Sides
from turns import Measure, main

UPDATES, FIRST = 4, 2  # of a run, and those that warm up
AGENTS, HORIZON = 8, 64
FLAGS = [
    f"--vec.num-envs={AGENTS}", "--vec.backend=Serial", f"--train.horizon={HORIZON}", "--train.minibatch-size=256",
    "--train.update-epochs=2", "--policy.name=NatureCNN", "--policy.memory=none", "--train.device=cpu",
    "--train.num-threads=1", "--eval.episodes=1", "--eval.max-steps=1", "--train.checkpoint-interval=0",
]  # fmt: skip


def agent_us(processes: int, env: str) -> float:
    """Return the microseconds of a step of one agent in a training in processes that have a core each."""
    steps = UPDATES * AGENTS * HORIZON * processes
    command = [
        sys.executable, "-c", "import sys; from pufferlib.cli import main; main(['train', *sys.argv[1:]])", env, *FLAGS,
        f"--train.processes={processes}", f"--train.total-timesteps={steps}",
    ]  # fmt: skip
    cores = sorted(os.sched_getaffinity(0))[:processes]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            command,
            cwd=folder,
            check=False,  # no episode ends in the evaluation, which is cut short
            capture_output=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        (metrics,) = Path(folder).glob("runs/*/metrics.jsonl")
        rates = [json.loads(line)["sps"] for line in metrics.read_text().splitlines()][FIRST:]
    return 1e6 / statistics.harmonic_mean(rates)


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the row, and how its contestants are measured."""
    row = Row("training of Pong in two processes on two cores", "us", ratios={"one process on one core": 1.6})
    contestants = {OURS: 2, "one process on one core": 1}
    yield row, {name: functools.partial(agent_us, number, "atari/pong") for name, number in contestants.items()}


if __name__ == "__main__":
    main(__doc__, __file__, rows, (), minutes=3, rounds=3, seconds=0.0)
