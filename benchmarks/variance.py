"""Throughput with unequal step times, as in the grid and the plot of the blog on PufferLib 0.5.

    python benchmarks/variance.py
    python benchmarks/variance.py --only sleep --processes 96    # more processes
    python benchmarks/variance.py --quick --only "loop 0.1 ms"   # quick check

A step takes 0.1, 1 or 10 ms on average, with a standard deviation of 0, 50 or 100 %. Each combination runs in two ways:

* loop: a step is a busy loop, which needs a core. There are as many processes as cores, at most two.
* sleep: a step sleeps, which needs no core. There are 24 processes, like on the blog's machine with 24 cores. With
  short steps, the overhead of all processes still shares the cores of this machine.

These contestants are measured in turns and in separate processes: all environments in one process, one environment per
process and waiting for all (Gymnasium, SB3, ours), ours with four environments per process, and ours with batches from
the first quarter of the processes that finish, at least one. The fastest of ours is "ours". The limit is the same
number of bare environments in separate processes that never wait. For "sleep" it is the time of one environment divided
by their number.

Also writes variance.json and variance.png into benchmarks/results/.
"""

import functools
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import toys
from contestants import random_actions, vecenv_of
from report import ASYNC, LIMIT, SUBPROC, SYNC, Row
from sides import Sides, serve, us_per_call
from turns import Measure, begin, finish, measure, parser
from variance_plot import plot, shares

MEANS, DEVIATIONS = (1e-4, 1e-3, 1e-2), (0.0, 0.5, 1.0)
ALL, ALL_4, FIRST, FIRST_4 = "all", "all, 4 per worker", "first", "first, 4 per worker"
LAYOUTS = (ALL, ALL_4, FIRST, FIRST_4)
LIBRARIES = {ASYNC: "async", SUBPROC: "subproc"}
LONGEST = 8  # factor on the measuring time for steps of 10 ms


def rows(sides: Sides, processes: dict[str, int]) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield every row with the measurements of its contestants."""
    turns = sides.ask("turns_per_s")()
    for kind, workers in processes.items():
        for mean in MEANS:
            for deviation in DEVIATIONS:
                what = f"{kind} {1e3 * mean:g} ms ± {100 * deviation:.0f} %, processes: {workers}"
                row = Row(what, "us", None, {SYNC: 1.0, ASYNC: 1.0, SUBPROC: 1.0}, "bare environments that never wait")
                yield row, contestants(sides, [kind, mean, deviation, turns], workers)


def contestants(sides: Sides, env: list[Any], workers: int) -> dict[str, Measure]:
    """Return the measurements of a step of ``env`` for every contestant."""
    kind, mean = env[:2]
    seconds = sides.seconds * (1 + (LONGEST - 1) * mean / max(MEANS))
    quarter = max(1, workers // 4)
    layouts = {ALL: (1, None), ALL_4: (4, None), FIRST: (1, quarter), FIRST_4: (4, 4 * quarter)}
    calls = {
        layout: sides.ask("step", "puffer", env, each * workers, workers, batch, seconds)
        for layout, (each, batch) in layouts.items()
    }
    for name, library in LIBRARIES.items():
        calls[name] = sides.ask("step", library, env, workers, 0, None, seconds)
    calls[SYNC] = sides.ask("step", "sync", env, 1, 0, None, seconds)
    alone = sides.ask if kind == "sleep" else sides.both
    steady = [kind, mean, 0.0, env[3]]  # without waiting, only the mean matters
    calls[LIMIT] = functools.partial(divided, alone("step", "raw", steady, 1, 0, None, seconds), workers)
    return calls


def divided(call: Measure, workers: int) -> float | None:
    """Return the result of ``call`` divided by the number of workers, which never wait for each other."""
    us = call()
    return None if us is None else us / workers


def step(library: str, env: list[Any], num_envs: int, workers: int, batch: int | None, seconds: float) -> float:
    """Return the time of a step per environment ``toys.Delayed(*env)`` in microseconds.

    Each call steps ``batch`` environments, or all if it is None.
    """
    vecenv = vecenv_of(library, functools.partial(toys.Delayed, *env), num_envs, workers, batch)
    try:
        vecenv.reset(seed=0)
        rows = itertools.cycle(random_actions(vecenv, batch or num_envs))
        return us_per_call(lambda: vecenv.step(next(rows)), seconds) / (batch or num_envs)
    finally:
        vecenv.close()


def turns_per_s() -> int:
    """Return the number of loop iterations per second."""
    return toys.turns_for(1.0)


def main() -> None:
    """Parse the command line, measure, print the table, write the JSON and draw the plot."""
    if "--serve" in sys.argv:
        return serve({case.__name__: case for case in (step, turns_per_s)})
    command = parser(__doc__, "variance", minutes=5, rounds=2, seconds=0.1)
    command.add_argument("--processes", type=int, default=24, help="number of processes for environments that sleep")
    options = command.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.02
    before, cores = begin(options), len(os.sched_getaffinity(0))
    with Sides(options.seconds, __file__) as sides:
        grid = rows(sides, {"loop": min(2, cores), "sleep": options.processes})
        done = measure(grid, options.only, options.rounds, options.minutes, LAYOUTS, ours=options.ours)
    finish(options, before, {"variance": done})
    return plot(options.results / "variance.png", shares([row.as_dict() for row in done]))


if __name__ == "__main__":
    main()
