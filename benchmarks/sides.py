"""The sides of a comparison: processes that measure when they are told to, each with its own Python.

Our package and PufferLib share a name, so they cannot live in one process; and no contestant shall
suffer from what another has imported or left behind. Requests and answers are lines of JSON.
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
    """A process that runs ``script --serve`` with the interpreter ``python``.

    It has a folder of its own to be in: PufferLib 3.0.0 leaves a link there when it is imported.
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
        """Start a measurement; ``answer`` waits for it."""
        assert self.process.stdin is not None
        print(json.dumps([case, args]), file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        """The outcome of the measurement that was started last; None where it cannot be made on this side."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args}: ended; its error is above")
        return json.loads(line)

    def ask(self, case: str, *args: Any) -> Any:
        """Measure ``case``."""
        self.post(case, *args)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self._folder.cleanup()


class Sides:
    """The processes of a benchmark: two with our Python, and one with the peers' if it is named.

    Attributes:
        seconds: Time of a short measurement.
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
        """Return a function that measures a case with the peers' Python, or None if it is not named."""
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
    """Halve the time of a step, for two processes that step at the same time."""
    return None if figure is None else figure / 2


def serve(cases: Mapping[str, Callable[..., Any]]) -> None:
    """Answer the requests on standard input, one a line, until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints must not look like an answer
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
    """Microseconds that ``call`` takes, the mean over ``seconds`` after a warm-up of half as many."""
    for duration in (seconds / 2, seconds):
        count, batch, start = 0, 1, clock()
        while (elapsed := clock() - start) < duration or not count:
            for _ in range(batch):
                call()
            count += batch
            batch = min(2 * batch, 16)
    return 1e6 * elapsed / count
