# How a parent and its worker processes wait for one another, without the GIL.

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "puffer_channel.h" nogil:
    enum: PUFFER_CACHE_LINE
    enum: PUFFER_OPERATION_BITS
    enum: PUFFER_OPERATION_MASK
    ctypedef enum PufferWait:
        PUFFER_TIMED_OUT
        PUFFER_CHANGED
        PUFFER_INTERRUPTED
    ctypedef struct PufferSignal:
        pass
    ctypedef struct PufferPatience:
        pass
    ctypedef struct PufferDesk:
        PufferSignal command
        uint32_t completed
        uint32_t outcome
        uint32_t progress
    ctypedef struct PufferCrew:
        PufferDesk desks[]
    int64_t puffer_now_ns()
    PufferPatience puffer_patience(bint fits)
    void puffer_expect_others(PufferPatience *patience, bint are_there)
    uint32_t puffer_signal_read(PufferSignal *signal)
    PufferWait puffer_signal_wait(PufferSignal *signal, uint32_t last, PufferPatience *patience, int64_t timeout_ns)
    uint32_t puffer_desk_read(uint32_t *word)
    bint puffer_desk_is_idle(PufferDesk *desk)
    void puffer_desk_clear(PufferDesk *desk)
    void puffer_crew_command(PufferCrew *crew, const int32_t *workers, int32_t count, uint32_t operation)
    PufferWait puffer_crew_wait(
        PufferCrew *crew, const int32_t *workers, int32_t count, int32_t needed,
        PufferPatience *patience, int64_t timeout_ns)
    void puffer_crew_settle(PufferCrew *crew)
    bint puffer_crew_spread(PufferCrew *crew, int32_t worker, int32_t num_workers)
    void puffer_crew_finish(PufferCrew *crew, int32_t worker, uint32_t command, uint32_t outcome)


cdef enum:
    COMMANDS_PER_SPREAD = 64  # rarely enough to cost nothing, often enough to mend things at once


def crew_bytes(int num_workers):
    """Bytes of shared memory, a multiple of the cache line, that the signals of so many workers take."""
    return sizeof(PufferCrew) + num_workers * sizeof(PufferDesk)


def progress_at(int worker):
    """Offset in bytes, from the start of the shared memory, of the number that says where ``worker`` is."""
    cdef PufferCrew *crew = NULL
    return <Py_ssize_t>&crew.desks[worker].progress


cdef PufferCrew *find_crew(const unsigned char[::1] memory, int num_workers) except NULL:
    if memory.shape[0] < <Py_ssize_t>(sizeof(PufferCrew) + num_workers * sizeof(PufferDesk)):
        raise ValueError(f"{num_workers} workers need {crew_bytes(num_workers)} bytes, got {memory.shape[0]}")
    if <size_t>&memory[0] % PUFFER_CACHE_LINE:
        raise ValueError("the memory of signals must begin at a cache line")
    return <PufferCrew *>&memory[0]


