# What other modules share with this one: the C environments, and the threads that play them.

from pufferlib.native.puffer_batch cimport PufferEnvType
from pufferlib.native.puffer_task cimport PufferHelpers

cdef const PufferHelpers *shared_helpers() noexcept
cdef const PufferEnvType *type_at(int index) except NULL
