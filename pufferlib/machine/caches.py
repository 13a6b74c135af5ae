"""Folders of what can be made again, in the cache of the user."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(name: str) -> Path:
    """Return ``pufferlib/<name>`` of the user's cache (XDG Base Directory Specification); it may be missing."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pufferlib" / name
