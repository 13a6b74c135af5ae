"""Copies of infos, which stay valid when the environment changes the originals."""

import copy
from types import NoneType

import numpy as np

cdef object ndarray = np.ndarray
cdef object generic = np.generic
cdef object void = np.void  # a structured scalar, which can be a view of an array
cdef frozenset constant = frozenset((NoneType, bool, int, float, complex, str, bytes))


def copied(value):
    """Return a deep copy of ``value``. An object that cannot be copied is returned as it is."""
    return copied_below(value, MAX_DEPTH)


cdef object copied_below(value, int depth):
    kind = type(value)
    if kind in constant:
        return value
    if depth:
        if kind is dict:
            return {key: copied_below(each, depth - 1) for key, each in (<dict>value).items()}
        if kind is list:
            return [copied_below(each, depth - 1) for each in <list>value]
        if kind is tuple:
            return tuple([copied_below(each, depth - 1) for each in <tuple>value])
    if kind is ndarray and not value.dtype.hasobject:
        return value.copy("K")
    if isinstance(value, generic) and kind is not void:
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # __deepcopy__ may raise anything
        return value
