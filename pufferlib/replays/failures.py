"""Bundles for errors in workers."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from pufferlib.buffers import Array
from pufferlib.errors import WorkerError
from pufferlib.machine.caches import cache_folder
from pufferlib.machine.commands import as_typed
from pufferlib.replays.bundle import Bundle, cause, free_path
from pufferlib.vector.failures import FailureContext
from pufferlib.vector.specs import AutoresetMode

__all__ = ["leave_bundles"]

FOLDER = "PUFFER_REPLAYS"  # environment variable with the folder for bundles; "" disables them
ActionsOf = Callable[[int], Array | None]
KEPT = 100  # maximum number of files in the folder; the oldest are deleted


def leave_bundles(
    error: BaseException,
    context: FailureContext | None,
    autoreset: AutoresetMode | None,
    actions_of: ActionsOf = lambda env: None,
) -> None:
    """Write a bundle for each environment that may have caused ``error``, and add their paths to the error.

    ``actions_of`` returns all actions of an environment since its last reset with a seed, or None if they are not
    known. The bundle then contains only the last actions. Nothing is raised, because a full disk must not hide the
    original error.
    """
    folder = _folder()
    if not isinstance(error, WorkerError) or context is None or folder is None or error.bundles:
        return
    with suppress(Exception):
        error.bundles = tuple(_save(folder, error, context, autoreset, actions_of))
        for path in error.bundles:
            error.add_note(f"Step it again: {as_typed('puffer replay', path)}")
        _delete_oldest(folder)


def _folder() -> Path | None:
    chosen = os.environ.get(FOLDER)
    if chosen is None:
        return cache_folder("replays")
    return Path(chosen) if chosen else None


def _save(
    folder: Path, error: WorkerError, context: FailureContext, autoreset: AutoresetMode | None, actions_of: ActionsOf
) -> list[Path]:
    paths = []
    when = time.strftime("%Y%m%d-%H%M%S")
    agents = 0 if context.actions is None else len(context.actions) // len(context.envs)
    for position, spec in enumerate(context.envs):
        actions = np.zeros(0, np.int32)
        if context.phase == "step" and context.actions is not None:
            actions = context.actions[None, position * agents : (position + 1) * agents].copy()
        logged = actions_of(spec.index) if context.phase == "step" else None
        bundle = Bundle.of(
            spec,
            actions if logged is None else logged,
            autoreset=autoreset,
            is_complete=context.starts_with_seed or logged is not None,
            phase=context.phase,
            error=cause(error),
        )
        paths.append(free_path(folder, f"{when}-env{spec.index}-seed{spec.seed}"))
        bundle.save(paths[-1])
    return paths


def _delete_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.npz"), key=lambda file: file.stat().st_mtime)
    for file in files[:-KEPT]:
        file.unlink()
