# Functions for other Cython modules: access to the C environments and to the shared helper threads.

from pufferlib.native.puffer_batch cimport PufferEnvType
from pufferlib.native.puffer_task cimport PufferHelpers

cdef const PufferHelpers *shared_helpers() noexcept
cdef const PufferEnvType *type_at(int index) except NULL
