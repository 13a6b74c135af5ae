"""Runs for tests of the board, written without training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pufferlib.settings.config import load_config

__all__ = ["add_updates", "make_run"]


def make_run(
    folder: Path,
    scores: Sequence[float | None] = (1, 2, 3),
    result: float | None = None,
    env: str = "squared",
    **settings: Any,
) -> Path:
    """Write the files of a run and return its folder.

    Args:
        folder: Folder of the run.
        scores: Score of each update.
        result: Score of the evaluation, or None if the run is not finished.
        env: Name of the environment.
        settings: Settings by dotted name, with ``__`` for the dot.
    """
    folder.mkdir(parents=True)
    load_config(env, {key.replace("__", "."): value for key, value in settings.items()}).save(folder / "config.toml")
    add_updates(folder, scores)
    if result is not None:
        summary = {"score": result, "score_std": 0.5, "agent_steps": 9000, "train_s": 7.0, "episodes": 32}
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def add_updates(folder: Path, scores: Sequence[float | None], first: int = 1) -> None:
    """Append updates to the metrics of a run, each of 1000 steps and 2 seconds."""
    with (folder / "metrics.jsonl").open("a") as file:
        for i, score in enumerate(scores, first):
            row = {
                "update": i,
                "agent_steps": i * 1000,
                "uptime_s": i * 2.0,
                "environment/score": score,
                "losses/entropy": 1 / i,
            }
            file.write(json.dumps(row) + "\n")
