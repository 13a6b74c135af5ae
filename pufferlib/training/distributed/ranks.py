"""Communication between the ranks of a training, and the settings of each rank."""

import contextlib
import dataclasses
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import Store  # type: ignore[attr-defined]  # not in torch's stubs

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.seeding import env_seed
from pufferlib.text import plural
from pufferlib.training.config import Config
from pufferlib.training.distributed.place import Place
from pufferlib.training.rollout import CollectingStopped

__all__ = [
    "ALONE",
    "JoinedRanks",
    "RankLostError",
    "Ranks",
    "check_agents",
    "config_of_all",
    "config_of_rank",
    "device_of_rank",
]


SEEDS = 2**31 - 2  # of ranks: no environment has so high an index
FAILED = "failed"  # the key under which the ranks find what ended one of them
WRITES = "writes"  # the key that says that rank 0 saves what the ranks came to
LOOK_S = 0.5  # between two looks for that
REASON_S = 3.0  # time for the reason to come, once it is known that a rank is gone

_T = TypeVar("_T")


class RankLostError(PufferError):
    """Another process of the training has ended, or does not answer; the message says which, where that is known."""


class Ranks:
    """The one process of a training that has no others.

    Attributes:
        rank: Number of this process, from 0.
        size: Processes in all.
        local_rank: Number of this process on its machine, from 0.
        local_size: Processes on this machine.
    """

    rank, size, local_rank, local_size = 0, 1, 0, 1

    @property
    def is_first(self) -> bool:
        """True in the process that writes the run, rank 0."""
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """The seed of this rank's environments and actions; rank 0 has the run's own."""
        return seed if self.rank == 0 else env_seed(seed, SEEDS - self.rank)

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum ``tensor`` over all ranks, in place, to the same bytes in each."""
        return tensor

    def gather(self, value: _T) -> list[_T]:
        """The values of all ranks, in their order."""
        return [value]

    def largest(self, *numbers: int) -> list[int]:
        """The largest of each number over all ranks."""
        return list(numbers)

    def share(self, value: _T) -> _T:
        """The value of rank 0."""
        return value

    def share_weights(self, module: nn.Module) -> None:
        """Give the parameters and buffers of ``module`` the values that they have in rank 0."""

    def on_first(self, function: Callable[[], _T]) -> _T:
        """Call ``function`` in rank 0 alone; returns what it returned, or raises the exception that it raised."""
        return function()

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Call ``stop``, in another thread, once another rank is known to have ended."""

    def part(self) -> None:
        """Wait until every rank has come to the end; what one of them does from now on is its own affair."""

    def reason(self) -> str:
        """The end of another rank in words; empty where all are there."""
        return ""

    def interruptible(self) -> contextlib.AbstractContextManager[None]:
        """Context of collecting, which ends by RankLostError once another rank is known to have ended."""
        return contextlib.nullcontext()

    def takes_over(self) -> bool:
        """True in the rank that writes the run after another one was lost."""
        return True


#: The ranks of a process that has no others.
ALONE = Ranks()


