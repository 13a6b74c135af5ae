"""The last whole update of a training, which is saved when a rank is lost in the middle of the next."""

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
        policy: Its ``state_dict()``.
        state: All else that a run needs to go on.
        about: Facts.
    """

    policy: Mapping[str, Tensor]
    state: Mapping[str, Any]
    about: checkpoint.About


def part_of_rank(state: dict[str, Any], rank: int, size: int) -> tuple[dict[str, Any], bool]:
    """The state of a checkpoint as ``rank`` of ``size`` finds it, and True if it was saved by as many ranks."""
    others = state.get("ranks", [])
    if len(others) + 1 != size:
        return state, False
    return ({**state, **others[rank - 1]} if rank else state), True


class LastUpdate:
    """Keeps a copy of what each update has come to, where there are several ranks: any of them may be lost.

    Every rank has the same weights, so that rank 1 saves them where rank 0 is the one that was lost.

    Args:
        ranks: All of them.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self._kept = ranks, None if ranks.size == 1 else list[Contents]()

    def keep(self, contents: Callable[[], Contents]) -> None:
        """Copy what an update has come to; nothing where there is one rank."""
        if self._kept is not None:
            self._kept[:] = [copy.deepcopy(contents())]

    def forget(self) -> None:
        """Note that the last update has been saved."""
        if self._kept is not None:
            self._kept.clear()

    @contextlib.contextmanager
    def saved_when_lost(self, folder: Path) -> Iterator[None]:
        """Context in which the last update is saved, in the ``folder`` of checkpoints, when another rank is lost.

        Raises:
            RankLostError: With words on what was saved.
        """
        try:
            yield
        except RankLostError as error:
            raise RankLostError(f"{error}{self._saved(folder)}") from error

    def _saved(self, folder: Path) -> str:
        if not self._kept or not self._ranks.takes_over():
            return ""
        (contents,) = self._kept
        try:
            checkpoint.save(folder, *contents)
        except OSError as failure:
            return f"; update {contents.about.updates} could not be saved ({failure.strerror})"
        saved = f"; all was saved as it was after update {contents.about.updates}"
        if self._ranks.rank == 0:  # whose command says how to go on
            return saved
        return f"{saved}; to go on: {as_typed('puffer train --resume', folder.parent)}"
