"""Replacement of numpy with ``sin`` and ``cos`` of the C library."""

import math
from typing import Any

import numpy as np

__all__ = ["LIBM", "cos", "sin"]


def sin(angle: float) -> np.float64:
    """Return the sine computed by the C library."""
    return np.float64(math.sin(angle))


def cos(angle: float) -> np.float64:
    """Return the cosine computed by the C library."""
    return np.float64(math.cos(angle))


class _Numpy:
    """Namespace with all functions of numpy except these two."""

    sin = staticmethod(sin)
    cos = staticmethod(cos)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


LIBM = _Numpy()
