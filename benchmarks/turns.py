"""Rows of a benchmark, measured in turns, and the command line that the benchmarks share."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from report import HEADER, OURS, RESULTS, Row, choose_ours, line, machine, write

LEAST_ROUNDS = 3

Measure = Callable[[], Any]  # a contestant's figure; None where it fails
Rows = Iterable[tuple[Row, dict[str, Measure]]]


class Closable(Protocol):
    """Contestants in processes of their own."""

    def close(self) -> None:
        """End the processes."""


def parser(doc: str | None, name: str, minutes: float, rounds: int, seconds: float = 0.0) -> argparse.ArgumentParser:
    """Make the parser of a benchmark's own options; the numbers are their defaults.

    Args:
        doc: Of the benchmark.
        name: Of the file with its figures.
        minutes: For all rows together.
        rounds: Of a row, at most.
        seconds: Of one measurement; 0 gives no such option.
    """
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--minutes", type=float, default=minutes, help="for all rows together, about")
    made.add_argument("--rounds", type=int, default=rounds, help="of a row, at most")
    if seconds:
        made.add_argument("--seconds", type=float, default=seconds, help="of one measurement")
    made.add_argument("--json", type=Path, default=RESULTS / f"{name}.json", help="file to write the figures to")
    made.add_argument("--only", nargs="+", default=[""], metavar="ROW", help="parts of the names of rows")
    made.add_argument("--quick", action="store_true", help="few short rounds: only to see that it works")
    return made


def run(options: argparse.Namespace, rounds: int, rows: Rows, *sides: Closable | None, **settings: Any) -> None:
    """Measure the rows that ``options`` choose, print the table, and write the JSON.

    Args:
        options: From ``parser``.
        rounds: Of a row, at most.
        rows: Each with what measures its contestants.
        sides: Closed at the end, whatever happens.
        settings: Kept with the figures.
    """
    before = machine()
    try:
        done = measure(rows, options.only, rounds, options.minutes)
    finally:
        for side in sides:
            if side is not None:
                side.close()
    print(f"load {before['load_1min']:.1f} before, {os.getloadavg()[0]:.1f} after, {before['cpus']} CPUs")
    kept = {"minutes": options.minutes, "rounds": rounds, **settings}
    write(options.json, {"machine": before, "settings": kept, "rows": [row.as_dict() for row in done]})


def measure(rows: Rows, chosen: Sequence[str], rounds: int, minutes: float, layouts: Sequence[str] = ()) -> list[Row]:
    """Measure the rows that have one of the ``chosen`` in their names, and print each when it is done.

    The fastest of ``layouts`` is ours, where those are contestants.
    """
    end = time.monotonic() + 60 * minutes
    todo = [pair for pair in rows if any(part.lower() in pair[0].what.lower() for part in chosen)]
    print(HEADER, flush=True)
    for index, (row, calls) in enumerate(todo):
        left = max(0.0, end - time.monotonic())
        print(f"{index + 1} of {len(todo)}, {left:.0f} s left: {row.what}", file=sys.stderr, flush=True)
        fill(row, calls, rounds, left / (len(todo) - index))
        choose_ours(row, layouts)
        print(line(row), flush=True)
    return [row for row, _ in todo]


def fill(row: Row, calls: dict[str, Measure], rounds: int, seconds: float) -> None:
    """Measure the contestants of a row in turns for about ``seconds``; those that fail are left out."""
    start = time.monotonic()
    for done in range(rounds):
        elapsed = time.monotonic() - start
        if done >= LEAST_ROUNDS and elapsed * (done + 1) / done > seconds:
            break
        for name, call in list(calls.items()):
            figure = call()
            if figure is None:
                del calls[name]
                row.figures.pop(name, None)
            else:
                row.figures.setdefault(name, []).append(figure)
    if OURS not in row.figures and not row.skipped:
        row.skipped = "could not be measured; the error is above"
