"""Our pools of environments beside EnvPool, through the same calls: one table of goal, measured, ratios and limit.

    python benchmarks/envpool.py --peer-python PATH    # beside the wheel, in the environment of requirements.txt
    python benchmarks/envpool.py                       # ours alone
    python benchmarks/envpool.py --only async "one environment"
    python benchmarks/envpool.py --quick               # to see that it works

The contestants take turns, in processes of their own; figures are medians over the rounds, ratios those of one round.
A figure "of CPU" is the time of all threads of the process together, which other programs on the machine hardly change.
envpool_atari.py has the rows of Atari, whose environments are in processes of their own.
Also writes benchmarks/results/envpool.json.
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from engine import ENVPOOL
from report import LIMIT, OURS, Row
from sides import Side, Sides
from turns import Measure, parser, run

SCRIPT = str(Path(__file__).with_name("envpool_contestants.py"))
MANY = 16384
ONE_THREAD, BOUND = "one thread", "ours, copy=False"


class Bench:
    """The sides: two processes of ours, and EnvPool's, which is None where its Python is not named."""

    def __init__(self, seconds: float, peer_python: str | None) -> None:
        self.sides = Sides(seconds, SCRIPT)
        self.peer = Side(peer_python, SCRIPT) if peer_python else None

    def calls(self, case: str, *args: object) -> dict[str, Measure]:
        """Measures of a case, for each library that is there."""
        seconds = self.sides.seconds
        calls: dict[str, Measure] = {OURS: self.sides.ask(case, "ours", *args, seconds)}
        if self.peer:
            calls[ENVPOOL] = functools.partial(self.peer.ask, case, "envpool", *args, seconds)
        return calls

    def close(self) -> None:
        """End all sides."""
        self.sides.close()
        if self.peer:
            self.peer.close()


def rows(bench: Bench) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Every row, and how its contestants are measured."""
    seconds = bench.sides.seconds
    cpu, wall = "process_time", "perf_counter"
    row = Row("CartPole-v1, one environment, a call, of CPU", "us", 1.2, {ENVPOOL: 20})
    yield (
        row,
        {
            **bench.calls("sync", "CartPole-v1", 1, 1, cpu),
            BOUND: bench.sides.ask("bound", "CartPole-v1", 1, 1, cpu, seconds),
        },
    )
    for envs in (64, 256, 1024):
        row = Row(f"CartPole-v1, {envs} environments, 1 thread, a call, of CPU", "us", ratios={ENVPOOL: 30})
        bound = bench.sides.ask("bound", "CartPole-v1", envs, 1, cpu, seconds)
        yield row, {**bench.calls("sync", "CartPole-v1", envs, 1, cpu), BOUND: bound}
    for envs in (64, 256, 1024):
        row = Row(
            f"CartPole-v1, async, batches of {envs // 2} of {envs}, 1 thread, a call, of CPU",
            "us",
            ratios={ENVPOOL: 20},
        )
        yield row, bench.calls("first", "CartPole-v1", envs, envs // 2, 1, cpu)
    limit = "two processes, each with half of the environments"
    row = Row(f"CartPole-v1, {MANY} environments, 2 threads, a call", "us", ratios={ONE_THREAD: 1.7}, limit=limit)
    yield (
        row,
        {
            **bench.calls("sync", "CartPole-v1", MANY, 2, wall),
            ONE_THREAD: bench.sides.ask("sync", "ours", "CartPole-v1", MANY, 1, wall, seconds),
            LIMIT: bench.sides.both("sync", "ours", "CartPole-v1", MANY // 2, 1, wall, seconds),
        },
    )


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    command = parser(__doc__, "envpool", minutes=4, rounds=11, seconds=0.3)
    command.add_argument("--peer-python", help="interpreter of an environment that has EnvPool")
    options = command.parse_args()
    rounds, seconds = (2, 0.03) if options.quick else (options.rounds, options.seconds)
    bench = Bench(seconds, options.peer_python)
    run(options, rounds, rows(bench), bench, seconds=seconds)


if __name__ == "__main__":
    main()
