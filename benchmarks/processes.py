"""Speed of training in two processes on two cores, compared with one process on one core.

    python benchmarks/processes.py             # Pong with NatureCNN on two cores
    python benchmarks/processes.py --rounds 5

Needs the extras train and atari. The contestants are measured in turns, in separate processes that are pinned to their
cores. A figure is the time per step of one agent, averaged over the last updates. Also writes
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

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import OURS, Row
from sides import Sides
from turns import Measure, main

UPDATES, FIRST = 4, 2  # updates of a run, and the number of warm-up updates
AGENTS, HORIZON = 8, 64
FLAGS = [
    f"--vec.num-envs={AGENTS}", "--vec.backend=Serial", f"--train.horizon={HORIZON}", "--train.minibatch-size=256",
    "--train.update-epochs=2", "--policy.name=NatureCNN", "--policy.memory=none", "--train.device=cpu",
    "--train.num-threads=1", "--eval.episodes=1", "--eval.max-steps=1", "--train.checkpoint-interval=0",
]  # fmt: skip


def agent_us(processes: int, env: str) -> float:
    """Return the time of a step of one agent in microseconds, with one core per process."""
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
            check=False,  # the evaluation is too short for an episode to end, which is an error
            capture_output=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        (metrics,) = Path(folder).glob("runs/*/metrics.jsonl")
        rates = [json.loads(line)["sps"] for line in metrics.read_text().splitlines()][FIRST:]
    return 1e6 / statistics.harmonic_mean(rates)


def rows(sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the row with the measurements of its contestants."""
    row = Row("training of Pong in two processes on two cores", "us", ratios={"one process on one core": 1.6})
    contestants = {OURS: 2, "one process on one core": 1}
    yield row, {name: functools.partial(agent_us, number, "atari/pong") for name, number in contestants.items()}


if __name__ == "__main__":
    main(__doc__, __file__, rows, (), minutes=3, rounds=3, seconds=0.0)
