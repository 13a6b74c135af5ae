"""Interface of the workers of a vector environment, which each kind of worker implements.

``Channel`` sends commands to workers and waits for them. ``Workers`` builds, monitors, replaces and closes them.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from pufferlib.buffers import Array, Buffers
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.vector.calls import EnvCall
from pufferlib.vector.failures import FailureContext, WorkerFailed, envs_text
from pufferlib.vector.specs import RESET, EnvDescription, EnvSpec, VectorSpec

__all__ = ["Channel", "Workers"]


class Channel(Protocol):
    """Interface that sends commands to workers, waits for them, and orders them.

    Workers with a command are *in flight*, longest-waiting first, until ``choose`` selects them and
    ``command_chosen`` sends them the next command. So ``choose`` can be repeated after an interruption.
    """

    @property
    def in_flight(self) -> list[int]:
        """Workers that have a command, or were chosen and have no new one yet."""

    @property
    def chosen(self) -> list[int]:
        """Workers selected by the last ``choose``, in ascending order."""

    def first_chosen(self) -> int:
        """Return the lowest chosen worker."""

    def command_all(self, operation: int) -> None:
        """Send every worker a command. No worker may be busy."""

    def command_chosen(self, operation: int) -> None:
        """Send the chosen workers a command. They move to the end of the queue."""

    def wait(self, needed: int, in_turn: bool) -> bool:
        """Wait until ``needed`` workers in flight are finished. Return False when it is time to check on them."""

    def wait_for(self, workers: list[int]) -> bool:
        """Wait until these workers are finished. Return False when it is time to check on them."""

    def choose(self, needed: int) -> bool:
        """Choose the ``needed`` finished workers that have waited longest. Return whether any left a message."""

    def operation(self, worker: int) -> int:
        """Return the last command of ``worker``, or 0 if it had none."""


class Workers(ABC):
    """Workers of one vector environment, each with several environments.

    Args:
        spec: Specs of the environments and the number of workers.

    Attributes:
        buffers: Arrays of all rows. Workers read the actions of a step from them, or receive a copy.
        seeds: Seed of the next reset of each environment, int64 ``(num_envs,)``. -1 for none.
        channel: Channel for commands and completions.
        description: Description of one environment. All are alike.
        last_context: Circumstances of the last failure, or None.
    """

    WHERE: str  # name of the backend in messages
    TIMEOUT_ADVICE = "raise timeout_s, or pass timeout_s=None to wait forever"

    buffers: Buffers
    seeds: Array
    channel: Channel
    description: EnvDescription
    last_context: FailureContext | None = None

    def __init__(self, spec: VectorSpec) -> None:
        self.spec = spec
        self.envs_per_worker = len(spec.envs) // spec.num_workers
        self.last_seeds = [env.seed for env in spec.envs]  # last seed of each environment

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Process ids of the workers. Empty after they have stopped."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """True if the workers have stopped."""

    @abstractmethod
    def build(self) -> None:
        """Start the workers, and wait until they have built their environments.

        Raises:
            WorkerFailed: A worker could not build its environments.
        """

    @abstractmethod
    def find_failures(self) -> Iterator[WorkerFailed]:
        """Check on the workers in flight. Yield a failure for each that has died or exceeds the time limit."""

    @abstractmethod
    def read_reply(self, worker: int) -> None:
        """Read the reply of ``worker`` to its last command, which has finished. A second call reads nothing more.

        Raises:
            WorkerFailed: The command failed.
        """

    @abstractmethod
    def take_infos(self, worker: int) -> tuple[list[Any], list[int]]:
        """Return the infos read by ``read_reply``, or the results of a call, and their ``EnvLoop.sources``.

        After this, the outcome of a reset or step is in the rows.
        """

    @abstractmethod
    def start_call(self, worker: int, call: EnvCall) -> None:
        """Start ``call`` in ``worker``, which must not be busy."""

    @abstractmethod
    def replace(self, worker: int, shows_ended: bool) -> None:
        """Stop ``worker`` and start a new one, which starts new episodes with ``last_seeds``.

        Args:
            worker: Index of the worker.
            shows_ended: Whether the rows first show the ends of truncated episodes.

        Raises:
            WorkerFailed: The new worker failed too.
        """

    @abstractmethod
    def close(self, waits: bool = True) -> list[PufferError]:
        """Close the environments and stop all workers, by force if necessary.

        Args:
            waits: Whether to wait for workers to stop by themselves.

        Returns:
            Errors of the environments.
        """

    def envs_of(self, worker: int) -> slice:
        """Return the indices of the worker's environments."""
        num_envs, num_workers = len(self.spec.envs), self.spec.num_workers
        return slice(worker * num_envs // num_workers, (worker + 1) * num_envs // num_workers)

    def specs_of(self, worker: int) -> tuple[EnvSpec, ...]:
        """Return the specs of the worker's environments, with their last seeds."""
        mine = self.envs_of(worker)
        specs = zip(self.spec.envs[mine], self.last_seeds[mine], strict=True)
        return tuple(dataclasses.replace(spec, seed=seed) for spec, seed in specs)

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start a reset in every worker, with one seed per environment. No worker may be busy."""
        self.seeds[:] = [-1 if seed is None else seed for seed in seeds]
        self.last_seeds = [old if new is None else new for old, new in zip(self.last_seeds, seeds, strict=True)]
        self.channel.command_all(RESET)

    @abstractmethod
    def notify(self) -> None:
        """Request that every worker notifies its environments before their next step or reset."""

    def note_description(self, worker: int, description: EnvDescription) -> None:
        """Record the description of the environments of ``worker``.

        Raises:
            APIUsageError: Their autoreset mode differs from worker 0.
        """
        if worker == 0:
            self.description = description
        if description.autoreset != self.description.autoreset:
            raise APIUsageError(
                "vector.make: all environments must have environment 0's autoreset mode, "
                f"{self.description.autoreset!r}, got {description.autoreset!r} in environment "
                f"{self.envs_of(worker).start}; do not mix native and emulated ones"
            )

    def context(self, worker: int, phase: str, position: int | None) -> FailureContext:
        """Return the circumstances of a failure in the environment at ``position``, or in any of them for None."""
        first = self.envs_of(worker).start + (position or 0)
        last = first if position is not None else self.envs_of(worker).stop - 1
        actions = None
        if phase == "step":
            agents = self.description.num_agents
            actions = self.buffers["actions"][first * agents : (last + 1) * agents]
        text = envs_text(worker, first, self.last_seeds[first : last + 1], actions)
        envs = self.specs_of(worker)[first - self.envs_of(worker).start :][: last + 1 - first]
        is_new = phase == "build" or (phase == "reset" and bool((self.seeds[first : last + 1] >= 0).all()))
        self.last_context = FailureContext(self.WHERE, worker, phase, text, envs, actions, is_new)
        return self.last_context
