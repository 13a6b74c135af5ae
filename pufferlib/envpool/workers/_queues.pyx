"""Queues of commands to single environments, between a parent and its worker processes."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pufferlib.native.puffer_channel cimport (
    PUFFER_CACHE_LINE, PUFFER_CHANGED, PUFFER_OPERATION_BITS, PUFFER_OPERATION_MASK, PUFFER_TIMED_OUT, PufferChannel,
    PufferSlot, PufferWait, PufferWaitPolicy, puffer_channel_leave_core, puffer_channel_publish_core,
    puffer_expect_contention, puffer_now_ns, puffer_signal_read, puffer_signal_wait, puffer_signal_wake,
    puffer_signal_write, puffer_slot_is_idle, puffer_slot_read, puffer_wait_policy,
)
from pufferlib.native.puffer_commands cimport (
    puffer_commands_entry, puffer_commands_finish, puffer_commands_get, puffer_commands_put, puffer_commands_rest,
    puffer_commands_wait,
)

import numpy as np

cdef enum:
    COMMANDS_PER_LOOK = 64  # a worker starts soon, and the checks cost nothing
    IDLE = 0  # states of an environment
    IN_FLIGHT = 1
    READY = 2  # finished, and not in a batch yet


cdef PufferChannel *find_channel(const unsigned char[::1] memory, int num_workers) except NULL:
    if memory.shape[0] < <Py_ssize_t>(sizeof(PufferChannel) + num_workers * sizeof(PufferSlot)):
        raise ValueError(f"the signals of {num_workers} workers need more memory than {memory.shape[0]} bytes")
    if <size_t>&memory[0] % PUFFER_CACHE_LINE:
        raise ValueError("the memory of signals must begin at a cache line")
    return <PufferChannel *>&memory[0]


def queue_capacity(int num_envs):
    """Return the capacity of the queue of a worker with ``num_envs`` environments, a power of 2."""
    cdef int capacity = 2
    while capacity < num_envs + 2:  # one for each environment, one for a call and one for close
        capacity *= 2
    return capacity


cdef class EnvQueues:
    """Parent's end of the queues: sends commands to environments, and tracks the order in which they finish.

    Args:
        memory: Shared and zeroed memory, which starts with the signals of the workers.
        firsts: First environment of each worker, and the number of all, int32 ``(num_workers + 1,)``.
        fits: Whether each worker and the parent has a core of its own.
        check_s: Interval at which ``wait`` returns, so that the caller can check the workers.
        entries: Queues, shared, uint32 ``(num_workers, capacity)``.
        outcomes: Kind of message that follows the last finished command, or 0, shared, uint8 ``(num_envs,)``.
        finished_ns: Time at which the last command finished, shared, int64 ``(num_envs,)``.
        call: Operation of a worker instead of an environment. It is in no batch.
        close: Operation that stops a worker.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferChannel *_channel
    cdef PufferWaitPolicy _wait_policy
    cdef uint32_t[:, ::1] _entries
    cdef uint8_t[::1] _outcomes
    cdef const int64_t[::1] _finished_ns
    cdef const int32_t[::1] _firsts
    cdef int32_t[::1] _worker_of, _order, _ready
    cdef uint8_t[::1] _state
    cdef uint32_t[::1] _sent, _seen, _late_seen
    cdef uint8_t[::1] _is_called, _is_touched
    cdef uint32_t[::1] _late_progress
    cdef int64_t[::1] _waited_ns
    cdef int32_t _num_workers, _num_envs, _num_order, _num_ready
    cdef uint32_t _collected, _num_sends, _call, _close
    cdef int64_t _check_ns, _last_check
    cdef bint _fits

    def __init__(
        self, const unsigned char[::1] memory, const int32_t[::1] firsts, bint fits, double check_s,
        uint32_t[:, ::1] entries, uint8_t[::1] outcomes, const int64_t[::1] finished_ns, uint32_t call, uint32_t close,
    ):
        cdef int32_t worker, env
        self._num_workers, self._num_envs = len(firsts) - 1, firsts[len(firsts) - 1]
        self._channel = find_channel(memory, self._num_workers)
        self._memory, self._firsts = memory, firsts
        self._wait_policy = puffer_wait_policy(fits)
        self._fits, self._check_ns = fits, <int64_t>(check_s * 1e9)
        self._entries, self._outcomes, self._finished_ns = entries, outcomes, finished_ns
        self._call, self._close = call, close
        self._worker_of, self._order, self._ready = (np.zeros(self._num_envs, np.int32) for _ in range(3))
        self._state = np.zeros(self._num_envs, np.uint8)
        self._sent, self._seen, self._late_seen, self._late_progress = (
            np.zeros(self._num_workers, np.uint32) for _ in range(4)
        )
        self._is_called, self._is_touched = (np.zeros(self._num_workers, np.uint8) for _ in range(2))
        self._waited_ns = np.zeros(self._num_workers, np.int64)
        for worker in range(self._num_workers):
            for env in range(firsts[worker], firsts[worker + 1]):
                self._worker_of[env] = worker

    @property
    def num_in_flight(self):
        """Number of environments that were sent a command and have not been taken."""
        return self._num_order

    @property
    def num_ready(self):
        """Number of environments in flight that ``collect`` has found finished."""
        return self._num_ready

    def worker_of(self, int32_t env):
        """Return the worker of an environment."""
        return self._worker_of[env]

    def find_bad(self, const int32_t[::1] envs):
        """Find an environment that cannot be sent a command now.

        Returns:
            Position in ``envs`` and the reason, "range", "twice" or "in flight", or None if all can be sent one.
        """
        cdef Py_ssize_t place, before
        cdef str reason = None
        cdef Py_ssize_t count = envs.shape[0]
        for place in range(count):
            if not 0 <= envs[place] < self._num_envs:
                reason = "range"
            elif self._state[envs[place]] == IN_FLIGHT or self._state[envs[place]] == READY:
                reason = "in flight"
            elif self._state[envs[place]] != IDLE:
                reason = "twice"
            else:
                self._state[envs[place]] = 255
                continue
            break
        else:
            place = count
        for before in range(place):
            self._state[envs[before]] = IDLE
        return None if reason is None else (place, reason)

    def send(self, const int32_t[::1] envs, uint32_t operation):
        """Add a command for each of these environments, for which ``find_bad`` returned None."""
        cdef Py_ssize_t place
        cdef int32_t env, worker
        for place in range(envs.shape[0]):
            env = envs[place]
            worker = self._worker_of[env]
            self._state[env] = IN_FLIGHT
            self._order[self._num_order] = env
            self._num_order += 1
            self._put(worker, env - self._firsts[worker], operation)
        self._publish()

    cdef void _put(self, int32_t worker, uint32_t position, uint32_t operation) noexcept:
        puffer_commands_put(
            &self._entries[worker, 0], <uint32_t>self._entries.shape[1], self._sent[worker],
            puffer_commands_entry(position, operation))
        self._sent[worker] += 1
        self._is_touched[worker] = True

    cdef void _publish(self) noexcept:
        """Publish all added commands, then wake the workers."""
        cdef int32_t worker
        for worker in range(self._num_workers):
            if self._is_touched[worker]:
                puffer_signal_write(&self._channel.slots[worker].command, self._sent[worker])
        for worker in range(self._num_workers):
            if self._is_touched[worker]:
                self._is_touched[worker] = False
                puffer_signal_wake(&self._channel.slots[worker].command)
        self._num_sends += 1
        if self._fits and self._num_sends % COMMANDS_PER_LOOK == 0:
            puffer_channel_publish_core(self._channel)

    def command_one(self, int32_t worker, uint32_t operation):
        """Add a command for a worker instead of an environment."""
        self._is_called[worker] = operation == self._call
        self._put(worker, 0, operation)
        self._publish()

    def is_called(self, int32_t worker):
        """Return whether a worker was called and ``collect`` has not found the call finished."""
        return bool(self._is_called[worker])

    def collect(self):
        """Find the commands that finished since the last call, in the order in which they finished.

        Returns:
            Pairs of a worker and its environment with a message to read, in this order.
        """
        cdef list messages = []
        cdef int32_t worker, best, env
        cdef uint32_t entry
        cdef int64_t best_ns
        while True:
            best = -1
            best_ns = 0
            for worker in range(self._num_workers):
                if self._seen[worker] == puffer_slot_read(&self._channel.slots[worker].completed):
                    continue
                entry = puffer_commands_get(
                    &self._entries[worker, 0], <uint32_t>self._entries.shape[1], self._seen[worker])
                env = self._firsts[worker] + <int32_t>(entry >> PUFFER_OPERATION_BITS)
                if best < 0 or self._finished_ns[env] < best_ns:
                    best, best_ns = worker, self._finished_ns[env]
            if best < 0:
                return messages
            self._take_in(best, messages)

    cdef int _take_in(self, int32_t worker, list messages) except -1:
        """Process the next command that ``worker`` has finished."""
        cdef uint32_t entry = puffer_commands_get(
            &self._entries[worker, 0], <uint32_t>self._entries.shape[1], self._seen[worker])
        cdef int32_t env = self._firsts[worker] + <int32_t>(entry >> PUFFER_OPERATION_BITS)
        self._seen[worker] += 1
        self._collected += 1
        if entry & PUFFER_OPERATION_MASK == self._call:
            self._is_called[worker] = False
            return 0
        if entry & PUFFER_OPERATION_MASK != self._close:
            self._state[env] = READY
            self._ready[self._num_ready] = env
            self._num_ready += 1
        if self._outcomes[env]:
            messages.append((worker, env))
            self._outcomes[env] = 0
        return 0

    def is_ready(self, int32_t env):
        """Return whether an environment is idle, as of the last ``collect``."""
        return self._state[env] != IN_FLIGHT

    def has_first(self, int32_t count):
        """Return whether the ``count`` environments whose commands were sent first are ready."""
        cdef int32_t place
        for place in range(count):
            if self._state[self._order[place]] != READY:
                return False
        return True

    def take(self, int32_t count, bint as_sent):
        """Take environments that are ready, in the order in which they finished, or were sent their commands.

        Returns:
            Environments, int32 ``(count,)``.
        """
        cdef int32_t[::1] source = self._order if as_sent else self._ready
        cdef int32_t place
        taken = np.array(source[:count])
        cdef int32_t[::1] envs = taken
        for place in range(count):
            self._state[envs[place]] = IDLE
        self._num_ready = self._keep_ready(self._ready, self._num_ready)
        self._num_order = self._keep_ready(self._order, self._num_order)
        return taken

    cdef int32_t _keep_ready(self, int32_t[::1] envs, int32_t count) noexcept:
        """Drop the idle environments among the first ``count``. Return the number that is left."""
        cdef int32_t place, kept = 0
        for place in range(count):
            if self._state[envs[place]] != IDLE:
                envs[kept] = envs[place]
                kept += 1
        return kept

    def wait(self, int32_t more):
        """Wait until ``more`` commands than ``collect`` has found are finished, or the workers must be checked.

        Returns:
            Whether they are finished. If not, check the workers and wait again.
        """
        cdef int64_t now = puffer_now_ns()
        cdef PufferWait outcome
        cdef uint32_t target = self._collected + <uint32_t>more
        puffer_expect_contention(&self._wait_policy, self._num_ready + more < self._num_order)
        while now - self._last_check < self._check_ns:
            with nogil:
                outcome = puffer_commands_wait(
                    self._channel, target, &self._wait_policy, self._check_ns - (now - self._last_check))
            if outcome == PUFFER_CHANGED:
                return True
            PyErr_CheckSignals()
            now = puffer_now_ns()
        return False

    def find_late(self, int64_t timeout_ns):
        """Check all workers, after ``wait`` returned False.

        Time in which the parent was stopped does not count.

        Returns:
            A worker that has been at the same command longer than ``timeout_ns``, or -1.
        """
        cdef int64_t now = puffer_now_ns()
        cdef int64_t passed = min(now - self._last_check, 2 * self._check_ns)
        cdef int32_t worker, late = -1
        cdef uint32_t completed, progress
        cdef PufferSlot *slot
        self._last_check = now
        for worker in range(self._num_workers):
            slot = &self._channel.slots[worker]
            completed, progress = puffer_slot_read(&slot.completed), puffer_slot_read(&slot.progress)
            is_new = completed != self._late_seen[worker] or progress != self._late_progress[worker]
            if is_new or puffer_slot_is_idle(slot):
                self._late_seen[worker], self._late_progress[worker] = completed, progress
                self._waited_ns[worker] = 0
                continue
            self._waited_ns[worker] += passed
            if self._waited_ns[worker] > timeout_ns:
                late = worker
        return late

    def operation(self, int32_t worker):
        """Return the current or last operation of the worker, or 0 for none."""
        cdef PufferSlot *slot = self._slot(worker)
        cdef uint32_t completed = puffer_slot_read(&slot.completed)
        cdef uint32_t number = completed - puffer_slot_is_idle(slot)
        if puffer_signal_read(&slot.command) == 0:
            return 0
        return puffer_commands_get(
            &self._entries[worker, 0], <uint32_t>self._entries.shape[1], number) & PUFFER_OPERATION_MASK

    def progress(self, int32_t worker):
        """Return the position of the environment that the worker is running."""
        return puffer_slot_read(&self._slot(worker).progress)

    def outcome(self, int32_t worker):
        """Return the outcome of the last call of the worker."""
        return puffer_slot_read(&self._slot(worker).outcome)

    def acknowledge(self, int32_t worker):
        """Clear the outcome of the last call of the worker."""
        self._slot(worker).outcome = 0

    cdef PufferSlot *_slot(self, int32_t worker) except NULL:
        if not 0 <= worker < self._num_workers:
            raise IndexError(f"worker {worker} of {self._num_workers}")
        return &self._channel.slots[worker]


