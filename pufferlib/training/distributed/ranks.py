"""Communication between the ranks of a training, and the settings of each rank."""

import contextlib
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import Store  # type: ignore[attr-defined]  # not in torch's stubs
from typing_extensions import override

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.seeding import env_seed
from pufferlib.settings.config import Config
from pufferlib.text import plural
from pufferlib.training.distributed.place import Place, place_of_this_process
from pufferlib.training.rollout import CollectingStopped
from pufferlib.vector.proxy import AnyVectorEnv

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


SEEDS = 2**31 - 2  # first index of the seeds of ranks, larger than the index of any environment
FAILED = "failed"  # key of the reason why a rank ended
WRITES = "writes"  # key that is set if rank 0 saves the latest update
LOOK_S = 0.5  # seconds between two checks of these keys
REASON_S = 3.0  # seconds to wait for the reason after a rank was lost

_T = TypeVar("_T")


class RankLostError(PufferError):
    """Another process of the training has ended or does not answer. The message names it if it is known."""


class Ranks:
    """Ranks of a training with a single process.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of processes.
        local_rank: Rank of this process on its machine, from 0.
        local_size: Number of processes on this machine.
    """

    rank, size, local_rank, local_size = 0, 1, 0, 1

    @property
    def is_first(self) -> bool:
        """True if this is rank 0, the process that writes the run."""
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """Return the seed of this rank's environments and actions. Rank 0 uses the seed of the run."""
        return seed if self.rank == 0 else env_seed(seed, SEEDS - self.rank)

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum ``tensor`` over all ranks, in place. The result is bit-identical in each rank."""
        return tensor

    def gather(self, value: _T) -> list[_T]:
        """Return the values of all ranks, in their order."""
        return [value]

    def largest(self, *numbers: int) -> list[int]:
        """Return the maximum of each number over all ranks."""
        return list(numbers)

    def share(self, value: _T) -> _T:
        """Return the value of rank 0."""
        return value

    def share_weights(self, module: nn.Module) -> None:
        """Copy the parameters and buffers of ``module`` from rank 0."""

    def on_first(self, function: Callable[[], _T]) -> _T:
        """Call ``function`` in rank 0 only. Return its result, or raise its exception, in every rank."""
        return function()

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Call ``stop``, in another thread, when another rank is known to have ended."""

    def leave(self) -> None:
        """Wait until every rank has finished. After this, ranks no longer wait for each other."""

    def reason(self) -> str:
        """Return why another rank ended, or an empty text if none has."""
        return ""

    def interruptible(self) -> contextlib.AbstractContextManager[None]:
        """Return a context for collecting. It raises RankLostError when another rank is known to have ended."""
        return contextlib.nullcontext()

    def saves_last_update(self) -> bool:
        """Return whether this rank writes the run after another one was lost."""
        return True


#: Ranks of a single process.
ALONE = Ranks()


