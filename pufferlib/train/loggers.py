"""Loggers: each is given the metrics of every update."""

import json
import os
from pathlib import Path
from typing import Protocol

__all__ = ["JsonlLogger", "Logger"]


class Logger(Protocol):
    """Takes the metrics of each update as they come."""

    def log(self, metrics: dict[str, float]) -> None:
        """Take the metrics of one update; keys as listed at ``Trainer``."""

    def close(self) -> None:
        """No more will come. May be called twice."""


class JsonlLogger:
    """One JSON object per update and line, readable while the run goes on.

    Args:
        path: The file; lines are appended, so that a resumed run continues it. A last line that was cut short,
            by a full disk for example, is taken away first.
    """

    def __init__(self, path: Path) -> None:
        _cut_to_whole_lines(path)
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, metrics: dict[str, float]) -> None:
        """Append one line; figures that are no numbers (NaN, infinity) become null, as JSON has none."""
        finite = {key: value if abs(value) < float("inf") else None for key, value in metrics.items()}
        self._file.write(json.dumps(finite) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cut_to_whole_lines(path: Path) -> None:
    if path.exists():
        text = path.read_bytes()
        if text and not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)
