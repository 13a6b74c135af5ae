"""C and Cython code shared by several packages: the runtime of C environments, threads, waiting and arrays."""
