"""Numpy with the sines and cosines of the C library."""

import math
from typing import Any

import numpy as np

__all__ = ["LIBM", "cos", "sin"]


def sin(angle: float) -> np.float64:
    """The sine by the C library."""
    return np.float64(math.sin(angle))


def cos(angle: float) -> np.float64:
    """The cosine by the C library."""
    return np.float64(math.cos(angle))


class _Numpy:
    """All of numpy but for these two functions."""

    sin = staticmethod(sin)
    cos = staticmethod(cos)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


LIBM = _Numpy()
