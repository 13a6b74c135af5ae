"""Progress of a search, for people: a line per worker on a terminal, one per finished trial everywhere."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.sweeps.messages import TrialPace
from pufferlib.sweeps.settings import Search
from pufferlib.text import duration, plural, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

__all__ = ["ConsoleDisplay", "SweepDisplay"]

_REDRAW_S = 0.5


class SweepDisplay:
    """Hears how a search goes, and shows nothing: to be overridden."""

    def begin(self, search: Search, folder: Path, finished: int, best: float) -> None:
        """A search begins, or goes on after so many trials, the best of which had that score; NaN if none has."""

    def start(self, worker: int, number: int, settings: dict[str, Any]) -> None:
        """A worker begins a trial."""

    def show_pace(self, worker: int, pace: TrialPace) -> None:
        """A worker tells how far its training is."""

    def finish(self, worker: int, state: str, score: float, seconds: float, reason: str) -> None:
        """The trial of a worker ended: "finished", "pruned" or "failed", for that reason."""

    def wait_for(self, hosts: Collection[str]) -> None:
        """Only trials on other machines are left."""

    def note(self, text: str) -> None:
        """Take a sentence that a person should know."""

    def tick(self) -> None:
        """Time has passed: called every second at least."""

    def close(self) -> None:
        """The search ended, or stopped; may be called twice."""


@dataclass
class _Row:
    """The trial of a worker."""

    number: int
    settings: dict[str, Any]
    pace: TrialPace = field(default_factory=lambda: TrialPace(0.0, math.nan, math.nan))


class ConsoleDisplay(SweepDisplay):
    """Lines on a console, and below them, on a terminal, one that changes for each worker.

    Args:
        console: Of rich.
    """

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._rows: dict[int, _Row] = {}
        self._live: Live | None = None
        self._drawn_s = -math.inf
        self._finished, self._wanted, self._best = 0, 0, math.nan
        self._before, self._start_s = 0, time.monotonic()
        self._own: dict[str, Any] = {}
        self._waiting: set[str] = set()
        self._is_minimized = False

    def begin(self, search: Search, folder: Path, finished: int, best: float) -> None:
        """Say what is searched."""
        self._finished, self._wanted, self._best = finished, search.sweep.trials, best
        self._is_minimized = search.sweep.direction == "minimize"
        self._before, self._start_s = finished, time.monotonic()
        self._own = {key: search.own_value(key) for key in search.spaces}
        self._say(f"{folder}: {finished} of {plural(self._wanted, 'trial')} done; searched are")
        for key, space in search.spaces.items():
            self._say(f"  {key:<24} {space}")
        if self._console.is_terminal and finished < self._wanted:
            from rich.live import Live

            self._live = Live(self.table(), console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def start(self, worker: int, number: int, settings: dict[str, Any]) -> None:
        """Show the trial in the line of its worker."""
        self._rows[worker] = _Row(number, settings)
        self._waiting = set()
        self._draw()

    def show_pace(self, worker: int, pace: TrialPace) -> None:
        """Update the line of a worker."""
        self._rows[worker].pace = pace
        self._draw()

    def finish(self, worker: int, state: str, score: float, seconds: float, reason: str) -> None:
        """Print how a trial ended."""
        row = self._rows.pop(worker)
        self._finished += 1
        took = f"{seconds:.1f} s" if seconds < 60 else duration(seconds)
        text = f"score {short(score)} in {took}" if state != "failed" else reason
        is_worse = score >= self._best if self._is_minimized else score <= self._best
        is_best = state == "finished" and not is_worse
        if is_best:
            self._best = score
        mark = ", the best so far" if is_best else ""
        head = f"trial {row.number} {'' if state == 'finished' else state + ': '}{text}{mark}"
        width = self._console.width - 2 if self._console.is_terminal else None
        self._say(f"{self._finished:>4} of {self._wanted}  {head}  {self._settings(row)}"[:width])
        self._draw()

    def wait_for(self, hosts: Collection[str]) -> None:
        """Say, once, whom it waits for."""
        if set(hosts) != self._waiting:
            self._waiting = set(hosts)
            self.note(f"no trial is left to begin; waiting for those in progress on {', '.join(sorted(hosts))}")

    def note(self, text: str) -> None:
        """Print a sentence."""
        self._say(f"note: {text}")

    def tick(self) -> None:
        """Redraw the lines when it is time."""
        self._draw()

    def close(self) -> None:
        """Take the lines of the workers away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _draw(self) -> None:
        if self._live is not None and time.monotonic() - self._drawn_s > _REDRAW_S:
            self._live.update(self.table(), refresh=True)
            self._drawn_s = time.monotonic()

    def table(self) -> "Text":
        """Return the lines of the workers, below one of the whole search."""
        from rich.text import Text

        head = f"{self._finished} of {self._wanted} trials, best score {short(self._best)}, {self._left()} left"
        lines = [Text(head, "bold")]
        for worker, row in sorted(self._rows.items()):
            pace = row.pace
            head = f"trial {row.number:<4} {pace.share:4.0%}  score {short(pace.score):>6}"
            head += f"  {duration(pace.left_s):>5} left"
            line = Text.assemble(
                (f"worker {worker}  ", "bright_black"), (head, "bright_cyan"), f"  {self._settings(row)}"
            )
            line.truncate(max(20, self._console.width - 2), overflow="ellipsis")
            lines.append(line)
        return Text("\n").join(lines)

    def _left(self) -> str:
        """Time to go, at the pace of the trials of this command."""
        done = self._finished - self._before
        pace = (time.monotonic() - self._start_s) / done if done else math.nan
        return duration(pace * (self._wanted - self._finished))

    def _settings(self, row: _Row) -> str:
        """Settings that are not the environment's own."""
        changed = {key: value for key, value in row.settings.items() if value != self._own.get(key)}
        texts = [f"{key.partition('.')[2]} {value}" for key, value in changed.items()]
        return ", ".join(texts) if texts and row.number else "the environment's own settings"
