"""One training in two processes beside the same in one, on as many cores each: the gain of a second core.

    python benchmarks/processes.py             # Pong by NatureCNN, on two cores
    python benchmarks/processes.py --rounds 5

Needs the extras train and atari. The contestants take turns, each in processes of its own that may run on nothing but
their cores; figures are steps per second of the last updates, and the ratio is the median over the rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

UPDATES, FIRST = 4, 2  # of a run, and those that warm up
AGENTS, HORIZON = 8, 64
FLAGS = [
    f"--vec.num-envs={AGENTS}", "--vec.backend=Serial", f"--train.horizon={HORIZON}", "--train.minibatch-size=256",
    "--train.update-epochs=2", "--policy.name=NatureCNN", "--policy.memory=none", "--train.device=cpu",
    "--train.num-threads=1", "--eval.episodes=1", "--eval.max-steps=1", "--train.checkpoint-interval=0",
]  # fmt: skip


def steps_per_s(processes: int, env: str) -> float:
    """Agent-steps per second of a training in so many processes, each with a core of its own."""
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
    return statistics.harmonic_mean(rates)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--env", default="atari/pong")
    options = parser.parse_args()
    ratios = []
    for _ in range(options.rounds):
        one, two = steps_per_s(1, options.env), steps_per_s(2, options.env)
        ratios.append(two / one)
        print(f"one process on one core {one:,.0f} steps/s, two on two {two:,.0f}: {two / one:.2f} times", flush=True)
    print(f"median {statistics.median(ratios):.2f} times, goal 1.6")


if __name__ == "__main__":
    main()