cdef class Crew:
    """The parent's end: gives commands, waits for workers, and knows whose turn it is.

    Workers that have a command are *in flight*, the longest-waiting first, until ``choose`` takes them
    and ``command`` gives them the next one. So after an interruption ``choose`` can be asked again.

    Args:
        memory: Shared and zeroed, ``crew_bytes`` of it.
        num_workers: Workers of the crew.
        fits: Whether each of them and the parent has a core of its own.
        look_s: How often ``wait`` comes back so that somebody looks after the workers.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferCrew *_crew
    cdef PufferPatience _patience
    cdef int32_t _num_workers, _num_in_flight, _num_chosen
    cdef int32_t *_in_flight  # three arrays, one entry per worker
    cdef int32_t *_chosen
    cdef int64_t *_waited_ns
    cdef uint64_t *_seen
    cdef int64_t _look_ns, _last_look
    cdef uint32_t _num_commands
    cdef bint _fits

    def __cinit__(self, const unsigned char[::1] memory, int num_workers, bint fits, double look_s):
        self._crew = find_crew(memory, num_workers)
        self._memory = memory
        self._num_workers = num_workers
        self._patience = puffer_patience(fits)
        self._fits = fits
        self._look_ns = <int64_t>(look_s * 1e9)
        self._in_flight = <int32_t *>PyMem_Calloc(num_workers, sizeof(int32_t))
        self._chosen = <int32_t *>PyMem_Calloc(num_workers, sizeof(int32_t))
        self._waited_ns = <int64_t *>PyMem_Calloc(num_workers, sizeof(int64_t))
        self._seen = <uint64_t *>PyMem_Calloc(num_workers, sizeof(uint64_t))
        if not (self._in_flight and self._chosen and self._waited_ns and self._seen):
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self._in_flight)
        PyMem_Free(self._chosen)
        PyMem_Free(self._waited_ns)
        PyMem_Free(self._seen)

    @property
    def in_flight(self):
        """The workers that have a command, or were chosen and have no new one."""
        return [self._in_flight[i] for i in range(self._num_in_flight)]

    @property
    def chosen(self):
        """The workers that ``choose`` took last, in ascending order."""
        return [self._chosen[i] for i in range(self._num_chosen)]

    def command_all(self, uint32_t operation):
        """Give every worker a command; none may be busy."""
        for worker in range(self._num_workers):
            self._in_flight[worker] = worker
        self._num_chosen = 0
        self._num_in_flight = self._num_workers
        puffer_crew_command(self._crew, self._in_flight, self._num_workers, operation)

    def command_chosen(self, uint32_t operation):
        """Give those that were chosen a command; they go to the end of the line."""
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
        puffer_crew_command(self._crew, self._chosen, self._num_chosen, operation)
        self._num_chosen = 0
        self._num_commands += 1
        if self._fits and self._num_commands % COMMANDS_PER_SPREAD == 0:
            puffer_crew_settle(self._crew)

    def command_one(self, int32_t worker, uint32_t operation):
        """Give one worker of those in flight another command."""
        puffer_crew_command(self._crew, &worker, 1, operation)

    def wait(self, int32_t needed, bint in_turn):
        """Wait until ``needed`` of the workers in flight are finished, or it is time to look after them.

        Args:
            needed: How many.
            in_turn: Whether it must be those that have waited longest.

        Returns:
            Whether they are finished. If not, look after the workers and wait again.
        """
        cdef int32_t count = needed if in_turn else self._num_in_flight
        cdef int64_t now = puffer_now_ns()
        cdef PufferWait outcome
        if needed > self._num_in_flight:
            raise RuntimeError(f"{needed} workers are waited for, and {self._num_in_flight} are in flight")
        puffer_expect_others(&self._patience, needed < self._num_in_flight)
        while now - self._last_look < self._look_ns:
            with nogil:
                outcome = puffer_crew_wait(
                    self._crew, self._in_flight, count, needed, &self._patience,
                    self._look_ns - (now - self._last_look))
            if outcome == PUFFER_CHANGED:
                return True
            PyErr_CheckSignals()
            now = puffer_now_ns()
        return False

    def choose(self, int32_t needed):
        """Choose the ``needed`` longest-waiting workers that are finished; whether any has something to say."""
        cdef int32_t count = 0, i, worker, place
        cdef uint32_t outcomes = 0
        for i in range(self._num_in_flight):
            if count == needed:
                break
            worker = self._in_flight[i]
            if not puffer_desk_is_idle(&self._crew.desks[worker]):
                continue
            outcomes |= puffer_desk_read(&self._crew.desks[worker].outcome)
            place = count
            while place > 0 and self._chosen[place - 1] > worker:
                self._chosen[place] = self._chosen[place - 1]
                place -= 1
            self._chosen[place] = worker
            count += 1
        self._num_chosen = count
        return outcomes != 0

    def first_chosen(self):
        """The lowest worker of those chosen."""
        return self._chosen[0]

    def find_late(self, int64_t timeout_ns):
        """Look at all workers, as ``wait`` asked for.

        Only time in which somebody could have looked counts, so that a parent that was stopped for a
        while blames nobody.

        Returns:
            A worker that has been in the same environment longer than ``timeout_ns``, or -1.
        """
        cdef int64_t now = puffer_now_ns()
        cdef int64_t passed = min(now - self._last_look, 2 * self._look_ns)
        cdef int32_t worker, late = -1
        cdef uint64_t seen
        cdef PufferDesk *desk
        self._last_look = now
        for worker in range(self._num_workers):
            desk = &self._crew.desks[worker]
            seen = <uint64_t>puffer_signal_read(&desk.command) << 32 | puffer_desk_read(&desk.progress)
            if seen != self._seen[worker] or puffer_desk_is_idle(desk):
                self._seen[worker] = seen
                self._waited_ns[worker] = 0
                continue
            self._waited_ns[worker] += passed
            if self._waited_ns[worker] > timeout_ns:
                late = worker
        return late

    def operation(self, int32_t worker):
        """What the worker was told to do last; 0 for nothing."""
        return puffer_signal_read(&self._desk(worker).command) & PUFFER_OPERATION_MASK

    def num_completed(self, int32_t worker):
        """How many commands have been completed at the worker's desk, by all its processes; wraps at ``2**30``."""
        return puffer_desk_read(&self._desk(worker).completed) >> PUFFER_OPERATION_BITS

    def num_commands(self, int32_t worker):
        """How many commands the worker was given, all its processes together; wraps at ``2**30``."""
        return puffer_signal_read(&self._desk(worker).command) >> PUFFER_OPERATION_BITS

    def progress(self, int32_t worker):
        """Which of its environments the worker is in."""
        return puffer_desk_read(&self._desk(worker).progress)

    def outcome(self, int32_t worker):
        """What the worker had to say of its last command."""
        return puffer_desk_read(&self._desk(worker).outcome)

    def heard(self, int32_t worker):
        """Forget what the worker had to say."""
        self._desk(worker).outcome = 0

    def replace(self, int32_t worker):
        """Make the desk of a worker whose process has ended ready for the next; the last command of the old one."""
        puffer_desk_clear(self._desk(worker))
        return puffer_signal_read(&self._desk(worker).command)

    cdef PufferDesk *_desk(self, int32_t worker) except NULL:
        if not 0 <= worker < self._num_workers:
            raise IndexError(f"worker {worker} of {self._num_workers}")
        return &self._crew.desks[worker]


