"""Paths given by users."""

from os import PathLike
from pathlib import Path

__all__ = ["user_path"]


def user_path(path: str | PathLike[str]) -> Path:
    """Return ``path`` with a leading ``~`` expanded to the home folder. Shells do not do this in ``--flag=~/x``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no such user
        return Path(path)
