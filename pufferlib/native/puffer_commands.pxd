# Declarations of puffer_commands.h.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pufferlib.native.puffer_channel cimport PufferChannel, PufferWait, PufferWaitPolicy


cdef extern from "puffer_commands.h" nogil:
    uint32_t puffer_commands_entry(uint32_t position, uint32_t operation)
    void puffer_commands_put(uint32_t *entries, uint32_t capacity, uint32_t number, uint32_t entry)
    uint32_t puffer_commands_get(const uint32_t *entries, uint32_t capacity, uint32_t number)
    void puffer_commands_finish(PufferChannel *channel, int32_t worker, uint32_t number)
    void puffer_commands_rest(PufferWaitPolicy *policy, int64_t worked_ns)
    PufferWait puffer_commands_wait(PufferChannel *channel, uint32_t target, PufferWaitPolicy *policy, int64_t timeout_ns)
