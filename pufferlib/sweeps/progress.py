"""Progress of a search in a terminal: one line per worker, and one per finished trial."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.sweeps.spaces import Search, setting_value
from pufferlib.sweeps.workers import TrialPace
from pufferlib.text import duration, plural, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

__all__ = ["ConsoleDisplay", "SweepDisplay"]

_REDRAW_S = 0.5


class SweepDisplay:
    """Base class of displays. It shows nothing, and subclasses override its methods."""

    def begin(self, search: Search, folder: Path, finished: int, best: float) -> None:
        """Start the display of a new or resumed search.

        Args:
            search: Description of the search.
            folder: Folder of the sweep.
            finished: Number of finished trials.
            best: Best score so far, or NaN.
        """

    def start(self, worker: int, number: int, settings: dict[str, Any]) -> None:
        """Show that a worker starts trial ``number`` with these settings."""

    def show_pace(self, worker: int, pace: TrialPace) -> None:
        """Show the progress of a worker's trial."""

    def finish(self, worker: int, state: str, score: float, seconds: float, reason: str) -> None:
        """Show the end of a worker's trial.

        Args:
            worker: Index of the worker.
            state: "finished", "pruned" or "failed".
            score: Score, or NaN.
            seconds: Time of training, or NaN.
            reason: Reason of the failure, or "".
        """

    def wait_for(self, hosts: Collection[str]) -> None:
        """Show that only trials on other machines are left."""

    def note(self, text: str) -> None:
        """Show a message."""

    def tick(self) -> None:
        """Redraw if necessary. The search calls this at least once a second."""

    def close(self) -> None:
        """Close the display. It may be called twice."""


@dataclass
class _Row:
    """Running trial of a worker."""

    number: int
    settings: dict[str, Any]
    pace: TrialPace = field(default_factory=lambda: TrialPace(0.0, math.nan, math.nan))


class ConsoleDisplay(SweepDisplay):
    """Display on a console. A terminal also shows a line for each worker below the others.

    Args:
        console: Console to print on.
    """

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._rows: dict[int, _Row] = {}
        self._live: Live | None = None
        self._drawn_s = -math.inf
        self._finished, self._total, self._best = 0, 0, math.nan
        self._finished_before, self._start_s = 0, time.monotonic()
        self._defaults: dict[str, Any] = {}
        self._hosts: set[str] = set()
        self._is_minimized = False

    def begin(self, search: Search, folder: Path, finished: int, best: float) -> None:
        """Print the search spaces, and show the lines of the workers."""
        self._finished, self._total, self._best = finished, search.sweep.trials, best
        self._is_minimized = search.sweep.direction == "minimize"
        self._finished_before, self._start_s = finished, time.monotonic()
        self._defaults = {key: setting_value(search.base, key) for key in search.spaces}
        self._print(f"{folder}: {finished} of {plural(self._total, 'trial')} done; searched are")
        for key, space in search.spaces.items():
            self._print(f"  {key:<24} {space}")
        if self._console.is_terminal and finished < self._total:
            from rich.live import Live

            self._live = Live(self.table(), console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def start(self, worker: int, number: int, settings: dict[str, Any]) -> None:
        """Show the trial in the line of its worker."""
        self._rows[worker] = _Row(number, settings)
        self._hosts = set()
        self.tick()

    def show_pace(self, worker: int, pace: TrialPace) -> None:
        """Update the line of a worker."""
        self._rows[worker].pace = pace
        self.tick()

    def finish(self, worker: int, state: str, score: float, seconds: float, reason: str) -> None:
        """Print the result of a trial."""
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
        self._print(f"{self._finished:>4} of {self._total}  {head}  {self._settings(row)}"[:width])
        self.tick()

    def wait_for(self, hosts: Collection[str]) -> None:
        """Print the names of the other machines when they change."""
        if set(hosts) != self._hosts:
            self._hosts = set(hosts)
            self.note(f"no trial is left to begin; waiting for those in progress on {', '.join(sorted(hosts))}")

    def note(self, text: str) -> None:
        """Print a message."""
        self._print(f"note: {text}")

    def tick(self) -> None:
        """Redraw the lines of the workers twice a second."""
        if self._live is not None and time.monotonic() - self._drawn_s > _REDRAW_S:
            self._live.update(self.table(), refresh=True)
            self._drawn_s = time.monotonic()

    def close(self) -> None:
        """Remove the lines of the workers."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def table(self) -> "Text":
        """Return the line of the whole search, and one line per worker."""
        from rich.text import Text

        head = f"{self._finished} of {self._total} trials, best score {short(self._best)}, {self._left()} left"
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

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _left(self) -> str:
        """Return the remaining time, estimated from the trials of this command."""
        done = self._finished - self._finished_before
        pace = (time.monotonic() - self._start_s) / done if done else math.nan
        return duration(pace * (self._total - self._finished))

    def _settings(self, row: _Row) -> str:
        """Return the settings that differ from the environment's defaults."""
        changed = {key: value for key, value in row.settings.items() if value != self._defaults.get(key)}
        texts = [f"{key.partition('.')[2]} {value}" for key, value in changed.items()]
        return ", ".join(texts) if texts and row.number else "the environment's own settings"
