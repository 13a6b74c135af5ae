"""Paths given by users."""

from os import PathLike
from pathlib import Path

__all__ = ["replace_file", "user_path"]


def user_path(path: str | PathLike[str]) -> Path:
    """Return ``path`` with a leading ``~`` expanded to the home folder. Shells do not do this in ``--flag=~/x``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no such user
        return Path(path)


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all. If that fails, an earlier file is unchanged.

    Raises:
        OSError: The file cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
