"""Signals between a parent and its worker processes. Both wait without holding the GIL."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pufferlib.native.puffer_channel cimport (
    PUFFER_CACHE_LINE, PUFFER_CHANGED, PUFFER_OPERATION_BITS, PUFFER_OPERATION_MASK, PUFFER_TIMED_OUT, PufferChannel,
    PufferSignal, PufferSlot, PufferWait, PufferWaitPolicy, puffer_channel_leave_core, puffer_channel_publish_core,
    puffer_expect_contention, puffer_now_ns, puffer_signal_add, puffer_signal_read, puffer_signal_wait, puffer_signal_wake,
    puffer_signal_write, puffer_slot_clear, puffer_slot_is_idle, puffer_slot_read, puffer_slot_write, puffer_wait_policy,
)

cdef enum:
    COMMANDS_PER_LOOK = 64  # rare enough to cost nothing, frequent enough to move a worker quickly


def channel_bytes(int num_workers):
    """Return the bytes of shared memory needed for the signals, a multiple of the cache line."""
    return sizeof(PufferChannel) + num_workers * sizeof(PufferSlot)


def progress_at(int worker):
    """Return the offset in bytes of the progress of ``worker`` in the shared memory."""
    cdef PufferChannel *channel = NULL
    return <Py_ssize_t>&channel.slots[worker].progress


cdef PufferChannel *find_channel(const unsigned char[::1] memory, int num_workers) except NULL:
    if memory.shape[0] < <Py_ssize_t>(sizeof(PufferChannel) + num_workers * sizeof(PufferSlot)):
        raise ValueError(f"{num_workers} workers need {channel_bytes(num_workers)} bytes, got {memory.shape[0]}")
    if <size_t>&memory[0] % PUFFER_CACHE_LINE:
        raise ValueError("the memory of signals must start at a cache line")
    return <PufferChannel *>&memory[0]


cdef inline uint32_t next_command(uint32_t last, uint32_t operation) noexcept nogil:
    return ((last >> PUFFER_OPERATION_BITS) + 1) << PUFFER_OPERATION_BITS | operation


cdef PufferWait wait_for_idle(
    PufferChannel *channel, const int32_t *workers, int32_t count, int32_t needed, PufferWaitPolicy *policy,
    int64_t timeout_ns) noexcept nogil:
    """Wait until at least ``needed`` of ``workers`` have finished, or until ``timeout_ns`` has passed."""
    cdef int64_t now, deadline = 0
    cdef uint32_t last
    cdef int32_t i, idle
    cdef PufferWait outcome = PUFFER_CHANGED
    while outcome == PUFFER_CHANGED:
        last, idle = puffer_signal_read(&channel.finished), 0
        for i in range(count):
            idle += puffer_slot_is_idle(&channel.slots[workers[i]])
        if idle >= needed:
            return PUFFER_CHANGED
        now = puffer_now_ns()
        if deadline == 0:
            deadline = now + timeout_ns
        if now >= deadline:
            return PUFFER_TIMED_OUT
        outcome = puffer_signal_wait(&channel.finished, last, policy, deadline - now)
    return outcome


cdef class WorkerChannel:
    """Parent's end of the channel, which sends commands, waits for workers and orders them.

    Workers with a command are *in flight*, longest-waiting first, until ``choose`` selects them and
    ``command_chosen`` sends them the next command. So ``choose`` can be repeated after an interruption.

    Args:
        memory: Shared memory of ``channel_bytes``, zeroed.
        num_workers: Number of workers of the channel.
        fits: Whether each worker and the parent has its own core.
        check_s: Interval in seconds at which ``wait`` returns, so that the caller can check on the workers.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferChannel *_channel
    cdef PufferWaitPolicy _wait_policy
    cdef int32_t _num_workers, _num_in_flight, _num_chosen
    cdef int32_t *_in_flight  # arrays with one entry per worker
    cdef int32_t *_chosen
    cdef int32_t *_waited_for
    cdef int64_t *_waited_ns
    cdef uint64_t *_seen
    cdef int64_t _check_ns, _last_check
    cdef uint32_t _num_commands
    cdef bint _fits

    def __cinit__(self, const unsigned char[::1] memory, int num_workers, bint fits, double check_s):
        self._channel = find_channel(memory, num_workers)
        self._memory = memory
        self._num_workers = num_workers
        self._wait_policy = puffer_wait_policy(fits)
        self._fits = fits
        self._check_ns = <int64_t>(check_s * 1e9)
        self._in_flight = <int32_t *>PyMem_Calloc(num_workers, sizeof(int32_t))
        self._chosen = <int32_t *>PyMem_Calloc(num_workers, sizeof(int32_t))
        self._waited_for = <int32_t *>PyMem_Calloc(num_workers, sizeof(int32_t))
        self._waited_ns = <int64_t *>PyMem_Calloc(num_workers, sizeof(int64_t))
        self._seen = <uint64_t *>PyMem_Calloc(num_workers, sizeof(uint64_t))
        if not (self._in_flight and self._chosen and self._waited_for and self._waited_ns and self._seen):
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self._in_flight)
        PyMem_Free(self._chosen)
        PyMem_Free(self._waited_for)
        PyMem_Free(self._waited_ns)
        PyMem_Free(self._seen)

    @property
    def in_flight(self):
        """Workers that have a command, or were chosen and have no new one yet."""
        return [self._in_flight[i] for i in range(self._num_in_flight)]

    @property
    def chosen(self):
        """Workers selected by the last ``choose``, in ascending order."""
        return [self._chosen[i] for i in range(self._num_chosen)]

    def command_all(self, uint32_t operation):
        """Send every worker a command. No worker may be busy."""
        for worker in range(self._num_workers):
            self._in_flight[worker] = worker
        self._num_chosen = 0
        self._num_in_flight = self._num_workers
        self._command(self._in_flight, self._num_workers, operation)

    def command_chosen(self, uint32_t operation):
        """Send the chosen workers a command. They move to the end of the queue."""
        cdef int32_t kept = 0, i, k
        for i in range(self._num_in_flight):
            for k in range(self._num_chosen):
                if self._in_flight[i] == self._chosen[k]:
                    break
            else:
                self._in_flight[kept] = self._in_flight[i]
                kept += 1
        for k in range(self._num_chosen):
            self._in_flight[kept + k] = self._chosen[k]
        self._command(self._chosen, self._num_chosen, operation)
        self._num_chosen = 0

    def command_one(self, int32_t worker, uint32_t operation):
        """Send one worker a command. It must not be busy, and its position in the queue does not change."""
        self._command(&worker, 1, operation)

    cdef void _command(self, const int32_t *workers, int32_t count, uint32_t operation) noexcept:
        """Send a command, and at intervals publish the parent's core, so that workers leave it."""
        cdef int32_t i
        cdef PufferSignal *command
        for i in range(count):
            command = &self._channel.slots[workers[i]].command
            puffer_signal_write(command, next_command(puffer_signal_read(command), operation))
        for i in range(count):  # only after all commands are written
            puffer_signal_wake(&self._channel.slots[workers[i]].command)
        self._num_commands += 1
        if self._fits and self._num_commands % COMMANDS_PER_LOOK == 0:
            puffer_channel_publish_core(self._channel)

    def wait(self, int32_t needed, bint in_turn):
        """Wait until ``needed`` of the workers in flight are finished, or it is time to check on them.

        Args:
            needed: Number of workers.
            in_turn: Whether only the workers that have waited longest count.

        Returns:
            Whether they are finished. If False, check on the workers and wait again.
        """
        if needed > self._num_in_flight:
            raise RuntimeError(f"cannot wait for {needed} workers, only {self._num_in_flight} are in flight")
        puffer_expect_contention(&self._wait_policy, needed < self._num_in_flight)
        return self._wait(self._in_flight, needed if in_turn else self._num_in_flight, needed)

    def wait_for(self, workers):
        """Wait until these workers are finished. Return False when it is time to check on them."""
        cdef int32_t count = 0
        for worker in workers:
            self._slot(worker)
            self._waited_for[count] = worker
            count += 1
        puffer_expect_contention(&self._wait_policy, count < self._num_in_flight)
        return self._wait(self._waited_for, count, count)

    cdef bint _wait(self, const int32_t *workers, int32_t count, int32_t needed) except -1:
        cdef int64_t now = puffer_now_ns()
        cdef PufferWait outcome
        while now - self._last_check < self._check_ns:
            with nogil:
                outcome = wait_for_idle(
                    self._channel, workers, count, needed, &self._wait_policy,
                    self._check_ns - (now - self._last_check))
            if outcome == PUFFER_CHANGED:
                return True
            PyErr_CheckSignals()
            now = puffer_now_ns()
        return False

    def choose(self, int32_t needed):
        """Choose the ``needed`` finished workers that have waited longest. Return whether any left a message."""
        cdef int32_t count = 0, i, worker, place
        cdef uint32_t outcomes = 0
        for i in range(self._num_in_flight):
            if count == needed:
                break
            worker = self._in_flight[i]
            if not puffer_slot_is_idle(&self._channel.slots[worker]):
                continue
            outcomes |= puffer_slot_read(&self._channel.slots[worker].outcome)
            place = count
            while place > 0 and self._chosen[place - 1] > worker:
                self._chosen[place] = self._chosen[place - 1]
                place -= 1
            self._chosen[place] = worker
            count += 1
        self._num_chosen = count
        return outcomes != 0

    def first_chosen(self):
        """Return the lowest chosen worker."""
        return self._chosen[0]

    def find_late(self, int64_t timeout_ns):
        """Find a worker that exceeds the time limit. Call this whenever ``wait`` returns False.

        Time is counted only up to twice the check interval per call. So workers are not blamed if the parent was
        suspended for a while.

        Returns:
            Worker that has been in the same environment for longer than ``timeout_ns``, or -1.
        """
        cdef int64_t now = puffer_now_ns()
        cdef int64_t passed = min(now - self._last_check, 2 * self._check_ns)
        cdef int32_t worker, late = -1
        cdef uint64_t seen
        cdef PufferSlot *slot
        self._last_check = now
        for worker in range(self._num_workers):
            slot = &self._channel.slots[worker]
            seen = <uint64_t>puffer_signal_read(&slot.command) << 32 | puffer_slot_read(&slot.progress)
            if seen != self._seen[worker] or puffer_slot_is_idle(slot):
                self._seen[worker] = seen
                self._waited_ns[worker] = 0
                continue
            self._waited_ns[worker] += passed
            if self._waited_ns[worker] > timeout_ns:
                late = worker
        return late

    def operation(self, int32_t worker):
        """Return the last operation sent to the worker, or 0 if there was none."""
        return puffer_signal_read(&self._slot(worker).command) & PUFFER_OPERATION_MASK

    def progress(self, int32_t worker):
        """Return the position of the environment that the worker is in."""
        return puffer_slot_read(&self._slot(worker).progress)

    def outcome(self, int32_t worker):
        """Return the outcome of the worker's last command."""
        return puffer_slot_read(&self._slot(worker).outcome)

    def acknowledge(self, int32_t worker):
        """Clear the outcome of the worker."""
        self._slot(worker).outcome = 0

    def replace(self, int32_t worker):
        """Clear the slot of a stopped worker for its replacement. Return the last command of the old worker."""
        puffer_slot_clear(self._slot(worker))
        return puffer_signal_read(&self._slot(worker).command)

    cdef PufferSlot *_slot(self, int32_t worker) except NULL:
        if not 0 <= worker < self._num_workers:
            raise IndexError(f"worker {worker} of {self._num_workers}")
        return &self._channel.slots[worker]


