"""Processes that run the measurements of a comparison, each with its own Python.

Our package and PufferLib have the same name, so one process cannot import both. Separate processes also make sure that
imports and leftovers of one contestant do not affect another. Requests and answers are lines of JSON.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any


class Side:
    """Process that runs ``script --serve`` with the interpreter ``python``.

    Its working folder is a temporary one, because PufferLib 3.0.0 creates a link there when it is imported.
    """

    def __init__(self, python: str, script: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [os.path.abspath(shutil.which(python) or python), "-W", "ignore", os.path.abspath(script), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder.name,
        )

    def post(self, case: str, *args: Any) -> None:
        """Start a measurement. ``answer`` waits for its result."""
        assert self.process.stdin is not None
        print(json.dumps([case, args]), file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        """Return the result of the measurement that was started last, or None if it failed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args}: stopped; its error is above")
        return json.loads(line)

    def ask(self, case: str, *args: Any) -> Any:
        """Run the measurement ``case`` and return its result."""
        self.post(case, *args)
        return self.answer()

    def close(self) -> None:
        """Stop the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self._folder.cleanup()


class Sides:
    """Processes of a benchmark: two with our Python, and one with the Python of the peers if it is given.

    Attributes:
        seconds: Duration of a short measurement in seconds.
    """

    def __init__(self, seconds: float, script: str, peer_python: str | None = None) -> None:
        self.seconds, self._script, self._peer_python = seconds, script, peer_python
        self._opened: dict[str, Side] = {}

    def __enter__(self) -> "Sides":
        return self

    def __exit__(self, *_: object) -> None:
        for side in self._opened.values():
            side.close()

    def _side(self, name: str) -> Side:
        if name not in self._opened:
            python = self._peer_python if name == "peer" else sys.executable
            self._opened[name] = Side(python or "", self._script)
        return self._opened[name]

    def ask(self, case: str, *args: Any) -> Callable[[], Any]:
        """Return a function that measures a case."""
        return lambda: self._side("first").ask(case, *args)

    def ask_peer(self, case: str, *args: Any) -> Callable[[], Any] | None:
        """Return a function that measures a case with the Python of the peers, or None if it is not given."""
        return (lambda: self._side("peer").ask(case, *args)) if self._peer_python else None

    def both(self, case: str, *args: Any) -> Callable[[], Any]:
        """Return a function that measures a case in two processes at the same time and returns the larger figure."""

        def measure() -> float | None:
            sides = (self._side("first"), self._side("second"))
            for side in sides:
                side.post(case, *args)
            figures = [side.answer() for side in sides]
            return None if None in figures else max(figures)

        return measure


def halved(figure: float | None) -> float | None:
    """Divide the time of a step by two, for two processes that step at the same time."""
    return None if figure is None else figure / 2


def serve(cases: Mapping[str, Callable[..., Any]]) -> None:
    """Answer requests on standard input, one per line, until it is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # redirect output of packages to stderr, so that it is not read as an answer
    for line in sys.stdin:
        case, args = json.loads(line)
        try:
            outcome = cases[case](*args)
        except ImportError as error:
            print(f"{case} {args}: left out, {error}", file=sys.stderr)
            outcome = None
        except Exception:
            traceback.print_exc()
            outcome = None
        print(json.dumps(outcome), file=answers, flush=True)


def us_per_call(call: Callable[[], Any], seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the mean time of ``call`` over ``seconds`` in microseconds, after a warm-up of half that time."""
    for duration in (seconds / 2, seconds):
        count, batch, start = 0, 1, clock()
        while (elapsed := clock() - start) < duration or not count:
            for _ in range(batch):
                call()
            count += batch
            batch = min(2 * batch, 16)
    return 1e6 * elapsed / count
