# Declarations of puffer_task.h.

from libc.stdint cimport int32_t
from libcpp cimport bool as c_bool


cdef extern from "puffer_task.h" nogil:
    enum:
        PUFFER_MAX_THREADS
        PUFFER_HELPER_NS
    ctypedef struct PufferTask:
        void (*work)(void *context, int32_t begin, int32_t end) noexcept nogil
        void *context
        c_bool (*stop)(void *owner) noexcept nogil
        void *owner
        int32_t num_items, threads, helper_ns, affinity
        double item_ns
    ctypedef struct PufferHelpers:
        int (*prepare)(int32_t threads) noexcept nogil
        int (*run)(PufferTask *task) noexcept nogil