cdef class WorkerEnd:
    """Worker's end of the channel, which waits for commands and reports their outcomes.

    Args:
        memory: Shared memory of the ``WorkerChannel``.
        num_workers: Number of workers of the channel.
        worker: Index of this worker.
        fits: Whether each worker and the parent has its own core.
        last: Last command that was meant for a previous worker.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferChannel *_channel
    cdef PufferWaitPolicy _wait_policy
    cdef int32_t _worker, _num_workers
    cdef uint32_t _last, _num_commands

    def __cinit__(self, const unsigned char[::1] memory, int num_workers, int32_t worker, bint fits, uint32_t last):
        if not 0 <= worker < num_workers:
            raise IndexError(f"worker {worker} of {num_workers}")
        self._channel = find_channel(memory, num_workers)
        self._memory = memory
        self._worker, self._num_workers = worker, num_workers
        self._wait_policy = puffer_wait_policy(fits)
        self._last = last

    def wait(self, double timeout_s):
        """Wait for a command. Return its operation, or 0 if there was none within ``timeout_s``."""
        cdef PufferSignal *signal = &self._channel.slots[self._worker].command
        cdef int64_t deadline = puffer_now_ns() + <int64_t>(timeout_s * 1e9)
        cdef PufferWait outcome
        while True:
            with nogil:
                outcome = puffer_signal_wait(signal, self._last, &self._wait_policy, deadline - puffer_now_ns())
            if outcome == PUFFER_CHANGED:
                self._last = puffer_signal_read(signal)
                self._num_commands += 1
                if self._num_commands % COMMANDS_PER_LOOK == 0:
                    self.leave_shared_core()
                return self._last & PUFFER_OPERATION_MASK
            PyErr_CheckSignals()
            if outcome == PUFFER_TIMED_OUT:
                return 0

    def leave_shared_core(self):
        """Move to a free core if the parent or another worker runs on this one. Return whether it moved."""
        return puffer_channel_leave_core(self._channel, self._worker, self._num_workers)

    def finish(self, uint32_t outcome):
        """Report that the command is finished. ``outcome`` is nonzero if a message follows."""
        cdef PufferSlot *slot = &self._channel.slots[self._worker]
        with nogil:
            puffer_slot_write(&slot.outcome, outcome)
            puffer_slot_write(&slot.completed, self._last)  # makes all previous writes visible to the parent
            puffer_signal_add(&self._channel.finished)
