"""Curves of runs for a page, read from metrics files while trainings append to them."""

import json
import math
import os
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["GrowingCurve", "thin"]


BLOCK = 1 << 20  # bytes that are read at once
DIGITS = 6  # significant digits of a value in a page
STEPS, SECONDS = b'"agent_steps":', b'"uptime_s":'


class GrowingCurve:
    """One metric of a run. Reading it again costs only the lines that were added since.

    Values that are not finite are left out. A run that was resumed from a checkpoint repeats some steps. Only the later
    rows count.

    Attributes:
        steps: Agent steps of each point.
        seconds: Seconds of training of each point.
        values: Values of the metric.
        damaged: Number of lines that are not JSON objects, and are left out.
        is_complete: True if the whole file has been read.

    Args:
        path: Path of the ``metrics.jsonl``.
        metric: Name of the metric.
    """

    def __init__(self, path: Path, metric: str) -> None:
        self._path = path
        self._key = json.dumps(metric).encode() + b":"
        self._file = (0, 0)  # device and inode
        self._restart()

    def _restart(self) -> None:
        self.steps, self.seconds, self.values = array("d"), array("d"), array("d")
        self.damaged = 0
        self.is_complete = False
        self._offset = 0

    def read(self, deadline: float = math.inf) -> bool:
        """Read the lines that were added to the file. Return True if there were any.

        Args:
            deadline: Time of ``time.monotonic`` at which to stop. At least one block is read.

        Raises:
            OSError: The file cannot be read, for example because its run was deleted.
        """
        try:
            opened = self._path.open("rb")
        except OSError:
            self._file = (0, 0)  # the next file may get the same inode
            raise
        with opened as file:
            about = os.fstat(file.fileno())
            if (about.st_dev, about.st_ino) != self._file or about.st_size < self._offset:  # another file
                self._file = (about.st_dev, about.st_ino)
                self._restart()
            before, self.is_complete = self._offset, False
            while True:
                file.seek(self._offset)
                block = file.read(BLOCK)
                end = block.rfind(b"\n") + 1
                if end:
                    self._add(block[:end])
                elif len(block) == BLOCK:  # no metrics have lines of this length
                    self.damaged += 1
                    end = BLOCK
                self._offset += end
                if len(block) < BLOCK:  # the rest is a line that is being written
                    self.is_complete = True
                    break
                if time.monotonic() > deadline:
                    break
            return self._offset > before

    @property
    def share(self) -> float:
        """Share of the file that has been read, 0 to 1."""
        try:
            return 1.0 if self.is_complete else self._offset / max(1, self._path.stat().st_size)
        except OSError:
            return 1.0

    def _add(self, lines: bytes) -> None:
        # Parsing each line as JSON would take more than twice as long, and most of its numbers are not needed.
        keys = (STEPS, SECONDS, self._key)
        steps, seconds, values = self.steps, self.seconds, self.values
        for line in lines.splitlines():
            if not (line.startswith(b"{") and line.endswith(b"}")):
                self.damaged += bool(line.strip())
                continue
            point = []
            for key in keys:
                start = line.find(key)
                if start < 0:
                    break
                start += len(key)
                end = line.find(b",", start)
                try:
                    point.append(float(line[start:end]))  # an end of -1 is the closing brace
                except ValueError:  # null
                    break
            if len(point) < 3 or not math.isfinite(point[2]):
                continue
            while steps and steps[-1] >= point[0]:
                del steps[-1], seconds[-1], values[-1]
            steps.append(point[0])
            seconds.append(point[1])
            values.append(point[2])


def thin(curve: GrowingCurve, points: int) -> dict[str, list[Any]]:
    """Return a curve as at most ``points`` points, as plain data.

    If there are more, each point stands for as many successive updates: it has their mean, minimum and maximum, so that
    spikes remain visible.

    Args:
        curve: Curve.
        points: Largest number of points.

    Returns:
        Lists "steps", "seconds" and "mean", and if the curve was thinned "low" and "high".
    """
    steps, seconds, values = (np.array(column) for column in (curve.steps, curve.seconds, curve.values))
    size = max(1, math.ceil(values.size / points))
    if size == 1:
        return {"steps": _plain(steps), "seconds": _plain(seconds), "mean": _plain(values)}
    starts = np.arange(0, values.size, size)
    counts = np.diff(starts, append=values.size)
    lasts = starts + counts - 1
    return {
        "steps": _plain(steps[lasts]),
        "seconds": _plain(seconds[lasts]),
        "mean": _plain(np.add.reduceat(values, starts) / counts),
        "low": _plain(np.minimum.reduceat(values, starts)),
        "high": _plain(np.maximum.reduceat(values, starts)),
    }


def _plain(values: npt.NDArray[np.float64]) -> list[float]:
    """Return numbers with the digits that a page can show. Whole numbers keep all of theirs."""
    magnitude = np.floor(np.log10(np.abs(values), where=values != 0, out=np.zeros_like(values)))
    decimals = DIGITS - 1 - magnitude
    scale = 10.0 ** np.clip(decimals, 0, 300)
    rounded: list[float] = (np.round(values * scale) / scale).tolist()
    return rounded
