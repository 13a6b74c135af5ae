"""A file of whole lines that waits for room where the disk is full."""

import errno
import os
import warnings
from pathlib import Path

__all__ = ["LineFile", "cut_to_whole_lines"]


class LineFile:
    """Appends lines at once; those that cannot be written are kept and tried again with the next, with a warning.

    Args:
        path: The file; a last line that was cut short, by a kill for example, is taken away first.
    """

    def __init__(self, path: Path) -> None:
        cut_to_whole_lines(path)
        self.path, self._waiting = path, b""
        self._file = path.open("ab", buffering=0)

    def append(self, lines: bytes) -> None:
        """Append whole lines."""
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
        """Close the file; may be called twice.

        Raises:
            OSError: There are lines that cannot be written.
        """
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            OSError: There are lines that cannot be written.
        """
        if self._waiting and os.fstat(self._file.fileno()).st_nlink == 0:  # the file was deleted
            deleted, self._file = self._file, self.path.open("ab", buffering=0)
            deleted.close()
        while self._waiting:  # as much as there is room for; the rest of a line follows when there is more
            self._waiting = self._waiting[self._file.write(self._waiting) :]


def cut_to_whole_lines(path: Path) -> None:
    """Take away a last line without its end."""
    if path.exists():
        text = path.read_bytes()
        if text and not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)