cdef class Desk:
    """A worker's end: waits for commands and reports what came of them.

    Args:
        memory: That of the ``Crew``.
        num_workers: Workers of the crew.
        worker: Which of them this is.
        fits: Whether each of them and the parent has a core of its own.
        last: The last command that was for somebody before it.
    """

    cdef const unsigned char[::1] _memory
    cdef PufferCrew *_crew
    cdef PufferPatience _patience
    cdef int32_t _worker, _num_workers
    cdef uint32_t _last, _num_commands

    def __cinit__(self, const unsigned char[::1] memory, int num_workers, int32_t worker, bint fits, uint32_t last):
        if not 0 <= worker < num_workers:
            raise IndexError(f"worker {worker} of {num_workers}")
        self._crew = find_crew(memory, num_workers)
        self._memory = memory
        self._worker, self._num_workers = worker, num_workers
        self._patience = puffer_patience(fits)
        self._last = last

    def wait(self, double timeout_s):
        """Wait for a command; returns its operation, or 0 if none has come within ``timeout_s``."""
        cdef PufferSignal *signal = &self._crew.desks[self._worker].command
        cdef int64_t deadline = puffer_now_ns() + <int64_t>(timeout_s * 1e9)
        cdef PufferWait outcome
        while True:
            with nogil:
                outcome = puffer_signal_wait(signal, self._last, &self._patience, deadline - puffer_now_ns())
            if outcome == PUFFER_CHANGED:
                self._last = puffer_signal_read(signal)
                self._num_commands += 1
                if self._num_commands % COMMANDS_PER_SPREAD == 0:
                    self.spread()
                return self._last & PUFFER_OPERATION_MASK
            PyErr_CheckSignals()
            if outcome == PUFFER_TIMED_OUT:
                return 0

    def spread(self):
        """Leave the core if the parent or another worker is there and one is free; whether that was done."""
        return puffer_crew_spread(self._crew, self._worker, self._num_workers)

    def finish(self, uint32_t outcome):
        """The command is finished; ``outcome`` says whether a message is to follow, 0 for none."""
        with nogil:
            puffer_crew_finish(self._crew, self._worker, self._last, outcome)
