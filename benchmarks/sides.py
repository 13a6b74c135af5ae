"""The sides of a comparison: processes that measure when they are told to, each with its own Python.

Our package and PufferLib share a name, so they cannot live in one process; and no contestant shall
suffer from what another has imported or left behind. Requests and answers are lines of JSON.
"""

import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
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
    """Two processes that run ``script``, with our Python; the second is for what takes two cores.

    Attributes:
        seconds: Of a short measurement.
    """

    def __init__(self, seconds: float, script: str) -> None:
        self.first, self.second = Side(sys.executable, script), Side(sys.executable, script)
        self.seconds = seconds

    def ask(self, case: str, *args: Any) -> Callable[[], Any]:
        """To be called: measures a case."""
        return functools.partial(self.first.ask, case, *args)

    def both(self, case: str, *args: Any) -> Callable[[], Any]:
        """To be called: the slower of two processes that measure the same at the same time."""

        def measure() -> float | None:
            for side in (self.first, self.second):
                side.post(case, *args)
            figures = [side.answer() for side in (self.first, self.second)]
            return None if None in figures else max(figures)

        return measure

    def close(self) -> None:
        """End them."""
        self.first.close()
        self.second.close()


def halved(figure: float | None) -> float | None:
    """Halve the time of a step, for two processes that step at the same time."""
    return None if figure is None else figure / 2


def import_peer(name: str) -> Any:
    """Import a package that has the name of a file of this folder."""
    here, path = Path(__file__).parent.resolve(), sys.path[:]
    sys.path[:] = [folder for folder in path if Path(folder).resolve() != here]
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = path


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
