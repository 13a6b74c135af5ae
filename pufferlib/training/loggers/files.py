"""Metrics in files: one JSON object per line, or a CSV table."""

import csv
import errno
import io
import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from pufferlib.machine.paths import replace_file

__all__ = ["CsvLogger", "JsonlLogger", "LineFile", "cut_to_whole_lines"]


class LineFile:
    """File to which lines are appended immediately.

    If lines cannot be written, a warning is given, and they are written together with the next ones.

    Args:
        path: Path of the file. An incomplete last line, for example after a kill, is removed first.
    """

    def __init__(self, path: Path) -> None:
        cut_to_whole_lines(path)
        self.path, self._waiting = path, b""
        self._file = path.open("ab", buffering=0)

    @property
    def is_deleted(self) -> bool:
        """True if the file was deleted after it was opened."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def append(self, lines: bytes) -> None:
        """Append complete lines."""
        is_first = not self._waiting
        self._waiting += lines
        try:
            self.flush()
        except OSError as error:
            if is_first:
                is_gone = error.errno == errno.ENOENT
                advice = "the next checkpoint creates the deleted folder again" if is_gone else "make room there"
                warnings.warn(
                    f"{self.path}: metrics could not be written ({error.strerror}); they are kept and tried again "
                    f"after each update; {advice}",
                    stacklevel=3,
                )

    def close(self) -> None:
        """Close the file. This may be called twice.

        Raises:
            OSError: Some lines cannot be written.
        """
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()

    def flush(self) -> None:
        """Write all waiting lines.

        Raises:
            OSError: Some lines cannot be written.
        """
        if self._waiting and self.is_deleted:
            deleted, self._file = self._file, self.path.open("ab", buffering=0)
            deleted.close()
        while self._waiting:  # a full disk may take only a part of a line; the rest follows later
            self._waiting = self._waiting[self._file.write(self._waiting) :]


def cut_to_whole_lines(path: Path) -> None:
    """Remove an incomplete last line."""
    if path.exists():
        text = path.read_bytes()
        if text and not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)


class JsonlLogger:
    """Logger that writes one JSON object per update, one per line. The file can be read during the run.

    If lines cannot be written, for example on a full disk, a warning is given, and they are written later.

    Args:
        path: Path of the file. A resumed run appends to it. An incomplete last line, for example after a kill, is
            removed first.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path.absolute())

    def log(self, metrics: dict[str, float]) -> None:
        """Append one line. NaN and infinity become null, because JSON cannot represent them."""
        finite = {key: value if abs(value) < float("inf") else None for key, value in metrics.items()}
        self._file.append(json.dumps(finite).encode() + b"\n")

    def close(self) -> None:
        """Close the file. Warn if some lines cannot be written."""
        try:
            self._file.close()
        except OSError as error:
            warnings.warn(
                f"{self._file.path}: the metrics of the last updates could not be written ({error.strerror}) and are "
                "lost",
                stacklevel=2,
            )


STEPS = "agent_steps"


class CsvLogger:
    """Logger that writes one row per update, with a column for every metric so far.

    The file can be read during the run. A metric that appears for the first time, such as the score of the first
    episode that ends, adds a column on the right. It is empty in earlier rows. If rows cannot be written, for example
    on a full disk, a warning is given, and they are written later.

    Args:
        path: Path of the file. A resumed run appends to it, and replaces rows of steps that are repeated.
    """

    def __init__(self, path: Path) -> None:
        cut_to_whole_lines(path)
        self._columns = _header(path)
        self._continues = bool(self._columns)
        self._file, self._waiting = LineFile(path), list[dict[str, float]]()

    def log(self, metrics: dict[str, float]) -> None:
        """Append a row."""
        if self._continues:
            self._continues = False
            _cut_from(self._file.path, self._columns, metrics.get(STEPS, float("inf")))
        self._waiting.append(metrics)
        try:
            self._write()
        except OSError as error:
            if len(self._waiting) == 1:
                warnings.warn(
                    f"{self._file.path}: metrics could not be written ({error.strerror}); they are kept and tried "
                    "again after each update; make room there",
                    stacklevel=2,
                )

    def close(self) -> None:
        """Close the file. This may be called twice.

        Raises:
            OSError: Some rows cannot be written.
        """
        try:
            if self._waiting:
                self._write()
        finally:
            self._file.close()

    def _write(self) -> None:
        columns = list(dict.fromkeys([*self._columns, *(key for row in self._waiting for key in row)]))
        if self._file.is_deleted:
            self._columns = []  # a new file needs a header
        if columns != self._columns:
            self._widen(columns)
        rows = ([str(row[key]) if key in row else "" for key in columns] for row in self._waiting)
        self._file.append(_text(rows))
        self._waiting.clear()

    def _widen(self, columns: list[str]) -> None:
        """Rewrite the file with columns added on the right. The file is replaced atomically."""
        path = self._file.path
        self._file.flush()
        _, *rows = (path.read_bytes() if path.exists() else b"").splitlines() or [b""]
        empty = b"," * (len(columns) - len(self._columns)) + b"\n"
        replace_file(path, _text([columns]) + b"".join(row + empty for row in rows))
        self._file.close()
        self._file, self._columns = LineFile(path), columns


def _text(rows: Iterable[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _header(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _cut_from(path: Path, columns: list[str], steps: float) -> None:
    """Remove the rows at the end that have ``steps`` or more."""
    lines = path.read_bytes().splitlines(keepends=True)
    if STEPS not in columns:
        return
    place = columns.index(STEPS)
    while len(lines) > 1 and float(next(csv.reader([lines[-1].decode()]))[place]) >= steps:
        lines.pop()
    os.truncate(path, sum(map(len, lines)))
