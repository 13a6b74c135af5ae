"""C and Cython that several parts share: the runtime of environments in C, their threads, waiting, arrays."""
