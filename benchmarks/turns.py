"""Shared command line of the benchmarks, and the measurement of contestants in turns."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from report import HEADER, OURS, RESULTS, Row, choose_ours, line, machine, write
from sides import Sides, serve
from speed import PARTS, fill_pages, keep, uncommitted

LEAST_ROUNDS = 3

Measure = Callable[[], Any]  # returns a contestant's figure, or None if it cannot be measured
Rows = Iterable[tuple[Row, Mapping[str, Measure | None]]]


def main(
    doc: str | None,
    script: str,
    rows: Callable[[Sides], Rows],
    cases: Iterable[Callable[..., Any]],
    *,
    minutes: float,
    rounds: int,
    seconds: float,
    quick: tuple[int, float] = (2, 0.03),
) -> None:
    """Run a benchmark: measure the rows in turns, print the table, write the JSON, and publish it with ``--keep``.

    Args:
        doc: Docstring of the benchmark.
        script: File of the benchmark. The measuring processes run it with ``--serve``.
        rows: Function that returns the rows, each with its contestants. A contestant that is None is left out.
        cases: Measurements that the processes can run.
        minutes: Default total time of all rows in minutes.
        rounds: Default maximum number of rounds of a row.
        seconds: Default duration of a short measurement in seconds.
        quick: Rounds and seconds for ``--quick``.
    """
    if "--serve" in sys.argv:
        return serve({case.__name__: case for case in cases})
    options = parser(doc, Path(script).stem, minutes, rounds, seconds).parse_args()
    if options.keep and Path(script).stem not in PARTS:
        raise SystemExit(f"--keep: {Path(script).name} has no table in docs/speed.md; add one to PARTS in speed.py")
    if options.quick:
        options.rounds, options.seconds = quick
    before = begin(options)
    with Sides(options.seconds, script, options.peer_python) as sides:
        done = measure(rows(sides), options.only, options.rounds, options.minutes, ours=options.ours)
    return finish(options, before, {Path(script).stem: done})


def parser(doc: str | None, name: str, minutes: float, rounds: int, seconds: float) -> argparse.ArgumentParser:
    """Create the argument parser of a benchmark. The numbers are the defaults of the options."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--minutes", type=float, default=minutes, help="approximate total time")
    made.add_argument("--rounds", type=int, default=rounds, help="maximum number of rounds per row")
    made.add_argument("--seconds", type=float, default=seconds, help="duration of a short measurement")
    made.add_argument("--only", nargs="+", default=[""], metavar="ROW", help="only rows whose name contains this")
    made.add_argument("--ours", action="store_true", help="measure only ours, as versions.py does")
    made.add_argument("--peer-python", help="interpreter with the peers of benchmarks/requirements.txt")
    made.add_argument("--results", type=Path, default=RESULTS, help=f"folder to write {name}.json to")
    made.add_argument("--keep", action="store_true", help="publish the figures: write docs/speed/ and the pages")
    made.add_argument("--quick", action="store_true", help="few short rounds, for a quick check")
    return made


def begin(options: argparse.Namespace) -> dict[str, Any]:
    """Return a description of the machine before the measurement.

    Raises:
        SystemExit: ``--keep`` is used with ``--quick``, ``--ours`` or uncommitted changes.
    """
    if options.keep and options.ours:
        raise SystemExit("--keep publishes comparisons, and --ours makes none: use only one of them")
    if options.keep and options.quick:
        raise SystemExit("--keep publishes figures, and --quick makes poor ones: use only one of them")
    if options.keep and (changed := uncommitted()):
        raise SystemExit(f"--keep publishes the measured commit, but {changed} differs from it: commit first")
    return machine()


def finish(options: argparse.Namespace, before: Mapping[str, Any], tables: Mapping[str, Sequence[Row]]) -> None:
    """Write a JSON file for each table, and publish them with ``--keep``."""
    print(f"load {before['load_1min']:.1f} before, {os.getloadavg()[0]:.1f} after, {before['cpus']} CPUs")
    settings = {"minutes": options.minutes, "rounds": options.rounds, "seconds": options.seconds}
    for name, rows in tables.items():
        results = {"machine": before, "settings": settings, "is_whole": options.only == [""]}
        results["rows"] = [row.as_dict() for row in rows]
        write(options.results / f"{name}.json", results)
        if options.keep:
            keep(name, results)
    if options.keep:
        fill_pages()


def measure(
    rows: Rows, chosen: Sequence[str], rounds: int, minutes: float, layouts: Sequence[str] = (), *, ours: bool = False
) -> list[Row]:
    """Measure the rows whose name contains one of ``chosen``, and print each when it is done.

    If ``layouts`` are given, the fastest of these contestants counts as ours. With ``ours``, no others are measured.
    """
    end = time.monotonic() + 60 * minutes
    todo = [pair for pair in rows if any(part.lower() in pair[0].what.lower() for part in chosen)]
    print(HEADER, flush=True)
    for index, (row, calls) in enumerate(todo):
        if ours:
            calls = {name: call for name, call in calls.items() if name in (OURS, *layouts)}
        left = max(0.0, end - time.monotonic())
        print(f"{index + 1} of {len(todo)}, {left:.0f} s left: {row.what}", file=sys.stderr, flush=True)
        fill(row, calls, rounds, left / (len(todo) - index))
        choose_ours(row, layouts)
        print(line(row), flush=True)
    return [row for row, _ in todo]


def fill(row: Row, calls: Mapping[str, Measure | None], rounds: int, seconds: float) -> None:
    """Measure the contestants of a row in turns for about ``seconds``. Contestants that fail are left out."""
    start = time.monotonic()
    left = {name: call for name, call in calls.items() if call is not None}
    for done in range(rounds):
        elapsed = time.monotonic() - start
        if done >= LEAST_ROUNDS and elapsed * (done + 1) / done > seconds:
            break
        for name, call in list(left.items()):
            figure = call()
            if figure is None:
                del left[name]
                row.figures.pop(name, None)
            else:
                row.figures.setdefault(name, []).append(figure)
    if OURS not in row.figures and not row.skipped:
        row.skipped = "could not be measured; the error is above"
