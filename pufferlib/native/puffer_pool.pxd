# Declarations of puffer_pool.h.

from libc.stdint cimport int32_t
from libcpp cimport bool as c_bool


cdef extern from "puffer_pool.h" nogil:
    enum:
        PUFFER_MAX_THREADS
        PUFFER_HELPER_NS
        PUFFER_STOPPED
    ctypedef struct PufferTask:
        void (*work)(void *context, int32_t begin, int32_t end) noexcept nogil
        void *context
        c_bool (*stop)(void *owner) noexcept nogil
        void *owner
        int32_t num_items, threads, helper_ns
    int puffer_pool_prepare(int32_t threads)
    int puffer_pool_run(PufferTask *task)
