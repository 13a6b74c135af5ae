"""The worker processes of one vector environment, from their start to their end."""

import contextlib
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, util
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

import numpy as np

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError, WorkerError
from pufferlib.vector import shared
from pufferlib.vector.launch import pickle_envs, start_worker
from pufferlib.vector.messages import PHASES, RESET, WAKE, Failed, NeedMemory, News, Ready, Setup
from pufferlib.vector.plan import EnvDescription, RowSpec, VectorPlan
from pufferlib.vector.shared import SharedBatch
from pufferlib.vector.waiting import PARK_S, memory_fence, wait_until

__all__ = ["WorkerPool"]

WHERE = "vector.Multiprocessing"
CLOSE_S = 5.0  # time for all environments to close, before their workers are ended by force
FORCE_S = 1.0


class WorkerPool:
    """Processes, pipes and shared memory; commands out, outcomes and failures back.

    A failure of one worker ends them all, and raises.

    Attributes:
        memory: The arrays of all rows and the command words.
        description: What each environment is like.
    """

    memory: SharedBatch
    description: EnvDescription

    def __init__(self, plan: VectorPlan) -> None:
        self._plan = plan
        self._envs_per_worker = len(plan.envs) // plan.num_workers
        self._processes: list[ForkServerProcess] = []
        self._conns: list[Connection] = []
        self._sequence = [0] * plan.num_workers
        self._done_at = [SharedBatch.base(worker) + shared.DONE for worker in range(plan.num_workers)]
        self._infos: dict[int, Infos] = {}
        self._seeds = [env.seed for env in plan.envs]
        # At exit this runs before multiprocessing waits for processes that wait for us.
        self._end = util.Finalize(self, _end, args=(self._processes, self._conns), exitpriority=10)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Let the first environment tell the size of the batch, then hand the memory to all workers."""
        plan, workers = self._plan, range(self._plan.num_workers)
        pickled = [pickle_envs(plan.envs[w * self._envs_per_worker :][: self._envs_per_worker]) for w in workers]
        for worker in workers:
            process, conn = start_worker(worker)
            self._processes.append(process)
            self._conns.append(conn)
        self._set_up(0, pickled[0], None)
        needed = self._read(0)
        assert isinstance(needed, NeedMemory)
        self.memory = SharedBatch(needed.spec, len(plan.envs), plan.num_workers)
        self._words = self.memory.words
        try:
            self._hand_memory(0)
            for worker in workers[1:]:
                self._set_up(worker, pickled[worker], needed.spec)
                self._hand_memory(worker)
        finally:
            self.memory.close_fd()
        self.description = self._descriptions()

    def _set_up(self, worker: int, envs: bytes, spec: RowSpec | None) -> None:
        plan = self._plan
        setup = Setup(worker, plan.num_workers, len(plan.envs), envs, plan.autoreset, spec, list(sys.path))
        self._tell(worker, lambda conn: conn.send(setup))

    def _hand_memory(self, worker: int) -> None:
        pid = self._processes[worker].pid
        assert pid is not None
        self._tell(worker, lambda conn: self.memory.send(conn, pid))

    def _descriptions(self) -> EnvDescription:
        """Wait until all workers are ready; what the environments of all of them are like."""
        first: EnvDescription | None = None
        for worker in range(self._plan.num_workers):
            ready = self._read(worker)
            assert isinstance(ready, Ready)
            first = first or ready.description
            if ready.description.autoreset != first.autoreset:
                raise APIUsageError(
                    f"vector.make: all environments must have environment 0's autoreset mode, {first.autoreset!r}, "
                    f"got {ready.description.autoreset!r} in environment {worker * self._envs_per_worker}; "
                    "do not mix native and emulated ones"
                )
        assert first is not None
        return first

    @property
    def is_closed(self) -> bool:
        """Whether the workers have ended."""
        return not self._end.still_active()

    def command(self, worker: int, operation: int) -> None:
        """Start ``operation`` in ``worker``, whose last command must be finished."""
        base = SharedBatch.base(worker)
        self._sequence[worker] = (self._sequence[worker] + 1) & 0xFFFFFFFF
        self._words[base + shared.OPERATION] = operation
        self._words[base + shared.SEQUENCE] = self._sequence[worker]
        memory_fence()
        if self._words[base + shared.PARKED]:
            self._tell(worker, lambda conn: conn.send(WAKE))

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start a reset in every worker, with one seed per environment."""
        self.memory.seeds[:] = [-1 if seed is None else seed for seed in seeds]
        self._seeds = [old if new is None else new for old, new in zip(self._seeds, seeds, strict=True)]
        for worker in range(self._plan.num_workers):
            self.command(worker, RESET)

    def finished(self, worker: int) -> bool:
        """Whether the last command of ``worker`` is finished."""
        done: bool = self._words[self._done_at[worker]] == self._sequence[worker]
        return done

    def wait(self, ready: Callable[[], bool], workers: Sequence[int]) -> None:
        """Return once ``ready()``, which asks about ``workers``; raise WorkerError if one of them fails."""
        wait_until(ready, lambda: self._park(ready, workers))

    def infos(self, worker: int) -> Infos:
        """What the environments of ``worker``, which has finished, had to say."""
        flag = SharedBatch.base(worker) + shared.INFOS
        while self._words[flag] and worker not in self._infos:
            self._accept(worker)
        self._words[flag] = 0  # none are to come: whoever was interrupted here may ask again
        return self._infos.pop(worker, [])

    def close(self) -> list[Exception]:
        """Let every worker close its environments and end, by force if it must be; returns what went wrong."""
        reports = self._end() if self._end.still_active() else None
        return [self._error(worker, report) for worker, report in reports or ()]

    def _tell(self, worker: int, send: Callable[[Connection], None]) -> None:
        try:
            send(self._conns[worker])
        except ConnectionError:  # it has ended, and may have left word why
            while True:
                self._accept(worker)

    def _park(self, ready: Callable[[], bool], workers: Sequence[int]) -> None:
        """Sleep until one of ``workers`` sends something or ends."""
        self._words[shared.PARENT_PARKED] = 1
        memory_fence()
        try:
            if ready():
                return
            owner: dict[Any, int] = {self._conns[worker]: worker for worker in workers}
            owner.update((self._processes[worker].sentinel, worker) for worker in workers)
            woken = connection.wait(list(owner), PARK_S)
        finally:
            self._words[shared.PARENT_PARKED] = 0
        for worker in {owner[source] for source in woken}:
            self._accept(worker)

    def _accept(self, worker: int) -> None:
        """Read one message; infos are kept for later, a wake-up has done what it is for."""
        message = self._read(worker)
        if isinstance(message, News):
            self._infos[worker] = message.infos

    def _read(self, worker: int) -> Any:
        """The next message of ``worker``.

        Raises:
            WorkerError: It reports a failure, or has ended without a word.
            APIUsageError: Its environments break the contract.
        """
        conn, process = self._conns[worker], self._processes[worker]
        error: Exception
        try:
            if conn not in connection.wait([conn, process.sentinel]):
                raise EOFError
            message = conn.recv()
        except (EOFError, ConnectionError):
            error = self._death(worker)
        else:
            if not isinstance(message, Failed):
                return message
            error = self._error(worker, message)
        self.close()
        raise error

    def _error(self, worker: int, report: Failed) -> PufferError:
        """What to raise for a failure that a worker reports."""
        if report.misuse:
            error = APIUsageError(report.message)
            error.add_note(f"In worker {worker}:\n{report.traceback}")
            return error
        where = f"worker {worker}" if report.phase == "close" else self._whereabouts(worker, report.position)
        return WorkerError(f"{WHERE}: {report.message}, in {report.phase} of {where}.\n\n{report.traceback}")

    def _death(self, worker: int) -> WorkerError:
        """What to raise for a worker that ended without a word."""
        process = self._processes[worker]
        process.join(FORCE_S)
        code = process.exitcode
        cause = f"exit code {code}"
        if code is not None and code < 0:
            cause = f"signal {_signal_name(-code)}"
        phase, position = "build", 0
        if hasattr(self, "description"):
            base = SharedBatch.base(worker)
            phase = PHASES.get(self._words[base + shared.OPERATION], phase)
            position = self._words[base + shared.PROGRESS]
        return WorkerError(
            f"{WHERE}: worker {worker} (process {process.pid}) ended with {cause}, in {phase} of "
            f"{self._whereabouts(worker, position)}. If the machine ran out of memory (see dmesg), "
            "use fewer environments or workers; otherwise run it with backend=Serial to see what ends the process."
        )

    def _whereabouts(self, worker: int, position: int) -> str:
        index = worker * self._envs_per_worker + position
        text = f"environment {index} (worker {worker}, seed {self._seeds[index]}"
        if hasattr(self, "description"):
            agents = self.description.num_agents
            actions = self.memory.buffers["actions"][index * agents : (index + 1) * agents]
            text += f", last actions {np.array2string(actions, threshold=32, separator=', ')}"
        return f"{text})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return str(number)


