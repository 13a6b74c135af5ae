"""Checks of the observations that a trained agent is given, by the observation space that it was trained with."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector.leaves import view_fields

__all__ = ["ObservationCheck"]

Array = npt.NDArray[Any]
Field = tuple[tuple[str, ...], Array, Array]  # names from the outermost inwards, lowest and highest values


class ObservationCheck:
    """Converts observations to the dtype of a space and checks that their values are within it.

    Integers and booleans must be within the bounds. Real numbers must not be NaN. Real numbers of an array
    that are further outside its bounds than these are apart cause one warning: environments often miss their bounds
    by a little.

    Args:
        env: Emulated or native environment whose observations are expected.
    """

    def __init__(self, env: Any) -> None:
        space = env.single_observation_space
        self._dtype = np.dtype(space.dtype)
        self._row_dtype: Any = env.emulated["emulated_observation_dtype"] if env.emulated else self._dtype
        self._fields: list[Field] = [((), space.low, space.high)]
        if self._row_dtype.names is not None:
            self._fields = list(_fields(self._row_dtype, env.emulated["observation_bounds"]))
        self._has_warned = False

    def convert(self, observations: Array) -> Array:
        """Return ``observations`` in the dtype of the space, C-contiguous.

        Raises:
            APIUsageError: The space has integers, and a value would become another one.
        """
        if observations.dtype == self._dtype:
            return np.ascontiguousarray(observations)
        if observations.dtype.kind not in "biuf":
            raise APIUsageError(f"Agent: observations must have dtype {self._dtype}, got dtype {observations.dtype}")
        with np.errstate(invalid="ignore", over="ignore"):
            converted = np.ascontiguousarray(observations, self._dtype)
        if self._dtype.kind in "biu" and not np.array_equal(converted, observations):
            raise APIUsageError(
                f"Agent: observations must have values that {self._dtype} can hold, got {_span(observations)} in dtype "
                f"{observations.dtype}; pass them as the environment returned them in training, without scaling"
            )
        return converted

    def check(self, rows: Array) -> None:
        """Check converted observations, ``(n, *shape)``.

        Raises:
            APIUsageError: A value is NaN, or an integer is out of bounds.
        """
        for names, low, high in self._fields:
            values = view_fields(rows, self._row_dtype, names) if names else rows
            where = f"observations{''.join(f'[{name!r}]' for name in names)}"
            if values.dtype.kind == "f":
                self._check_reals(where, values, low, high)
            elif np.any(values < low) or np.any(values > high):
                raise APIUsageError(
                    f"Agent: {where} must be within the space, {low.min()} to {high.max()}, got {_span(values)}; pass "
                    "them as the environment returned them in training"
                )

    def _check_reals(self, where: str, values: Array, low: Array, high: Array) -> None:
        if np.isnan(values).any():
            raise APIUsageError(f"Agent: {where} must be numbers, got NaN")
        lowest, highest = float(low.min(initial=np.inf)), float(high.max(initial=-np.inf))
        width = highest - lowest
        if not self._has_warned and np.any((values < lowest - width) | (values > highest + width)):
            self._has_warned = True
            warnings.warn(
                f"Agent: {where} should be within the space, {lowest} to {highest}, got {_span(values)}; pass "
                "them as the environment returned them in training, without scaling",
                stacklevel=4,
            )


def _fields(dtype: Any, bounds: Any, outer: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the arrays of a structured row that have bounds."""
    for name in dtype.names if bounds is not None else ():
        inner, within = dtype[name], bounds[name]
        if inner.names is not None:
            yield from _fields(inner, within, (*outer, name))
        elif within is not None:
            yield (*outer, name), np.asarray(within[0]), np.asarray(within[1])


def _span(values: Array) -> str:
    return f"{values.min()} to {values.max()}"