class JoinedRanks(Ranks):
    """A process among others, whose ``torch.distributed`` group is there.

    As a context it leaves the others when all are done, or tells them why it ends.

    Args:
        place: Of this process.
        store: In which ranks leave words for each other.
        timeout_s: Longest that one waits for another; for messages.
    """

    def __init__(self, place: Place, store: Store, timeout_s: float) -> None:
        self.rank, self.size = place.rank, place.size
        self.local_rank, self.local_size = place.local_rank, place.local_size
        self._store, self._timeout_s = store, timeout_s
        self._reason, self._left = "", threading.Event()
        self._stops: list[Callable[[], None]] = []
        self._watch = threading.Thread(target=self._look_for_failures, name="ranks", daemon=True)
        self._watch.start()

    def __enter__(self) -> "JoinedRanks":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None:
                self.part()
            elif not (self._left.is_set() or isinstance(error, RankLostError)):
                self.tell_failure(f"rank {self.rank} of {self.size} ended: {_in_words(error)}")
        finally:
            self._left.set()
            self._watch.join()
            dist.destroy_process_group()

    def part(self) -> None:
        """See ``Ranks``."""
        if not self._left.is_set():
            with self._answering():
                dist.barrier()
            self._left.set()

    def tell_failure(self, words: str) -> None:
        """Let the other ranks know what ended one of them; the first word stands."""
        with contextlib.suppress(RuntimeError):
            self._store.compare_set(FAILED, "", words)

    def sum(self, tensor: Tensor) -> Tensor:
        """See ``Ranks``."""
        with self._answering():
            dist.all_reduce(tensor)
        return tensor

    def gather(self, value: _T) -> list[_T]:
        """See ``Ranks``; values are pickled."""
        found: list[Any] = [None] * self.size
        with self._answering():
            dist.all_gather_object(found, on_cpu(value))
        return found

    def largest(self, *numbers: int) -> list[int]:
        """See ``Ranks``."""
        found = torch.tensor(numbers)
        with self._answering():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    def share(self, value: _T) -> _T:
        """See ``Ranks``; values are pickled."""
        found: list[Any] = [on_cpu(value)]
        with self._answering():
            dist.broadcast_object_list(found)
        return found[0]  # type: ignore[no-any-return]

    def share_weights(self, module: nn.Module) -> None:
        """See ``Ranks``."""
        weights = {name: tensor.cpu() for name, tensor in module.state_dict().items()} if self.is_first else {}
        module.load_state_dict(self.share(weights))

    def on_first(self, function: Callable[[], _T]) -> _T:
        """See ``Ranks``."""
        value, error = None, None
        if self.is_first:
            try:
                value = function()
            except Exception as caught:
                error = caught
        value, refusal = self.share((value, _sendable(error)))
        if (raised := error or refusal) is not None:
            raise raised
        return value  # type: ignore[return-value]

    def when_lost(self, stop: Callable[[], None]) -> None:
        """See ``Ranks``."""
        self._stops.append(stop)
        if self._reason:
            stop()

    def reason(self) -> str:
        """See ``Ranks``; waits for a moment for the words to come."""
        deadline = time.monotonic() + REASON_S
        while not self._reason and time.monotonic() < deadline and self._watch.is_alive():
            time.sleep(0.05)
        return self._reason

    def takes_over(self) -> bool:
        """See ``Ranks``: it is rank 0, or else rank 1 if no rank 0 is heard of."""
        try:
            if self.is_first:
                self._store.set(WRITES, "")
            deadline = time.monotonic() + REASON_S
            while self.rank == 1 and not self._store.check([WRITES]):
                if time.monotonic() > deadline:
                    return True
                time.sleep(LOOK_S)
        except RuntimeError:  # rank 0 kept the store
            return self.rank <= 1
        return self.is_first

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """Context in which a rank that does not answer is one that was lost."""
        try:
            yield
        except RuntimeError as error:
            late = "imed out" in str(error)
            other = f"did not answer within {self._timeout_s:g} s (--train.processes-timeout)" if late else "was lost"
            raise RankLostError(f"train: {self.reason() or f'another rank {other}'}") from error

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """See ``Ranks``."""
        try:
            yield
        except CollectingStopped:
            raise RankLostError(f"train: {self.reason()}") from None

    def _look_for_failures(self) -> None:
        while not self._left.wait(LOOK_S):
            try:
                self._reason = self._store.get(FAILED).decode() if self._store.check([FAILED]) else ""
            except RuntimeError:  # whoever kept the store is gone
                self._reason = "rank 0 was lost"
            if self._reason:
                for stop in self._stops:
                    stop()
                return


def on_cpu(value: Any) -> Any:
    """Return ``value`` with its tensors, inside dicts, lists and tuples too, on the CPU: ranks have different GPUs."""
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: on_cpu(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(on_cpu(each) for each in value)
    return value


def _in_words(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "stopped"
    text = str(error).strip().partition("\n")[0]
    return text if isinstance(error, PufferError) else f"{type(error).__name__}: {text}"


def _sendable(error: Exception | None) -> Exception | None:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return PufferError(str(error))
    return error


def config_of_all(config: Config, ranks: Ranks) -> Config:
    """The settings with ``train.processes`` as they are.

    Raises:
        APIUsageError: They ask for another number of processes.
    """
    wanted = config.train.processes
    if wanted not in (1, ranks.size):
        raise APIUsageError(
            f"train.processes asks for {wanted} processes, and there {'is' if ranks.size == 1 else 'are'} "
            f"{ranks.size}; puffer train and pufferlib.train start as many by themselves, torchrun --nproc-per-node "
            f"{wanted} starts them too"
        )
    return dataclasses.replace(config, train=dataclasses.replace(config.train, processes=ranks.size))


def config_of_rank(config: Config, ranks: Ranks) -> Config:
    """The settings with a seed of this rank's own, for its environments and actions."""
    train = config.train
    return dataclasses.replace(config, train=dataclasses.replace(train, seed=ranks.seed(train.seed)))


def device_of_rank(device: torch.device, ranks: Ranks) -> torch.device:
    """The GPU of this rank, in turn, where ranks are to use those of their machine; else ``device`` as it is."""
    is_chosen = str(device) != "cuda"  # a CPU, or a GPU by its number
    if is_chosen or ranks.size == 1:
        return device
    own = torch.device("cuda", ranks.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(own)
    return own


def check_agents(ranks: Ranks, vecenv: Any) -> None:
    """Raise APIUsageError unless every rank has as many agents."""
    found = ranks.gather(int(vecenv.num_agents))
    if len(set(found)) > 1:
        each = ", ".join(f"{plural(count, 'agent')} in rank {rank}" for rank, count in enumerate(found))
        raise APIUsageError(
            f"train.processes: every rank must have as many agents, got {each}; give vec.num_envs and env.num_envs "
            "instead of leaving them to each machine"
        )
