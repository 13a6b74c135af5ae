"""Progress display of a run: a live panel in a terminal, plain lines elsewhere."""

import importlib
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import psutil
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from pufferlib import registry
from pufferlib.render.html import facts
from pufferlib.runs.report import SCORE
from pufferlib.text import duration, memory, short, sparkline
from pufferlib.training.callbacks import TrainerView
from pufferlib.training.loggers import Logger

__all__ = ["Dashboard", "ProgressLines", "progress_logger"]

ACCENT = "bright_cyan"
MUTED = "bright_black"

# Redraws may take at most this share of the time, and are at least this far apart.
MAX_COST = 0.01
MIN_INTERVAL_S = 0.5
LINE_INTERVAL_S = 5.0
# Number of samples of CPU and memory between two searches for new processes.
SAMPLES_PER_SEARCH = 20
MAX_WIDTH = 110
CURVE_POINTS = 240  # in a notebook

KINDS = (
    ("Environment", "environment/"),
    ("Evaluation", "evaluation/"),
    ("Losses", "losses/"),
    ("Self-play", "selfplay/"),
)
GAP = 4


def progress_logger(trainer: TrainerView, console: Console | None = None) -> Logger:
    """Return the live dashboard if ``console`` (by default stdout) is a terminal, otherwise a logger of plain lines.

    A terminal that cannot move its cursor, with ``TERM=dumb``, gets lines too. In a notebook, the progress is part of
    the output of the cell.
    """
    console = console or Console()
    title = f"{registry.short_name(trainer.config.env_name)}, seed {trainer.config.train.seed}"
    title += f", {trainer.ranks.size} processes" if trainer.ranks.size > 1 else ""
    if console.is_jupyter:
        return NotebookProgress(title)
    is_drawn = console.is_terminal and not console.is_dumb_terminal
    return Dashboard(console, title, str(trainer.device)) if is_drawn else ProgressLines(console)