class JoinedRanks(Ranks):
    """Rank of a process in a ``torch.distributed`` group.

    As a context it waits for the other ranks at its end. After an exception it sends them the reason. Values of
    ``gather`` and ``share`` are pickled.

    Args:
        place: Rank and address of this process.
        store: Store through which ranks exchange messages.
        timeout_s: Maximum seconds to wait for another rank, for messages.
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
                self.leave()
            elif not (self._left.is_set() or isinstance(error, RankLostError)):
                self.report_failure(f"rank {self.rank} of {self.size} ended: {_describe(error)}")
        finally:
            self._left.set()
            self._watch.join()
            dist.destroy_process_group()

    @override
    def leave(self) -> None:
        if not self._left.is_set():
            with self._detecting_loss():
                dist.barrier()
            self._left.set()

    def report_failure(self, words: str) -> None:
        """Broadcast the reason why a rank ended. Later reasons are ignored."""
        with contextlib.suppress(RuntimeError):
            self._store.compare_set(FAILED, "", words)

    @override
    def sum(self, tensor: Tensor) -> Tensor:
        with self._detecting_loss():
            dist.all_reduce(tensor)
        return tensor

    @override
    def gather(self, value: _T) -> list[_T]:
        found: list[Any] = [None] * self.size
        with self._detecting_loss():
            dist.all_gather_object(found, on_cpu(value))
        return found

    @override
    def largest(self, *numbers: int) -> list[int]:
        found = torch.tensor(numbers)
        with self._detecting_loss():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    @override
    def share(self, value: _T) -> _T:
        found: list[Any] = [on_cpu(value)]
        with self._detecting_loss():
            dist.broadcast_object_list(found)
        return found[0]  # type: ignore[no-any-return]

    @override
    def share_weights(self, module: nn.Module) -> None:
        weights = {name: tensor.cpu() for name, tensor in module.state_dict().items()} if self.is_first else {}
        module.load_state_dict(self.share(weights))

    @override
    def on_first(self, function: Callable[[], _T]) -> _T:
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

    @override
    def when_lost(self, stop: Callable[[], None]) -> None:
        self._stops.append(stop)
        if self._reason:
            stop()

    def reason(self) -> str:
        """Return why another rank ended. Wait briefly for the reason to arrive."""
        deadline = time.monotonic() + REASON_S
        while not self._reason and time.monotonic() < deadline and self._watch.is_alive():
            time.sleep(0.05)
        return self._reason

    def saves_last_update(self) -> bool:
        """Return whether this rank writes the run: rank 0, or rank 1 if rank 0 does not respond."""
        try:
            if self.is_first:
                self._store.set(WRITES, "")
            deadline = time.monotonic() + REASON_S
            while self.rank == 1 and not self._store.check([WRITES]):
                if time.monotonic() > deadline:
                    return True
                time.sleep(LOOK_S)
        except RuntimeError:  # the store was lost with rank 0
            return self.rank <= 1
        return self.is_first

    @contextlib.contextmanager
    def _detecting_loss(self) -> Iterator[None]:
        """Return a context that turns a failed communication into RankLostError."""
        try:
            yield
        except RuntimeError as error:
            late = "imed out" in str(error)
            other = f"did not answer within {self._timeout_s:g} s (--train.processes-timeout)" if late else "was lost"
            raise RankLostError(f"train: {self.reason() or f'another rank {other}'}") from error

    @override
    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        try:
            yield
        except CollectingStopped:
            raise RankLostError(f"train: {self.reason()}") from None

    def _look_for_failures(self) -> None:
        while not self._left.wait(LOOK_S):
            try:
                self._reason = self._store.get(FAILED).decode() if self._store.check([FAILED]) else ""
            except RuntimeError:  # the process with the store is gone
                self._reason = "rank 0 was lost"
            if self._reason:
                for stop in self._stops:
                    stop()
                return


def on_cpu(value: Any) -> Any:
    """Return ``value`` with its tensors on the CPU, including tensors in dicts, lists and tuples.

    Ranks have different GPUs, so tensors are sent from the CPU.
    """
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: on_cpu(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(on_cpu(each) for each in value)
    return value


def _describe(error: BaseException) -> str:
    """Describe an exception in one line."""
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
    """Return the settings with the actual number of processes in ``train.processes``.

    Warn if a launcher started several processes, and this one trains alone.

    Raises:
        APIUsageError: The settings ask for another number of processes.
    """
    wanted = config.train.processes
    if wanted not in (1, ranks.size):
        raise APIUsageError(
            f"train.processes asks for {wanted} processes, and there {'is' if ranks.size == 1 else 'are'} "
            f"{ranks.size}; puffer train and pufferlib.train start the processes, and torchrun --nproc-per-node "
            f"{wanted} -m pufferlib.training joins its own; a Trainer without ranks is one process"
        )
    if ranks.size == 1 and (count := _launched()) > 1:
        warnings.warn(
            f"Trainer: this process is one of {count}, and trains alone, because Trainer was called without ranks; use "
            "torchrun ... -m pufferlib.training, which trains in all processes together, or start one process",
            stacklevel=3,
        )
    return config if wanted == ranks.size else config.override({"train.processes": ranks.size})


def _launched() -> int:
    """Return the number of processes that a launcher such as ``torchrun`` started."""
    try:
        place = place_of_this_process()
    except APIUsageError:
        return 1
    return place.size if place else 1


def config_of_rank(config: Config, ranks: Ranks) -> Config:
    """Return the settings with the seed of this rank's environments and actions."""
    return config if ranks.is_first else config.override({"train.seed": ranks.seed(config.train.seed)})


def device_of_rank(device: torch.device, ranks: Ranks) -> torch.device:
    """Return the GPU of this rank if ``device`` is "cuda" without an index, otherwise ``device``.

    The ranks of a machine take its GPUs in turn. A single rank keeps ``device``.
    """
    is_chosen = str(device) != "cuda"  # a CPU, or a GPU by its number
    if is_chosen or ranks.size == 1:
        return device
    own = torch.device("cuda", ranks.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(own)
    return own


def check_agents(ranks: Ranks, vecenv: AnyVectorEnv) -> None:
    """Raise APIUsageError unless every rank has the same number of agents."""
    found = ranks.gather(int(vecenv.num_agents))
    if len(set(found)) > 1:
        each = ", ".join(f"{plural(count, 'agent')} in rank {rank}" for rank, count in enumerate(found))
        raise APIUsageError(
            f"train.processes: every rank must have the same number of agents, got {each}; set vec.num_envs and "
            "env.num_envs, so that they do not depend on the machine"
        )
