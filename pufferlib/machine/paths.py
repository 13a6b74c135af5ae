"""Paths as users write them."""

from os import PathLike
from pathlib import Path

__all__ = ["user_path"]


def user_path(path: str | PathLike[str]) -> Path:
    """Return ``path`` with a leading ``~`` replaced by the home folder, as shells do it, but not in ``--flag=~/x``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # of a user that does not exist
        return Path(path)