def _end(processes: list[ForkServerProcess], conns: list[Connection]) -> list[tuple[int, Failed]]:
    """Close our ends, so that the workers close their environments and end; what they report of it."""
    deadline = time.monotonic() + CLOSE_S
    for conn in conns:
        # OSError: the worker has ended already.
        with socket.fromfd(conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as pipe, contextlib.suppress(OSError):
            pipe.shutdown(socket.SHUT_WR)
    reports = []
    for worker, (process, conn) in enumerate(zip(processes, conns, strict=True)):
        reports += [(worker, report) for report in _last_words(process, conn, deadline)]
        process.join(max(0.0, deadline - time.monotonic()))
        for force in (process.terminate, process.kill):
            if process.exitcode is None:
                force()
                process.join(FORCE_S)
        conn.close()
        if process.exitcode is not None:
            process.close()
    processes.clear()
    conns.clear()
    return reports


def _last_words(process: ForkServerProcess, conn: Connection, deadline: float) -> Iterator[Failed]:
    """Failures among the messages that are still to come; the others are dropped."""
    while conn in connection.wait([conn, process.sentinel], max(0.0, deadline - time.monotonic())):
        try:
            message = conn.recv()
        except (EOFError, ConnectionError):
            return
        if isinstance(message, Failed) and message.phase == "close":
            yield message
