"""Speed of ``puffer board``: first paint with many runs, and the delay of a new point.

    python -m benchmarks.board
    python -m benchmarks.board --runs 200 --points 2000 --repeat 5

Makes runs of several seeds with metrics like those of a training, serves them, and opens the page in Chromium without a
window. Needs Debian's chromium-headless-shell.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from pufferlib.settings.config import load_config
from pufferlib.web.board import Board
from pufferlib.web.server import Server
from tests.browser import Browser

HEAD_START_S = 2.0  # between the start of the server and of the page, in which a user opens the address
SEEDS = 5  # runs of a group
STEPS = 16_384  # agent steps of an update
NAMES = ("policy", "value", "entropy", "approx_kl", "clip_fraction", "explained_variance")
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# Milliseconds after the start of the page at which the table, and all curves that it shows first, are drawn.
DRAWN = """(() => {
  if (window.drawnAt) return window.drawnAt;
  const rows = document.querySelectorAll("#table tbody tr").length;
  const lines = document.querySelectorAll(".legend li").length;
  const isRead = !document.querySelector(".note")?.textContent;
  if (rows && lines && isRead) window.drawnAt = performance.now();
  return window.drawnAt ?? 0;
})()"""


def make_runs(folder: Path, runs: int, points: int) -> list[Path]:
    """Make finished runs in groups of several seeds, and return their folders."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(runs):
        group, seed = divmod(number, SEEDS)
        run = folder / f"20260101-{group:06}-breakout" / f"seed-{seed}"
        run.mkdir(parents=True)
        settings = {
            "train.seed": seed,
            "train.learning_rate": 0.001 * (1 + group),
            "train.total_timesteps": points * STEPS,
        }
        load_config("breakout", settings).save(run / "config.toml")
        scores = 10 * (1 - np.exp(-np.arange(points) / 400)) + rng.normal(0, 1, points)
        (run / "metrics.jsonl").write_text("".join(row(i + 1, score) for i, score in enumerate(scores)))
        made.append(run)
    return made


def row(update: int, score: float) -> str:
    """Return a line of metrics of the length that a training writes."""
    losses = {f"losses/{name}": score / (3 + i) for i, name in enumerate(NAMES)}
    figures = {"environment/score": score, "environment/perf": score / 100, "environment/episode_length": score * 41.7}
    head = {
        "update": update,
        "agent_steps": update * STEPS,
        "total_agent_steps": 10**9,
        "uptime_s": update / 7,
        "sps": 1e5 / 7,
    }
    return json.dumps({**head, "learning_rate": 0.001 / 3, "performance/collect_s": 1 / 11, **losses, **figures}) + "\n"


def measure_page(url: str, choice: str) -> tuple[float, float]:
    """Return the milliseconds until the first paint, and until table and curves are complete."""
    with Browser(width=1440, height=900) as page:
        page.open(url + choice)
        drawn = page.wait_for(DRAWN, 60)
        return float(page.evaluate(PAINTED)), float(drawn)


def measure_delay(url: str, run: Path, points: int, repeat: int) -> list[float]:
    """Return the seconds from writing an update of a run until the end of its curve in the page."""
    delays = []
    with Browser(width=1440, height=900) as page:
        page.open(f"{url}#runs={run.parent.name}/{run.name}&seeds=0&smoothing=0")
        page.wait_for("document.querySelector('.legend b') !== null")
        for i in range(repeat):
            shown = page.evaluate("document.querySelector('.legend b').textContent")
            time.sleep(0.37)  # not at the same time of each second
            start = time.monotonic()
            with (run / "metrics.jsonl").open("a") as file:
                file.write(row(points + 1 + i, 1e3 * 10**i))
            page.wait_for(f"document.querySelector('.legend b').textContent !== {json.dumps(shown)}", 30)
            delays.append(time.monotonic() - start)
    return delays


def main() -> None:
    """Make the runs, measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = make_runs(Path(folder), options.runs, options.points)
        size = sum((run / "metrics.jsonl").stat().st_size for run in runs)
        amount = f"{options.runs} runs with {options.points} points, {size / 2**20:.0f} MiB of metrics"
        print(f"{amount}, load {os.getloadavg()[0]:.1f}")
        start = time.monotonic()
        board = Board(folder)
        print(f"start of the board: {time.monotonic() - start:.2f} s")
        everything = "#runs=" + ",".join(f"{run.parent.name}/{run.name}" for run in runs)
        for title, choice in (("latest runs, as the page opens", ""), ("all runs", everything)):
            painted, drawn = [], []
            for _ in range(options.repeat):
                with Server(Board(folder), port=0) as server:  # a new one, which has not read any metrics
                    time.sleep(HEAD_START_S)
                    first, complete = measure_page(server.url, choice)
                painted.append(first)
                drawn.append(complete)
            print(
                f"{title}: first paint {statistics.median(painted):.0f} ms (largest {max(painted):.0f}), "
                f"table and curves complete {statistics.median(drawn):.0f} ms (largest {max(drawn):.0f})"
            )
        with Server(board, port=0) as server:
            delays = measure_delay(server.url, runs[-1], options.points, options.repeat)
        print(f"new point: {statistics.median(delays):.2f} s (largest {max(delays):.2f})")


if __name__ == "__main__":
    main()
