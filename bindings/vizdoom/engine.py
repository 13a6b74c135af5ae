"""Temporary working folder for the engine process of ViZDoom."""

import tempfile
from pathlib import Path
from typing import Any

import vizdoom

from .parent_death import tied_to_parent

__all__ = ["engine_folder"]


def engine_folder(game: Any) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for the files of the engine of ``game``, and tie the engine to this process."""
    folder = tempfile.TemporaryDirectory(prefix="pufferlib-vizdoom-", ignore_cleanup_errors=True)
    game.set_vizdoom_path(tied_to_parent(Path(vizdoom.__file__).with_name("vizdoom"), Path(folder.name)))
    return folder
