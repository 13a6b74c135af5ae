"""``Multiprocessing`` backend, and the worker processes behind it."""

import multiprocessing.process
import os
import pickle
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import connection, util
from typing import Any, NoReturn, Protocol

from pufferlib.buffers import ArraySpecs
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.machine.pickling import pickle_by_value, pickled
from pufferlib.vector.calls import EnvCall
from pufferlib.vector.failures import (
    Failed,
    FailureContext,
    WorkerFailed,
    error_of,
    late_error,
    stalled_error,
    vanished_error,
)
from pufferlib.vector.multiprocessing._channel import WorkerChannel
from pufferlib.vector.multiprocessing.process import (
    WorkerProcess,
    WorkerResources,
    explain_file_limit,
    forget_server,
    shut_down,
    start_worker,
)
from pufferlib.vector.multiprocessing.shared_memory import SharedBatch
from pufferlib.vector.multiprocessing.worker import (
    CALL,
    REPLY,
    NeedMemory,
    Reply,
    Setup,
    Surroundings,
    Worker,
    making_modules,
)
from pufferlib.vector.pooled import PooledVectorEnv
from pufferlib.vector.specs import PHASES, RESET, STEP, Ready, RowSpec, VectorSpec
from pufferlib.vector.workers import Workers

__all__ = ["Multiprocessing", "WorkerProcesses", "abandon_in_forks"]

CHECK_S = 0.1  # interval at which workers are checked
DEATH_S = 1.0  # time for the system to report an exit code
_NO_TIMEOUT_NS = 1 << 62