class Progress:
    """State of a run that both displays show: the latest metrics, the speed and the score."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.scores: list[float] = []
        self._origin: tuple[float, float] | None = None

    def update(self, metrics: dict[str, float]) -> None:
        """Add the metrics of an update. Metrics that are missing keep their last value."""
        self.metrics.update(metrics)
        if math.isfinite(metrics.get(SCORE, math.nan)):
            self.scores.append(metrics[SCORE])
        # A resumed run starts with steps of an earlier process. They must not count in the speed.
        self._origin = self._origin or (metrics.get("agent_steps", 0.0), metrics.get("uptime_s", 0.0))

    def get(self, key: str) -> float:
        """Return the last value of a metric, or NaN if there is none."""
        return self.metrics.get(key, math.nan)

    @property
    def score(self) -> float:
        """Last score, or NaN before the first episode has ended."""
        return self.scores[-1] if self.scores else math.nan

    @property
    def fraction(self) -> float:
        """Completed share of the run, 0 to 1."""
        total = self.metrics.get("total_agent_steps", 0.0)
        return min(1.0, self.metrics.get("agent_steps", 0.0) / total) if total else 0.0

    @property
    def left_s(self) -> float:
        """Estimated seconds left, at the mean speed of the run so far. NaN before the speed is known."""
        steps, uptime = self._origin or (0.0, 0.0)
        elapsed = self.get("uptime_s") - uptime
        rate = (self.get("agent_steps") - steps) / elapsed if elapsed > 0 else self.get("sps")
        return (self.get("total_agent_steps") - self.get("agent_steps")) / rate if rate > 0 else math.nan


class Usage:
    """CPU and memory of this process and its workers."""

    def __init__(self) -> None:
        self._processes: dict[int, psutil.Process] = {}
        self._samples = 0
        self.sample()  # psutil's percentages count from the previous call

    def sample(self) -> tuple[float, float]:
        """Return the CPU usage since the last call, in percent of one core, and the resident memory in bytes."""
        if self._samples % SAMPLES_PER_SEARCH == 0:
            self._find()
        self._samples += 1
        cpu, resident_bytes = 0.0, 0.0
        for pid, process in list(self._processes.items()):
            try:
                cpu += process.cpu_percent(None)
                resident_bytes += process.memory_info().rss
            except psutil.Error:  # the process has ended
                del self._processes[pid]
        return cpu, resident_bytes

    def _find(self) -> None:
        """Add new worker processes. This reads all of /proc."""
        parent = psutil.Process()
        for process in (parent, *parent.children(recursive=True)):
            self._processes.setdefault(process.pid, process)


class ProgressLines:
    """Logger that prints a plain line every few seconds, for pipes, log files and CI.

    Args:
        console: Console to write to.
        interval_s: Seconds between lines.
        clock: Function that returns monotonic seconds. Tests pass their own.
    """

    def __init__(
        self, console: Console, interval_s: float = LINE_INTERVAL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._interval_s = interval_s
        self._clock = clock
        self._progress = Progress()
        self._due_s = -math.inf
        self._printed = True

    def log(self, metrics: dict[str, float]) -> None:
        """Add the metrics of an update, and print a line if one is due."""
        self._progress.update(metrics)
        self._printed = False
        if self._clock() >= self._due_s:
            self._print()

    def close(self) -> None:
        """Print a last line."""
        if not self._printed:
            self._print()

    def _print(self) -> None:
        progress = self._progress
        self._console.print(
            f"{progress.fraction:4.0%}  {short(progress.get('agent_steps'))} of "
            f"{short(progress.get('total_agent_steps'))} steps, {duration(progress.left_s)} left, "
            f"{short(progress.get('sps'))} steps/s, score {short(progress.score)}",
            highlight=False,
            soft_wrap=True,
        )
        self._due_s = self._clock() + self._interval_s
        self._printed = True


class NotebookProgress:
    """Logger that shows a progress bar and the learning curve as the output of a notebook's cell.

    Args:
        title: Title of the run.
        clock: Function that returns monotonic seconds. Tests pass their own.
    """

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._display: Any = importlib.import_module("IPython.display")  # there if this is a notebook
        self._title, self._clock = title, clock
        self._progress = Progress()
        self._due_s = -math.inf
        self._cell = self._display.display(self._display.HTML(self.render()), display_id=True)

    def log(self, metrics: dict[str, float]) -> None:
        """Add the metrics of an update, and redraw if that is due."""
        self._progress.update(metrics)
        if self._clock() >= self._due_s:
            self._redraw()

    def close(self) -> None:
        """Draw the last state."""
        self._redraw()

    def render(self) -> str:
        """Return the HTML of the current state."""
        progress = self._progress
        figures = {
            "steps": f"{short(progress.get('agent_steps'))} of {short(progress.get('total_agent_steps'))}",
            "steps/s": short(progress.get("sps")),
            "left": duration(progress.left_s),
            "score": short(progress.score),
        }
        bar = f'<progress style="width:30em;max-width:100%" max="1" value="{progress.fraction:.3f}"></progress>'
        return facts(self._title, figures) + bar + _curve_svg(progress.scores)

    def _redraw(self) -> None:
        self._cell.update(self._display.HTML(self.render()))
        self._due_s = self._clock() + MIN_INTERVAL_S


def _curve_svg(scores: list[float]) -> str:
    """Draw scores as a line without axes, or return "" if there are fewer than two."""
    if len(scores) < 2:
        return ""
    scores = scores[:: math.ceil(len(scores) / CURVE_POINTS)]
    low, high = min(scores), max(scores)
    points = " ".join(
        f"{x / (len(scores) - 1) * 480:.1f},{60 - (score - low) / ((high - low) or 1.0) * 56:.1f}"
        for x, score in enumerate(scores)
    )
    return (
        f'<svg viewBox="0 0 480 64" width="480" style="max-width:100%;display:block" role="img" '
        f'aria-label="score from {short(low)} to {short(high)}">'
        f'<polyline points="{points}" fill="none" stroke="#0b7285" stroke-width="2"/></svg>'
    )


class Dashboard:
    """Logger that shows a live panel, redrawn at most twice a second and for at most one percent of the time.

    Args:
        console: Terminal to draw in.
        title: Title of the run, for example "breakout, seed 42".
        device: Device of the training. "cuda" adds the memory of the GPU.
        clock: Function that returns monotonic seconds. Tests pass their own.
    """

    def __init__(
        self, console: Console, title: str, device: str = "cpu", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title = title
        self._device = device
        self._clock = clock
        self._progress = Progress()
        self._usage = Usage()
        self._due_s = -math.inf
        first = self._panel(Text("starting ...", MUTED), console.width)
        self._live: Live | None = Live(first, console=console, auto_refresh=False)
        self._live.start(refresh=True)

    def log(self, metrics: dict[str, float]) -> None:
        """Add the metrics of an update, and redraw if that is due."""
        self._progress.update(metrics)
        if self._clock() >= self._due_s:
            self._redraw()

    def close(self) -> None:
        """Draw the last state, leave it on the screen and restore the cursor."""
        if self._live is None:
            return
        if self._progress.metrics:
            self._redraw()
        self._live.stop()
        self._live = None

    def render(self, width: int) -> RenderableType:
        """Return the panel for a terminal of ``width`` columns."""
        inner = min(width - 2, MAX_WIDTH) - 4
        # One Text instead of nested tables, which take rich four times as long.
        content = Text("\n").join([*self._bar(inner), *self._pace(inner), *self._score(inner), *self._blocks(inner)])
        return self._panel(content, width)

    def _redraw(self) -> None:
        if self._live is None:
            return
        started_s = self._clock()
        self._live.update(self.render(self._live.console.width), refresh=True)
        now_s = self._clock()
        self._due_s = now_s + max(MIN_INTERVAL_S, (now_s - started_s) / MAX_COST)

    def _panel(self, content: RenderableType, width: int) -> Panel:
        heading = Text.assemble(
            ("puffer train ", f"bold {ACCENT}"), (self._title, "bold"), (f" on {self._device}", MUTED)
        )
        # Leave room for the "^C" that a terminal echoes. A wrapped line would garble the next redraw.
        width = min(width - 2, MAX_WIDTH)
        return Panel(content, title=heading, title_align="left", border_style=ACCENT, padding=(0, 1), width=width)

    def _bar(self, width: int) -> list[Text]:
        progress = self._progress
        steps = f"{short(progress.get('agent_steps'))} of {short(progress.get('total_agent_steps'))} steps"
        label = f" {progress.fraction:4.0%}  {steps}"
        room = max(0, width - len(label))
        done = round(room * progress.fraction)
        return [Text.assemble(("━" * done, ACCENT), ("━" * (room - done), MUTED), (label, "bold"))]

    def _pace(self, width: int) -> list[Text]:
        cpu, resident_bytes = self._usage.sample()
        figures = {
            "elapsed": duration(self._progress.get("uptime_s")),
            "left": duration(self._progress.left_s),
            "steps/s": short(self._progress.get("sps")),
            "CPU": f"{cpu:.0f}%",
            "memory": memory(resident_bytes),
        }
        if self._device.startswith("cuda"):
            figures["GPU memory"] = _gpu_memory(self._device)
        lines: list[Text] = []
        for pair in (_pair(name, value, "bold") for name, value in figures.items()):
            if lines and lines[-1].cell_len + GAP + pair.cell_len <= width:
                lines[-1].append(" " * GAP).append_text(pair)
            else:
                lines.append(pair)
        return lines

    def _score(self, width: int) -> list[Text]:
        if not self._progress.scores:
            return []
        score = f"{short(self._progress.score):<8}"
        bars = sparkline(self._progress.scores, width - len(score) - len("score "))
        return [Text(), _pair("score", score, "bold green").append(bars, "green")]

    def _blocks(self, width: int) -> list[Text]:
        """Return the metrics grouped by kind, with as many groups side by side as fit."""
        blocks = [_block(title, self._figures(prefix), width) for title, prefix in KINDS]
        blocks = [block for block in [*blocks, _block("One update", self._phases(), width)] if len(block) > 1]
        lines: list[Text] = []
        while blocks:
            count = 1
            while count < len(blocks) and sum(block[0].cell_len + GAP for block in blocks[: count + 1]) - GAP <= width:
                count += 1
            row, blocks = blocks[:count], blocks[count:]
            lines.append(Text())
            for cells in itertools.zip_longest(*row):
                padded = [cell or Text(" " * block[0].cell_len) for cell, block in zip(cells, row, strict=True)]
                lines.append(Text(" " * GAP).join(padded))
        return lines

    def _figures(self, prefix: str) -> dict[str, str]:
        metrics = self._progress.metrics.items()
        return {
            key.removeprefix(prefix): short(value) for key, value in metrics if key.startswith(prefix) and key != SCORE
        }

    def _phases(self) -> dict[str, str]:
        """Return the duration of each phase of the last update, and its share."""
        metrics = self._progress.metrics.items()
        phases = {key: value for key, value in metrics if key.startswith("performance/") and key.endswith("_s")}
        total_s = sum(phases.values()) or 1.0
        return {
            key.removeprefix("performance/").removesuffix("_s"): f"{seconds * 1e3:.0f} ms {seconds / total_s:4.0%}"
            for key, seconds in phases.items()
        }


def _block(title: str, figures: dict[str, str], width: int) -> list[Text]:
    """Return a heading and one line per metric, all as wide as the longest, but at most ``width``."""
    right = max((len(value) for value in figures.values()), default=0)
    names = [_shortened(name.replace("_", " "), width - 2 - right) for name in figures]
    left = max(map(len, [title, *names]))
    lines = [Text(f"{title:<{left + 2 + right}}", f"bold {ACCENT}")]
    for name, value in zip(names, figures.values(), strict=True):
        lines.append(Text.assemble((f"{name:<{left}}  ", MUTED), f"{value:>{right}}"))
    return lines


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: max(0, width - 1)]}…"


def _pair(name: str, value: str, style: str) -> Text:
    return Text.assemble((f"{name} ", MUTED), (value, style))


def _gpu_memory(device: str) -> str:
    import torch

    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    return f"{memory(total_bytes - free_bytes)} of {memory(total_bytes)}"
