# Declarations of puffer_channel.h and puffer_wait.h.

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "puffer_channel.h" nogil:
    enum: PUFFER_CACHE_LINE
    enum: PUFFER_OPERATION_BITS
    enum: PUFFER_OPERATION_MASK
    ctypedef enum PufferWait:
        PUFFER_TIMED_OUT
        PUFFER_CHANGED
    ctypedef struct PufferSignal:
        pass
    ctypedef struct PufferWaitPolicy:
        pass
    ctypedef struct PufferSlot:
        PufferSignal command
        uint32_t completed
        uint32_t outcome
        uint32_t progress
    ctypedef struct PufferChannel:
        PufferSignal finished
        PufferSlot slots[]
    int64_t puffer_now_ns()
    PufferWaitPolicy puffer_wait_policy(bint fits)
    void puffer_expect_contention(PufferWaitPolicy *policy, bint are_there)
    uint32_t puffer_signal_read(PufferSignal *signal)
    void puffer_signal_write(PufferSignal *signal, uint32_t value)
    void puffer_signal_wake(PufferSignal *signal)
    void puffer_signal_add(PufferSignal *signal)
    PufferWait puffer_signal_wait(PufferSignal *signal, uint32_t last, PufferWaitPolicy *policy, int64_t timeout_ns)
    uint32_t puffer_slot_read(uint32_t *word)
    void puffer_slot_write(uint32_t *word, uint32_t value)
    bint puffer_slot_is_idle(PufferSlot *slot)
    void puffer_slot_clear(PufferSlot *slot)
    void puffer_channel_publish_core(PufferChannel *channel)
    bint puffer_channel_leave_core(PufferChannel *channel, int32_t worker, int32_t num_workers)