class WorkerProcesses(Workers):
    """Worker processes connected by pipes and shared memory.

    Args:
        spec: Specs of the environments and the number of processes.
    """

    WHERE = "vector.Multiprocessing"
    SERVER: type[Worker] = Worker
    channel: WorkerChannel
    ADVICE = "use fewer environments or workers; otherwise run it with backend=Serial to see what ends the process"

    def __init__(self, spec: VectorSpec) -> None:
        super().__init__(spec)
        self._fits = spec.num_workers < usable_cpus()
        self._check_s = CHECK_S if spec.timeout_s is None else min(CHECK_S, spec.timeout_s)
        self._timeout_ns = _NO_TIMEOUT_NS if spec.timeout_s is None else int(spec.timeout_s * 1e9)
        self._replies: dict[int, Reply] = {}
        self._called = ""
        self._resources = WorkerResources()
        # At exit this must run before multiprocessing joins processes that wait for us.
        self._end = util.Finalize(self, shut_down, args=(self._resources,), exitpriority=10)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers. Empty after they have stopped."""
        return [handle.process.pid or 0 for handle in self.processes]

    @property
    def processes(self) -> list[WorkerProcess]:
        """Worker processes. Empty after they have stopped."""
        return self._resources.workers

    @property
    def is_closed(self) -> bool:
        """True if the workers have stopped."""
        return not self._end.still_active()

    def build(self) -> None:
        """Determine the size of the batch from the first environment, then send the shared memory to all workers."""
        self._makers = making_modules(self.WHERE)
        spec, workers = self.spec, range(self.spec.num_workers)
        with explain_file_limit(0):
            envs = [self._pickle(self.specs_of(worker)) for worker in workers]
        for worker in workers:
            self.processes.append(self._start_worker(worker))
        self._set_up(0, envs[0], None)
        needed = self._read_with_deadline(0)
        assert isinstance(needed, NeedMemory)
        self._row_spec = needed.row_spec
        more = self._more_arrays(needed.row_spec)
        self._memory = self._resources.memory = SharedBatch(needed.row_spec, len(spec.envs), spec.num_workers, more)
        self.buffers, self.seeds = self._memory.buffers, self._memory.seeds
        self.channel = self._make_channel()
        self._resources.channel = self.channel
        self._send_memory(0)
        for worker in workers[1:]:
            self._set_up(worker, envs[worker], needed.row_spec)
            self._send_memory(worker)
        for worker in workers:
            ready = self._read_with_deadline(worker)
            assert isinstance(ready, Ready)
            self.note_description(worker, ready.description)
        if spec.on_crash != "restart":
            self._memory.close_fd()

    def _more_arrays(self, row_spec: RowSpec) -> ArraySpecs:
        """Return shape and dtype of additional arrays in the shared memory."""
        return {}

    def _make_channel(self) -> Any:
        return WorkerChannel(self._memory.memory, self.spec.num_workers, self._fits, self._check_s)

    def _options(self) -> Any:
        """Return the options of the ``Worker`` subclass."""
        return None

    def _start_worker(self, worker: int) -> WorkerProcess:
        return start_worker(worker, self.spec.timeout_s)

    def _surroundings(self) -> Surroundings:
        return Surroundings()

    def _pickle(self, value: object) -> bytes:
        return pickle_by_value(value)

    def _set_up(self, worker: int, envs: bytes, row_spec: RowSpec | None, last_command: int = 0) -> None:
        setup = Setup(
            worker=worker,
            num_workers=self.spec.num_workers,
            num_envs=len(self.spec.envs),
            envs=envs,
            autoreset=self.spec.autoreset,
            row_spec=row_spec,
            surroundings=self._surroundings(),
            last_command=last_command,
            fits=self._fits,
            hide_output=self.spec.hide_output,
            server=self.SERVER,
            options=self._options(),
            makers=self._makers,
        )
        # The space in it may be of a class defined in the caller's script.
        self._send(worker, pickle_by_value(setup, with_registrations=False))

    def _send_memory(self, worker: int) -> None:
        pid = self.processes[worker].process.pid
        assert pid is not None
        self._send_checked(worker, lambda: self._memory.send(self.processes[worker].conn, pid))

    def _send(self, worker: int, data: bytes) -> None:
        self._send_checked(worker, lambda: self.processes[worker].conn.send_bytes(data))

    def _send_checked(self, worker: int, send: Callable[[], None]) -> None:
        try:
            send()
        except BlockingIOError:
            self._raise_stalled(worker)
        except ConnectionError:
            self._drain(worker)

    def find_failures(self) -> Iterator[WorkerFailed]:
        """Check on the workers in flight. Yield a failure for each that has died or exceeds the time limit."""
        if self.is_closed:
            raise APIUsageError(
                f"{self.WHERE}: the environments were closed meanwhile, by a signal handler or another thread; make "
                "new ones"
            )
        late = self.channel.find_late(self._timeout_ns)
        sentinels = {handle.process.sentinel: worker for worker, handle in enumerate(self.processes)}
        ended = [sentinels[sentinel] for sentinel in connection.wait(list(sentinels), 0)]  # type: ignore[index]
        findings = [(self._drain, worker) for worker in ended]
        if late >= 0 and late not in ended:
            findings.append((self._raise_late, late))
        for find, worker in findings:
            try:
                find(worker)
            except WorkerFailed as failure:
                yield failure

    def replace(self, worker: int, shows_ended: bool) -> None:
        """Stop ``worker``, build its environments in a new process, and start new episodes."""
        handle = self.processes[worker]
        handle.process.kill()
        handle.end(time.monotonic() + 1.0)
        self._replies.pop(worker, None)
        last_command = self.channel.replace(worker)
        self._memory.mailboxes[worker].take()  # discard a message that the old worker did not read
        envs = self._pickle(self.specs_of(worker))
        self.processes[worker] = self._start_worker(worker)
        self._set_up(worker, envs, self._row_spec, last_command)
        self._send_memory(worker)
        self.channel.command_one(worker, STEP if shows_ended else RESET)

    def start_call(self, worker: int, call: EnvCall) -> None:
        """Start ``call`` in ``worker``, which must not be busy. ``take_infos`` returns the results."""
        self._called = call.name or call.kind
        data = pickled(tuple(call)) if call.is_plain else self._pickle(tuple(call))
        is_left = self._memory.mailboxes[worker].put(data)
        self.channel.command_one(worker, CALL)
        if not is_left:  # after the command, because a long message blocks the pipe until it is read
            self._send(worker, data)

    def notify(self) -> None:
        """Request that every worker notifies its environments before their next step or reset."""
        self._memory.notify[:] = True

    def abandon(self) -> None:
        """Release the workers without stopping them, in a forked copy of the process that owns them."""
        for handle in self.processes:
            multiprocessing.process._children.discard(handle.process)  # type: ignore[attr-defined]
        self._end.cancel()

    def close(self, waits: bool = True) -> list[PufferError]:
        """Close the environments and stop all workers, by force if necessary. Return errors of the environments."""
        self._resources.waits = waits
        reports = self._end() if self._end.still_active() else None
        return [error_of(report, f"worker {worker}", worker, self.WHERE) for worker, report in reports or ()]

    def read_reply(self, worker: int) -> None:
        """Read the message about the last command of ``worker``, if there is one."""
        while (outcome := self.channel.outcome(worker)) and worker not in self._replies:
            left = self._memory.mailboxes[worker].take() if outcome == REPLY else None
            message = self._read_with_deadline(worker) if left is None else self._unpickled(worker, left)
            if isinstance(message, tuple):
                self._replies[worker] = Reply(*message)

    def take_infos(self, worker: int) -> tuple[list[Any], list[int]]:
        """Return the infos read by ``read_reply`` and their sources, or the results of a call."""
        self.channel.acknowledge(worker)
        reply = self._replies.pop(worker, None)
        return (reply.content, reply.sources) if reply else ([], [])

    def _drain(self, worker: int) -> NoReturn:
        """Read remaining messages of a worker that has ended, up to its failure."""
        while True:
            self._read(worker, self.processes[worker].wait(None))

    def _read(self, worker: int, ready: list[int]) -> Any:
        """Read the next message of ``worker``.

        Args:
            worker: Index of the worker.
            ready: Readable files, as returned by ``WorkerProcess.wait``.

        Raises:
            WorkerFailed: The worker reports a failure, has ended without a report, or stalls in the middle of a
                message.
        """
        handle = self.processes[worker]
        try:
            if handle.conn.fileno() not in ready:
                raise EOFError
            message = self._unpickled(worker, handle.conn.recv_bytes())
        except BlockingIOError:  # stalled in the middle of a message
            self._raise_stalled(worker)
        except (EOFError, OSError):  # the worker has ended, perhaps in the middle of a message
            message = None
        if message is not None and not isinstance(message, Failed):
            return message
        context = self._context(worker, message.position if message else None)
        if message is not None:
            raise WorkerFailed(worker, error_of(message, context.text, worker, self.WHERE))
        handle.process.join(DEATH_S)
        pid, exitcode = handle.process.pid, handle.process.exitcode
        raise WorkerFailed(worker, vanished_error(context, pid, exitcode, self.ADVICE, handle.read_stack()))

    def _unpickled(self, worker: int, data: "bytes | memoryview") -> Any:
        """Unpickle a message of ``worker``. Raise WorkerFailed if that fails."""
        try:
            return pickle.loads(data)
        except Exception as error:
            raise WorkerFailed(
                worker,
                APIUsageError(
                    f"{self.WHERE}: infos and spaces must be things that this process can unpickle, got "
                    f"{type(error).__name__} ({error}) in {self._context(worker).text}; give numbers, strings "
                    "and arrays, or use backend=Serial"
                ),
            ) from error

    def _read_with_deadline(self, worker: int) -> Any:
        """Read the next message of ``worker`` while it builds its environments."""
        handle, waited_s, seen = self.processes[worker], 0.0, -1
        while not (ready := handle.wait(self._check_s)):
            waited_s += self._check_s
            if hasattr(self, "channel") and self.channel.progress(worker) != seen:
                seen, waited_s = self.channel.progress(worker), 0.0
            if self.spec.timeout_s is not None and waited_s > self.spec.timeout_s:
                self._raise_late(worker)
        return self._read(worker, ready)

    def _raise_late(self, worker: int) -> NoReturn:
        """Kill a worker that exceeds the time limit, and raise its failure."""
        assert self.spec.timeout_s is not None
        handle = self.processes[worker]
        error = late_error(self._context(worker), self.spec.timeout_s, self.TIMEOUT_ADVICE, handle.ask_stack())
        handle.process.kill()
        raise WorkerFailed(worker, error)

    def _raise_stalled(self, worker: int) -> NoReturn:
        """Kill a worker that stalls in the middle of a message, and raise its failure."""
        assert self.spec.timeout_s is not None
        process = self.processes[worker].process
        error = stalled_error(self._context(worker), process.pid, self.spec.timeout_s, self.TIMEOUT_ADVICE)
        process.kill()
        raise WorkerFailed(worker, error)

    def _context(self, worker: int, position: int | None = None) -> FailureContext:
        """Return the circumstances of a failure in the environment at ``position``, or in the current one for None."""
        phase = "build"
        if hasattr(self, "channel"):
            operation = self.channel.operation(worker)
            phase = self._called if operation == CALL else PHASES.get(operation, phase)
            position = self.channel.progress(worker) if position is None else position
        return self.context(worker, phase, position or 0)


class Abandons(Protocol):
    """Owner of workers that can release them after a fork."""

    def _abandon(self) -> None:
        """Release the workers without stopping them, in a forked copy of the process that owns them."""


_alive: "weakref.WeakSet[Abandons]" = weakref.WeakSet()


class Multiprocessing(PooledVectorEnv):
    """Environments in worker processes, several in each, with arrays in shared memory.

    The arguments are the ones of ``pufferlib.vector.make``, without ``backend``.

    A batch consists of whole workers. With ``zero_copy=True``, batches are adjacent rows in a fixed order, without
    copies. The same actions then give the same data in every run. With ``zero_copy=False``, a batch holds the workers
    that finish first. Their rows are copied together, unless one worker makes a whole batch.

    ``driver_env`` is a description, because the environments only live in the workers.
    """

    _workers: WorkerProcesses

    def _make_workers(self, spec: VectorSpec) -> WorkerProcesses:
        return WorkerProcesses(spec)

    def _start(self, spec: VectorSpec) -> None:
        super()._start(spec)
        abandon_in_forks(self)

    def _abandon(self) -> None:
        """Release the workers without stopping them, in a forked copy of the process that owns them."""
        self._workers.abandon()
        if self._next_call != "close":
            self._next_call = "leave"


def abandon_in_forks(owner: Abandons) -> None:
    """Make copies of this process, created by ``os.fork``, release the workers of ``owner`` without stopping them."""
    global _notices_forks
    _alive.add(owner)
    if not _notices_forks:
        os.register_at_fork(after_in_child=_after_fork)
        _notices_forks = True


_notices_forks = False


def _after_fork() -> None:
    for vecenv in _alive:
        vecenv._abandon()
    forget_server()