cdef class QueueEnd:
    """Worker's end of a queue: takes commands one after the other, and reports their outcomes.

    Args:
        memory: Memory of the ``EnvQueues``.
        num_workers: Number of workers.
        worker: Index of this worker.
        fits: Whether each worker and the parent has a core of its own.
        entries: Queue of this worker, uint32 ``(capacity,)``.
        outcomes: Outcome for each environment of the worker, uint8.
        finished_ns: Finishing time for each environment of the worker, int64.

    Attributes:
        position: Position of the environment of the last command.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferChannel *_channel
    cdef PufferSlot *_slot
    cdef PufferWaitPolicy _wait_policy
    cdef uint32_t[::1] _entries
    cdef uint8_t[::1] _outcomes
    cdef int64_t[::1] _finished_ns
    cdef int32_t _worker, _num_workers
    cdef uint32_t _number
    cdef int64_t _woken_ns
    cdef readonly int position

    def __init__(
        self, const unsigned char[::1] memory, int num_workers, int32_t worker, bint fits, uint32_t[::1] entries,
        uint8_t[::1] outcomes, int64_t[::1] finished_ns,
    ):
        if not 0 <= worker < num_workers:
            raise IndexError(f"worker {worker} of {num_workers}")
        self._channel = find_channel(memory, num_workers)
        self._slot = &self._channel.slots[worker]
        self._memory, self._worker, self._num_workers = memory, worker, num_workers
        self._wait_policy = puffer_wait_policy(fits)
        self._entries, self._outcomes, self._finished_ns = entries, outcomes, finished_ns

    def wait(self, double timeout_s):
        """Wait for a command. Return its operation, or 0 if none comes within ``timeout_s``."""
        cdef int64_t deadline, now
        cdef PufferWait outcome
        cdef uint32_t entry
        if puffer_signal_read(&self._slot.command) == self._number:
            now = puffer_now_ns()
            puffer_commands_rest(&self._wait_policy, now - self._woken_ns)
            deadline = now + <int64_t>(timeout_s * 1e9)
            while True:
                with nogil:
                    outcome = puffer_signal_wait(
                        &self._slot.command, self._number, &self._wait_policy, deadline - puffer_now_ns())
                if outcome == PUFFER_CHANGED:
                    break
                PyErr_CheckSignals()
                if outcome == PUFFER_TIMED_OUT:
                    return 0
            self._woken_ns = puffer_now_ns()
        entry = puffer_commands_get(&self._entries[0], <uint32_t>self._entries.shape[0], self._number)
        self._number += 1
        if self._number % COMMANDS_PER_LOOK == 0:
            puffer_channel_leave_core(self._channel, self._worker, self._num_workers)
        self.position = entry >> PUFFER_OPERATION_BITS
        return entry & PUFFER_OPERATION_MASK

    def finish(self, uint8_t outcome):
        """Mark the command as finished. ``outcome`` is the kind of message that follows, or 0 for none."""
        self._outcomes[self.position] = outcome
        self._report()

    def finish_call(self, uint32_t outcome):
        """Mark the call of the worker as finished."""
        self._slot.outcome = outcome
        self._report()

    cdef void _report(self) noexcept:
        self._finished_ns[self.position] = puffer_now_ns()
        with nogil:
            puffer_commands_finish(self._channel, self._worker, self._number)
