"""What must be known to go on after a worker has failed: how often, with which seeds, and what was lost."""

from typing import Protocol

import numpy as np

from pufferlib.buffers import Array, Buffers, clear_rows
from pufferlib.env import Infos
from pufferlib.errors import PufferError, WorkerError
from pufferlib.vector.protocol import FAILURE, STEP
from pufferlib.vector.specs import Autoreset

__all__ = ["CommandLog", "Restarts"]

MAX_FAILURES = 3  # of one worker, without a step in between
_NUMBERS = 1 << 30  # commands are counted modulo this


class CommandLog(Protocol):
    """Knows what each worker was told to do, and how far it came."""

    def num_commands(self, worker: int) -> int:
        """Commands that the worker was given."""

    def num_completed(self, worker: int) -> int:
        """The number of the last one that came to an end."""

    def operation(self, worker: int) -> int:
        """What the last one was."""

    def outcome(self, worker: int) -> int:
        """How the last one that came to an end did so."""


class Restarts:
    """The restarts of one vector environment.

    The replacement's environments get new seeds, or a fault that depends on the seed would come
    again: after the k-th restart of its worker an environment whose last seed was s goes on with
    ``env_seed(s, k)``.

    Args:
        buffers: The arrays of all rows.
        num_workers: Workers that share them.
        autoreset: With "same_step" new episodes take the place of lost ones at once; with "next_step" the next
            step begins them; with "disabled" nothing follows until reset.
    """

    def __init__(self, buffers: Buffers, num_workers: int, autoreset: Autoreset) -> None:
        self._buffers = buffers
        self._autoreset = autoreset
        self._seen = np.zeros_like(buffers["observations"])
        self._rows = len(self._seen) // num_workers
        self._counts = [0] * num_workers
        self._failures = [0] * num_workers  # in a row
        self._completed = [0] * num_workers  # commands, when the last replacement had begun its episodes
        self._errors: dict[int, str] = {}  # of the failures that the caller has not been told of
        self._lost: set[int] = set()  # those of them that cost episodes
        self._marked: set[int] = set()  # whose rows say that episodes were cut off

    def keep_observations(self, workers: list[int]) -> None:
        """Keep the observations of ``workers``, which the caller has seen, before their next step."""
        for worker in workers:
            rows = self._rows_of(worker)
            self._seen[rows] = self._buffers["observations"][rows]
            if worker in self._marked:  # an environment that never truncates would leave it so
                self._buffers["truncations"][rows] = False
                self._marked.discard(worker)

    def record_failure(self, worker: int, error: PufferError, log: CommandLog) -> None:
        """Count a failure of ``worker``.

        Raises:
            WorkerError: It failed too often without a step in between.
        """
        completed = log.num_completed(worker) - (log.outcome(worker) == FAILURE)
        steps = (completed - self._completed[worker]) % _NUMBERS
        self._failures[worker] = 1 if 0 < steps < _NUMBERS // 2 else self._failures[worker] + 1
        if self._failures[worker] == MAX_FAILURES:
            raise WorkerError(
                f"{error}\n\nWorker {worker} failed {MAX_FAILURES} times without finishing a step in between, "
                "so it is not restarted again."
            ) from None
        self._counts[worker] += 1
        self._errors[worker] = str(error).partition("\n")[0]
        if log.operation(worker) == STEP:
            self._lost.add(worker)
        # The replacement finishes one command more before it can step, its first reset, or two to wait for that.
        resets_later = self._autoreset == "next_step" and worker in self._lost
        self._completed[worker] = log.num_commands(worker) + 1 + resets_later

    @property
    def total(self) -> int:
        """Restarts so far, of all workers."""
        return sum(self._counts)

    def count_of(self, worker: int) -> int:
        """How often ``worker`` was restarted."""
        return self._counts[worker]

    def awaits_reset(self, worker: int) -> bool:
        """Whether the replacement of ``worker`` first shows the ends of episodes that were cut off."""
        return worker in self._lost and self._autoreset != "same_step"

    def report(self, worker: int) -> Infos:
        """Tell of the last restart of ``worker``, whose replacement has finished, in its rows and as infos."""
        if worker not in self._errors:
            return []
        if worker in self._lost:
            rows = self._rows_of(worker)
            self._buffers["rewards"][rows] = 0
            self._buffers["terminals"][rows] = False
            self._buffers["truncations"][rows] = True
            self._buffers["final_observations"][rows] = self._seen[rows]
            if self._autoreset != "same_step":
                self._buffers["observations"][rows] = self._seen[rows]
            self._marked.add(worker)
            self._lost.discard(worker)
        return [{"worker_restarts": self.total, "worker_error": self._errors.pop(worker)}]

    def clear(self, worker: int) -> None:
        """Leave the rows of ``worker`` as those of episodes that are over."""
        clear_rows(self._buffers, self._rows_of(worker))

    def last_actions(self, worker: int) -> Array:
        """What the environments of ``worker`` were told to do last."""
        return self._buffers["actions"][self._rows_of(worker)]

    def _rows_of(self, worker: int) -> slice:
        return slice(worker * self._rows, (worker + 1) * self._rows)
