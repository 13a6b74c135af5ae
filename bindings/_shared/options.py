"""Checks of options that many bindings share."""

import numpy as np

from pufferlib.errors import APIUsageError

__all__ = ["check_counts", "check_numbers", "check_render_mode", "check_switches"]


def check_counts(where: str, low: int = 1, /, **values: object) -> None:
    """Raise APIUsageError unless every value is an integer of at least ``low``."""
    for option, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
            raise APIUsageError(f"{where}: {option} must be an int >= {low}, got {value!r}")


def check_numbers(where: str, /, **values: object) -> None:
    """Raise APIUsageError unless every value is a finite number."""
    for option, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise APIUsageError(f"{where}: {option} must be a finite number, got {value!r}")


def check_switches(where: str, /, **values: object) -> None:
    """Raise APIUsageError unless every value is True or False."""
    for option, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise APIUsageError(f"{where}: {option} must be True or False, got {value!r}")


def check_render_mode(where: str, render_mode: object, *more: str) -> None:
    """Raise APIUsageError unless ``render_mode`` is None, "rgb_array" or one of ``more``."""
    modes = (None, "rgb_array", *more)
    if render_mode not in modes:
        allowed = ", ".join(map(repr, modes[:-1]))
        window = "; puffer play opens a window" if render_mode == "human" else ""
        raise APIUsageError(f"{where}: render_mode must be {allowed} or {modes[-1]!r}, got {render_mode!r}{window}")
