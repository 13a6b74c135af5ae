cdef object copied_below(value, int depth)

cdef enum:
    MAX_DEPTH = 16  # beyond it copy.deepcopy takes over, which also copies containers that contain themselves
