"""Tests of the progress output of training: number formats, plain lines and the live panel."""

import io
import math
import re
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rich", reason="needs the extra 'train'")

import torch
from rich.console import Console

from pufferlib import text
from pufferlib.settings.config import load_config
from pufferlib.training.dashboard import MAX_COST, Dashboard, Progress, ProgressLines, Usage, progress_logger
from pufferlib.training.distributed.ranks import ALONE

NAN, INF = math.nan, math.inf


class Clock:
    """Clock that advances only when ``now`` is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def metrics(done: float, **more: float) -> dict[str, float]:
    """Return metrics of a run of a million steps at 100,000 steps/s. ``done`` is the finished share."""
    return {
        "update": 1.0,
        "agent_steps": done * 1e6,
        "total_agent_steps": 1e6,
        "uptime_s": done * 10,
        "sps": 1e5,
        "learning_rate": 1e-3,
        "performance/collect_s": 0.3,
        "performance/learn_s": 0.1,
        "losses/policy": -0.0123,
        "losses/approx_kl": 2e-5,
        "environment/score": 40.5,
        "environment/episode_length": 812.0,
        **more,
    }


def terminal(width: int = 100, height: int = 30) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None, legacy_windows=False
    )


def shown(console: Console) -> str:
    """Return everything written to ``console``, without control sequences."""
    file: Any = console.file
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"), (7, "7"), (183_000, "183k"), (999_960, "1.00M"), (1_254_000, "1.25M"), (30e6, "30.0M"),
        (2.5e9, "2.50B"), (0.0123, "0.0123"), (-0.5, "-0.500"), (40.52, "40.5"), (2e-5, "2.0e-05"),
        (NAN, "–"), (INF, "–"), (-1500, "-1.50k"),
    ],
)  # fmt: skip
def test_short_formats_numbers(value: float, expected: str) -> None:
    assert text.short(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0:00"), (5.4, "0:05"), (125, "2:05"), (3725, "1:02:05"), (NAN, "–"), (-3, "0:00")]
)
def test_duration_formats_seconds(seconds: float, expected: str) -> None:
    assert text.duration(seconds) == expected


@pytest.mark.parametrize(("size", "expected"), [(512 * 2**20, "512 MiB"), (1.5 * 2**30, "1.5 GiB")])
def test_memory_formats_bytes(size: float, expected: str) -> None:
    assert text.memory(size) == expected


def test_sparkline_scales_and_resamples() -> None:
    assert text.sparkline([0.0, 1.0], 10) == "▁█"
    assert text.sparkline([float(i) for i in range(800)], 8) == "▁▂▃▄▅▆▇█"
    assert text.sparkline([3.0, 3.0, NAN], 8) == "▁▁"
    assert text.sparkline([], 8) == text.sparkline([1.0], 0) == ""


def test_time_left_uses_speed_of_this_session() -> None:
    progress = Progress()
    assert math.isnan(progress.left_s)
    progress.update(metrics(0.8, uptime_s=100.0))  # resumed here
    assert progress.left_s == pytest.approx(2)  # from sps, until this session has measured a speed
    progress.update(metrics(0.9, uptime_s=105.0))
    assert progress.left_s == pytest.approx(5)
    assert progress.fraction == pytest.approx(0.9)


def test_progress_keeps_last_finite_score() -> None:
    progress = Progress()
    progress.update(metrics(0.1))
    progress.update(metrics(0.2, **{"environment/score": NAN}))
    assert progress.score == 40.5
    progress.update(metrics(1.2))
    assert progress.fraction == 1.0


def test_plain_lines_are_printed_at_intervals_and_on_close() -> None:
    console, clock = Console(file=io.StringIO(), width=40), Clock()
    lines = ProgressLines(console, interval_s=5, clock=clock)
    for i in range(1, 11):
        lines.log(metrics(i / 10))
        clock.now += 2
    lines.close()
    lines.close()
    printed = shown(console).splitlines()
    assert [line[:4] for line in printed] == [" 10%", " 40%", " 70%", "100%"]
    assert printed[1] == " 40%  400k of 1.00M steps, 0:06 left, 100k steps/s, score 40.5"


def test_plain_lines_do_not_repeat_last_line() -> None:
    console = Console(file=io.StringIO())
    lines = ProgressLines(console, clock=Clock())
    lines.log(metrics(1.0))
    lines.close()
    assert shown(console).count("\n") == 1


@pytest.mark.parametrize(("width", "height"), [(100, 30), (60, 20), (30, 8)])
def test_panel_shows_everything_that_fits(width: int, height: int) -> None:
    console = terminal(width, height)
    dashboard = Dashboard(console, "breakout, seed 42", clock=Clock())
    dashboard.log(metrics(0.4))
    dashboard.close()
    output = shown(console)
    assert all(len(line) <= width for line in output.splitlines())
    if width >= 60:
        for part in ("puffer train breakout, seed 42", "40%", "400k of 1.00M", "left 0:06", "score 40.5", "100k"):
            assert part in output
        assert re.search(r"policy +-0\.0123", output)
        assert re.search(r"collect +300 ms +75%", output)
        assert re.search(r"episode length +812", output)


def test_long_metric_names_are_truncated() -> None:
    console = terminal(40)
    dashboard = Dashboard(console, "breakout")
    dashboard.log(metrics(0.5, **{"environment/perf": 0.25, "environment/the_name_of_a_metric_of_some_user": 3.0}))
    dashboard.close()
    last = shown(console).rpartition("Environment")[2]
    assert re.search(r"perf +0\.250 ", last)
    assert re.search(r"the name of a [a-z ]+… +3\b", last)


def test_panel_is_redrawn_at_most_twice_a_second_and_on_close() -> None:
    console, clock = terminal(), Clock()
    dashboard = Dashboard(console, "breakout", clock=clock)
    for i in range(100):
        dashboard.log(metrics(i / 100))
        clock.now += 0.01
    assert shown(console).count("╭") == 1 + 2
    dashboard.close()
    dashboard.close()
    assert "99%" in shown(console)


def test_slow_terminal_is_redrawn_less_often() -> None:
    clock = Clock()

    class Slow(io.StringIO):
        def write(self, data: str) -> int:
            clock.now += 0.02
            return super().write(data)

    console = Console(file=Slow(), force_terminal=True, width=80, height=30, color_system=None)
    dashboard = Dashboard(console, "breakout", clock=clock)
    busy, start = 0.0, clock.now
    for _ in range(2000):
        before = clock.now
        dashboard.log(metrics(0.5))
        busy += clock.now - before
        clock.now += 0.05
    assert busy / (clock.now - start) < 2 * MAX_COST
    dashboard.close()


def test_dashboard_closes_without_metrics() -> None:
    console = terminal()
    dashboard = Dashboard(console, "breakout", clock=Clock())
    dashboard.close()
    dashboard.log(metrics(0.5))
    assert "starting" in shown(console)


def test_progress_logger_depends_on_terminal() -> None:
    trainer: Any = SimpleNamespace(config=load_config("breakout"), device=torch.device("cpu"), ranks=ALONE)
    dashboard = progress_logger(trainer, terminal())
    dashboard.close()
    assert isinstance(dashboard, Dashboard)
    assert isinstance(progress_logger(trainer, Console(file=io.StringIO())), ProgressLines)


def test_usage_measures_this_process() -> None:
    usage = Usage()
    sum(range(10**6))
    cpu, resident_bytes = usage.sample()
    assert cpu >= 0
    assert resident_bytes > 2**20
