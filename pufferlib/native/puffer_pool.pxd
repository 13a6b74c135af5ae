# Declarations of puffer_pool.h.

from libc.stdint cimport int32_t

from pufferlib.native.puffer_task cimport PufferHelpers, PufferTask


cdef extern from "puffer_pool.h" nogil:
    enum:
        PUFFER_STOPPED
    int puffer_pool_prepare(int32_t threads)
    int puffer_pool_run(PufferTask *task)
    const PufferHelpers *puffer_helpers()
