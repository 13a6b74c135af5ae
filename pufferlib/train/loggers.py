"""Loggers: each is given the metrics of every update."""

import json
import os
import warnings
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

    Lines that cannot be written, on a full disk for example, are kept and tried again with the next, with a warning.

    Args:
        path: The file; lines are appended, so that a resumed run continues it. A last line that was cut short,
            by a kill for example, is taken away first.
    """

    def __init__(self, path: Path) -> None:
        _cut_to_whole_lines(path)
        self._path, self._waiting = path, b""
        self._file = path.open("ab", buffering=0)

    def log(self, metrics: dict[str, float]) -> None:
        """Append one line; figures that are no numbers (NaN, infinity) become null, as JSON has none."""
        finite = {key: value if abs(value) < float("inf") else None for key, value in metrics.items()}
        is_first = not self._waiting
        self._waiting += json.dumps(finite).encode() + b"\n"
        try:
            self._write()
        except OSError as error:
            if is_first:
                warnings.warn(
                    f"{self._path}: metrics could not be written ({error.strerror}); they are kept and tried again "
                    "after each update; make room there",
                    stacklevel=2,
                )

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: There are lines that cannot be written.
        """
        if self._file.closed:
            return
        try:
            self._write()
        finally:
            self._file.close()

    def _write(self) -> None:
        while self._waiting:  # as much as there is room for; the rest of a line follows when there is more
            self._waiting = self._waiting[self._file.write(self._waiting) :]


def _cut_to_whole_lines(path: Path) -> None:
    if path.exists():
        text = path.read_bytes()
        if text and not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)
