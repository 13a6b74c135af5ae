"""Metrics as lines of JSON."""

import json
from pathlib import Path

from pufferlib.training.loggers.lines import LineFile

__all__ = ["JsonlLogger"]


class JsonlLogger:
    """One JSON object per update and line, readable while the run goes on.

    Lines that cannot be written, on a full disk for example, are kept and tried again with the next, with a warning.

    Args:
        path: The file; lines are appended, so that a resumed run continues it. A last line that was cut short,
            by a kill for example, is taken away first.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path.absolute())

    def log(self, metrics: dict[str, float]) -> None:
        """Append one line; figures that are no numbers (NaN, infinity) become null, as JSON has none."""
        finite = {key: value if abs(value) < float("inf") else None for key, value in metrics.items()}
        self._file.append(json.dumps(finite).encode() + b"\n")

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: There are lines that cannot be written.
        """
        self._file.close()
