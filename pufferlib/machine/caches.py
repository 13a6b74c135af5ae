"""Folders in the user's cache, for files that can be created again."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(name: str) -> Path:
    """Return ``pufferlib/<name>`` in the user's cache (XDG Base Directory Specification). It may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pufferlib" / name
