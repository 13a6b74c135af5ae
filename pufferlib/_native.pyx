# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Everything compiled, in one extension. Each part stands beside the Python that uses it."""

cdef extern from *:
    """
    extern const char puffer_source_hash[];
    """
    const char *puffer_source_hash

source_hash = puffer_source_hash.decode()  # see native/source_hash.py

include "ocean/declarations.pxi"
include "ocean/binding.pxi"
include "emulation/pack.pxi"
include "emulation/unpack.pxi"
include "emulation/step.pxi"
include "emulation/agents.pxi"
include "vector/multiprocessing/channel.pxi"
include "vector/env_runner.pxi"
include "vector/actions.pxi"
include "native/shrink.pxi"
