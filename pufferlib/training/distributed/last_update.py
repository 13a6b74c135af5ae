"""Latest update of a training, which is saved if a rank is lost during the next one."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from pufferlib.machine.commands import as_typed
from pufferlib.runs import checkpoint
from pufferlib.training.distributed.ranks import RankLostError, Ranks

__all__ = ["Contents", "LastUpdate", "part_of_rank"]


class Contents(NamedTuple):
    """Contents of a checkpoint, as ``checkpoint.save`` takes them.

    Attributes:
        policy: ``state_dict()`` of the policy.
        state: Everything else that is needed to resume the run.
        about: Facts of the checkpoint.
    """

    policy: Mapping[str, Tensor]
    state: Mapping[str, Any]
    about: checkpoint.About


def part_of_rank(state: dict[str, Any], rank: int, size: int) -> tuple[dict[str, Any], bool]:
    """Return the state of a checkpoint for ``rank``, and whether it was saved by the same number of ranks."""
    others = state.get("ranks", [])
    if len(others) + 1 != size:
        return state, False
    return ({**state, **others[rank - 1]} if rank else state), True


class LastUpdate:
    """Copy of the state after the latest update, kept if there are several ranks, because any of them may be lost.

    Every rank has the same weights. If rank 0 is lost, rank 1 saves them.

    Args:
        ranks: Processes that train together.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self._kept = ranks, None if ranks.size == 1 else list[Contents]()

    def keep(self, contents: Callable[[], Contents]) -> None:
        """Copy the state after an update. With a single rank, do nothing."""
        if self._kept is not None:
            self._kept[:] = [copy.deepcopy(contents())]

    def forget(self) -> None:
        """Delete the copy, because the update has been saved."""
        if self._kept is not None:
            self._kept.clear()

    @contextlib.contextmanager
    def saved_when_lost(self, folder: Path) -> Iterator[None]:
        """Return a context that saves the latest update in ``folder`` if another rank is lost.

        Raises:
            RankLostError: A rank was lost. The message says what was saved.
        """
        try:
            yield
        except RankLostError as error:
            raise RankLostError(f"{error}{self._saved(folder)}") from error

    def _saved(self, folder: Path) -> str:
        if not self._kept or not self._ranks.saves_last_update():
            return ""
        (contents,) = self._kept
        try:
            checkpoint.save(folder, *contents)
        except OSError as failure:
            return f"; update {contents.about.updates} could not be saved ({failure.strerror})"
        saved = f"; a checkpoint of update {contents.about.updates} was saved"
        if self._ranks.rank == 0:  # its command prints how to resume
            return saved
        return f"{saved}; to resume: {as_typed('puffer train --resume', folder.parent)}"
