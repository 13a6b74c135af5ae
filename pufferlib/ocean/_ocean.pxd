# Functions for other Cython modules: access to the C environments and to the shared helper threads.

from pufferlib.native.puffer_batch cimport PufferEnvType, PufferValue
from pufferlib.native.puffer_task cimport PufferHelpers

cdef enum:
    MAX_PARAMETERS = 64

cdef const PufferHelpers *shared_helpers() noexcept
cdef const PufferEnvType *type_at(int index) except NULL
cdef int set_values(PufferValue *to, const PufferEnvType *kind, values) except -1
